"""Annotations and labels by which people and other autoscalers keep or release a pod or node."""

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
"""As kubernetes-ec2-autoscaler reads its label, case-insensitively (its
`utils.parse_bool_label`)."""


def forbidding(annotations: Labels) -> str:
    """Return the annotation that forbids every voluntary move, as `key=value`.

    Empty if none does.
    """
    if not annotations:
        return ""
    return next((f"{k}={v}" for k, v in _FORBIDDING if annotations.get(k) == v), "")


def protected_until(pod: Pod, at: datetime) -> datetime | None:
    """Return until when Karpenter's annotation keeps a pod; None if it does not, or no longer.

    Its value may be a duration in Go's notation, counted from the pod's start; it has not begun
    while the start is unknown. Any other value except `true` keeps nothing.

    Source: kubernetes-sigs/karpenter pkg/utils/pod/scheduling.go since v1.12, read 2026-11.
    """
    value = pod.annotations.get(KARPENTER_DO_NOT_DISRUPT)
    keeps = None if value is None else parse_go_duration(value)
    if keeps is None:
        return None
    begun = at if pod.started_at is None else min(pod.started_at, at)
    return begun + keeps if at - begun < keeps else None


def keeps(pod: Pod, at: datetime) -> bool:
    """Return whether an annotation of the pod forbids moving it now."""
    return bool(forbidding(pod.annotations)) or protected_until(pod, at) is not None


def forbids(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Block a pod that somebody has protected, including a DaemonSet's pod."""
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
    """Lift the rules that only assume that a pod must not be moved; never a budget."""
    if subject.pod.annotations.get(SAFE_TO_EVICT) == "true":
        return Ruling(verdict=Verdict.OK, code="safe-to-evict", reason="its owner says so")
    return NO_OPINION
