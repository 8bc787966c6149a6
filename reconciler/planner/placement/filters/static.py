"""All filters that only read a pod's own constraints and a node kind, in kube-scheduler's order."""

from collections.abc import Callable
from typing import TypeVar

from reconciler.planner.placement.filters import node_affinity, taints, unschedulable, volumes
from reconciler.planner.placement.kinds import KindTable, NodeKind
from reconciler.planner.placement.static_constraints import StaticConstraints

ALIKE_MIN = 8
"""Up to this many kinds are asked one by one."""

Answer = TypeVar("Answer")


def refuses(constraints: StaticConstraints, kind: NodeKind) -> str:
    """Return the unplaceable code of the first static filter that refuses, or an empty string."""
    code = unschedulable.refuses(kind)
    if not code:
        code = node_affinity.refuses(constraints.node_selector, constraints.node_affinity, kind)
    if not code and taints.untolerated(kind.taints, constraints.tolerations) is not None:
        code = "taint"
    return code or volumes.refuses(constraints.volumes, kind)


def verdicts(constraints: StaticConstraints, table: KindTable, first: int) -> list[str]:
    """Return the result of `refuses` for each kind from number `first` on."""
    return _once_for_kinds_alike(constraints, table, first, lambda kind: refuses(constraints, kind))


def eligible_for_spread(
    constraints: StaticConstraints, kind: NodeKind, *, honor_affinity: bool, honor_taints: bool
) -> bool:
    """Return whether topology spread counts a node of this kind.

    Source: nodeAffinityPolicy and nodeTaintsPolicy.
    """
    if honor_affinity and node_affinity.refuses(
        constraints.node_selector, constraints.node_affinity, kind
    ) not in {"", "zone"}:
        return False
    return not (
        honor_taints and taints.untolerated(kind.taints, constraints.tolerations) is not None
    )


def eligible_kinds(
    constraints: StaticConstraints,
    table: KindTable,
    first: int,
    *,
    honor_affinity: bool,
    honor_taints: bool,
) -> list[bool]:
    """Return the result of `eligible_for_spread` for each kind from number `first` on."""

    def ask(kind: NodeKind) -> bool:
        return eligible_for_spread(
            constraints, kind, honor_affinity=honor_affinity, honor_taints=honor_taints
        )

    return _once_for_kinds_alike(constraints, table, first, ask)


def _once_for_kinds_alike(
    constraints: StaticConstraints,
    table: KindTable,
    first: int,
    ask: Callable[[NodeKind], Answer],
) -> list[Answer]:
    """Return the answer for each kind from number `first` on, computed once for equivalent kinds.

    If one pod selects a node by name, every node becomes a kind of its own, for all other pods too.
    """
    kinds = table.kinds
    names = constraints.names()
    if len(kinds) - first < ALIKE_MIN or names is None:
        return [ask(kind) for kind in kinds[first:]]
    numbers = range(first, len(kinds))
    alike = table.alike(constraints.label_keys())
    apart = {number for name in names for number in table.with_name(name)}
    one_of = {alike[number]: number for number in numbers if number not in apart}
    answers = {group: ask(kinds[number]) for group, number in one_of.items()}
    return [ask(kinds[number]) if number in apart else answers[alike[number]] for number in numbers]
