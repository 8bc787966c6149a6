"""Annotations and labels by which people and other autoscalers keep a pod or node, or let it go."""

from datetime import datetime

from reconciler.model.actions import DO_NOT_DISRUPT, DO_NOT_DRAIN
from reconciler.model.cluster import Pod
from reconciler.model.frozen import Labels
from reconciler.model.text import parse_go_duration, rfc3339
from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, Verdict, block

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
KARPENTER_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_FORBIDDING = (
    (DO_NOT_DISRUPT, "true"),
    (KARPENTER_DO_NOT_DISRUPT, "true"),
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


def protected_until(pod: Pod, at: datetime) -> datetime | None:
    """Return when the time ends for which Karpenter's annotation keeps a pod.

    Its value may be a duration in Go's notation, which counts from the pod's start; while that is
    not known it has not begun. Any other value but `true` keeps nothing.

    Returns:
        None when there is no such time, or it has passed.

    Source: kubernetes-sigs/karpenter pkg/utils/pod/scheduling.go since v1.12, read 2026-11.
    """
    value = pod.annotations.get(KARPENTER_DO_NOT_DISRUPT)
    keeps = None if value is None else parse_go_duration(value)
    if keeps is None:
        return None
    begun = at if pod.started_at is None else min(pod.started_at, at)
    return begun + keeps if at - begun < keeps else None


def keeps(pod: Pod, at: datetime) -> bool:
    """Return whether an annotation of the pod forbids that it is moved now."""
    return bool(forbidding(pod.annotations)) or protected_until(pod, at) is not None


def forbids(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Blocks a pod that somebody wants left alone; on a DaemonSet's pod too."""
    found = forbidding(subject.pod.annotations)
    if found:
        return block("do-not-disrupt", f"it is annotated {found}")
    until = subject.protected_until
    if until is not None:
        value = subject.pod.annotations[KARPENTER_DO_NOT_DISRUPT]
        why = f"it is annotated {KARPENTER_DO_NOT_DISRUPT}={value}, until {rfc3339(until)}"
        return block("do-not-disrupt", why, until)
    labelled = subject.pod.labels.get(DO_NOT_DRAIN, "")
    if labelled.lower() in _TRUE:
        return block("do-not-disrupt", f"it is labelled {DO_NOT_DRAIN}={labelled}")
    return NO_OPINION


def allows(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Lifts the rules that only guess that a pod minds being moved; never a budget."""
    if subject.pod.annotations.get(SAFE_TO_EVICT) == "true":
        return Ruling(verdict=Verdict.OK, code="safe-to-evict", reason="its owner says so")
    return NO_OPINION
