"""Annotations and labels by which people and other autoscalers keep a pod or node, or let it go."""

from reconciler.model.actions import DO_NOT_DISRUPT, DO_NOT_DRAIN
from reconciler.model.frozen import Labels
from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, Verdict, block

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_FORBIDDING = (
    (DO_NOT_DISRUPT, "true"),
    ("karpenter.sh/do-not-disrupt", "true"),
    ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true"),
    (SAFE_TO_EVICT, "false"),
)
_TRUE = frozenset({"1", "true"})
"""As kubernetes-ec2-autoscaler reads its label, in any case (its `utils.parse_bool_label`)."""


def forbidding(annotations: Labels) -> str:
    """Return the annotation that forbids every voluntary move, as `key=value`.

    Empty when none does.
    """
    if not annotations:
        return ""
    return next((f"{k}={v}" for k, v in _FORBIDDING if annotations.get(k) == v), "")


def forbids(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Blocks a pod that somebody wants left alone; on a DaemonSet's pod too."""
    found = forbidding(subject.pod.annotations)
    if found:
        return block("do-not-disrupt", f"it is annotated {found}")
    labelled = subject.pod.labels.get(DO_NOT_DRAIN, "")
    if labelled.lower() in _TRUE:
        return block("do-not-disrupt", f"it is labelled {DO_NOT_DRAIN}={labelled}")
    return NO_OPINION


def allows(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Lifts the rules that only guess that a pod minds being moved; never a budget."""
    if subject.pod.annotations.get(SAFE_TO_EVICT) == "true":
        return Ruling(verdict=Verdict.OK, code="safe-to-evict", reason="its owner says so")
    return NO_OPINION
