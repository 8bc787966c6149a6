"""All filters that only read a pod's own constraints and a node kind, in kube-scheduler's order."""

from collections.abc import Sequence

from reconciler.planner.placement.classes import StaticConstraints
from reconciler.planner.placement.filters import node_affinity, taints, unschedulable, volumes
from reconciler.planner.placement.kinds import NodeKind

ALIKE_MIN = 8
"""Fewer kinds are asked one by one."""


def refuses(constraints: StaticConstraints, kind: NodeKind) -> str:
    """The unplaceable code of the first static filter that refuses, or nothing."""
    code = unschedulable.refuses(kind)
    if not code:
        code = node_affinity.refuses(constraints.node_selector, constraints.node_affinity, kind)
    if not code and taints.untolerated(kind.taints, constraints.tolerations) is not None:
        code = "taint"
    return code or volumes.refuses(constraints.volumes, kind)


def verdicts(constraints: StaticConstraints, kinds: Sequence[NodeKind]) -> list[str]:
    """What `refuses` says of each kind; asked once for kinds alike to these constraints.

    One pod that selects a node by its name makes every node a kind of its own, for all others.
    """
    if len(kinds) < ALIKE_MIN:
        return [refuses(constraints, kind) for kind in kinds]
    keys, lines = constraints.reads()
    known: dict[object, str] = {}
    found: list[str] = []
    for kind in kinds:
        alike: object = kind
        if len(kind.variants) == 1:
            values = tuple(map(kind.variants[0].get, keys))
            name = {"metadata.name": kind.name}
            named = tuple([line.matches(name) for line in lines]) if lines else ()
            alike = (kind.taints, kind.schedulable, values, named)
        code = known.get(alike)
        if code is None:
            code = known[alike] = refuses(constraints, kind)
        found.append(code)
    return found


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
