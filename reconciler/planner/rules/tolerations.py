"""Pods that tolerate the taint of a drain: kube-scheduler may put them back on the node."""

from functools import lru_cache

from reconciler.model.actions import DRAINING_TAINT
from reconciler.model.cluster import Taint, Toleration
from reconciler.planner.nodes.drain_taints import DRAIN_VALUES
from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, block

_TAINTS = tuple(
    Taint(key=DRAINING_TAINT, value=value, effect="NoSchedule") for value in sorted(DRAIN_VALUES)
)


def judge(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Block pods that would be evicted again and again, as the drained node suits them best."""
    if comes_back(subject.pod.spec.tolerations):
        return block("tolerates-draining", "it tolerates the taint of a drain, so it would return")
    return NO_OPINION


@lru_cache(maxsize=256)
def comes_back(tolerations: tuple[Toleration, ...]) -> bool:
    """Return whether a pod with these tolerations may be bound to a draining node.

    The value of the taint is the reason for the drain; a toleration may name one of them.
    """
    return any(toleration.tolerates(taint) for toleration in tolerations for taint in _TAINTS)
