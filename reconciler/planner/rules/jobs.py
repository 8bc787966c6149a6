"""Started Jobs: work in flight is never killed voluntarily."""

from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, block


def judge(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Blocks a Job's pod once it is bound, until it has finished."""
    pod = subject.pod
    if pod.owner is not None and pod.owner.kind == "Job" and pod.node_name and not pod.finished:
        return block("started-job", "it belongs to a Job that has started")
    return NO_OPINION
