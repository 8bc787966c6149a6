"""All filters that only read a pod's own constraints and a node kind, in kube-scheduler's order."""

from reconciler.planner.placement.classes import StaticConstraints
from reconciler.planner.placement.filters import node_affinity, taints, unschedulable, volumes
from reconciler.planner.placement.kinds import NodeKind


def refuses(constraints: StaticConstraints, kind: NodeKind) -> str:
    """The unplaceable code of the first static filter that refuses, or nothing."""
    code = unschedulable.refuses(kind)
    if not code:
        code = node_affinity.refuses(constraints.node_selector, constraints.node_affinity, kind)
    if not code and taints.untolerated(kind.taints, constraints.tolerations) is not None:
        code = "taint"
    return code or volumes.refuses(constraints.volumes, kind)


def eligible_for_spread(
    constraints: StaticConstraints, kind: NodeKind, *, honor_affinity: bool, honor_taints: bool
) -> bool:
    """Whether topology spread counts a node of this kind (nodeAffinityPolicy, nodeTaintsPolicy)."""
    if honor_affinity and node_affinity.refuses(
        constraints.node_selector, constraints.node_affinity, kind
    ) not in {"", "zone"}:
        return False
    return not (
        honor_taints and taints.untolerated(kind.taints, constraints.tolerations) is not None
    )
