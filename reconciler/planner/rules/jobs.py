"""Started Jobs and similar pods: work in progress is never killed voluntarily."""

from reconciler.model.text import cut
from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, block

_KIND_MAX = 63
"""How many characters of an owner's kind are shown: whoever writes the pod chooses it."""


def judge(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Block a pod that runs to completion, from when it is bound until it has finished."""
    pod = subject.pod
    if pod.owner is None or not pod.runs_to_completion or not pod.node_name or pod.finished:
        return NO_OPINION
    if pod.owner.kind == "Job":
        return block("started-job", "it belongs to a Job that has started")
    kind = cut(pod.owner.kind, _KIND_MAX)
    because = f"it has started, belongs to a controller of kind {kind} and runs to completion"
    return block("started-job", because)
