"""RemovePodsViolatingNodeTaints: proposes pods that do not tolerate a taint of their node."""

from collections.abc import Sequence

import numpy as np

from reconciler.model.actions import DRAINING_TAINT, UNNEEDED_TAINT
from reconciler.model.cluster import Node, Taint, Toleration
from reconciler.planner.descheduler_settings import NodeTaints
from reconciler.planner.disruption.descheduler.facts import (
    Facts,
    Proposal,
    Proposals,
    eviction_order,
)
from reconciler.planner.placement.arrays import BoolArray

_OURS = frozenset({DRAINING_TAINT, UNNEEDED_TAINT})
"""Our own taints. They mark what this program does with a node, and it moves the pods itself."""


def proposals(arguments: NodeTaints, facts: Facts) -> Proposals:
    """Yield the pods that do not tolerate a NoSchedule (on request also PreferNoSchedule) taint.

    They are expected on nodes whose taints of that kind they all tolerate: on others they would be
    proposed again. NoExecute taints are left to Kubernetes' node lifecycle controller.

    Source: descheduler README, RemovePodsViolatingNodeTaints, read 2026-11.
    """
    tainted = _Tainted(arguments, facts)
    for node in facts.nodes:
        taints = tainted.of(node)
        if not taints:
            continue
        pods = [p for p in facts.pods_on.get(node.name, ()) if arguments.scope.covers(p)]
        for pod in sorted(pods, key=eviction_order):
            taint = _untolerated(pod.spec.tolerations, taints)
            if taint is not None and not (pod.daemon or pod.mirror or pod.deleting):
                value = f"={taint.value}" if taint.value else ""
                yield Proposal(
                    pod=pod,
                    policy="RemovePodsViolatingNodeTaints",
                    reason=f"it does not tolerate {taint.key}{value}:{taint.effect} of {node.name}",
                    better=tainted.tolerated_by(pod.spec.tolerations),
                    leaves=True,
                )


class _Tainted:
    """The taints of all nodes that the policy considers."""

    def __init__(self, arguments: NodeTaints, facts: Facts) -> None:
        self._arguments = arguments
        numbers: dict[tuple[Taint, ...], int] = {}
        of_rows = [
            numbers.setdefault(self.of(node), len(numbers)) for node in facts.view.nodes.values()
        ]
        self._number_of_row = np.array(of_rows, dtype=np.int64)
        self._sets = tuple(numbers)
        self._tolerated: dict[tuple[Toleration, ...], BoolArray] = {}

    def of(self, node: Node) -> tuple[Taint, ...]:
        """Return the taints of a node that the policy considers."""
        return tuple(taint for taint in node.taints if _counts(taint, self._arguments))

    def tolerated_by(self, tolerations: tuple[Toleration, ...]) -> BoolArray:
        """Return the rows of the nodes whose taints are all tolerated."""
        if tolerations not in self._tolerated:
            tolerated = [_untolerated(tolerations, taints) is None for taints in self._sets]
            self._tolerated[tolerations] = np.array(tolerated)[self._number_of_row]
        return self._tolerated[tolerations]


def _counts(taint: Taint, arguments: NodeTaints) -> bool:
    effects = {"NoSchedule", "PreferNoSchedule" if arguments.prefer_no_schedule else "NoSchedule"}
    if taint.key in _OURS or taint.effect not in effects:
        return False
    names = {taint.key, f"{taint.key}={taint.value}"} if taint.value else {taint.key}
    return not names & arguments.excluded and (
        not arguments.included or bool(names & arguments.included)
    )


def _untolerated(tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> Taint | None:
    return next(
        (t for t in taints if not any(toleration.tolerates(t) for toleration in tolerations)), None
    )
