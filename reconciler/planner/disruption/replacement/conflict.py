"""Nodes kept because the pods of a more expensive node will need a node of the same kind."""

from collections.abc import Callable, Container, Mapping, Sequence
from itertools import islice
from typing import Final

from reconciler.model.cluster import Pod
from reconciler.model.ids import FleetKey
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.candidate_selection import may_go_in_time
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.replacement.consolidator import Consolidator
from reconciler.planner.disruption.simulator.drain_simulator import DrainSimulator
from reconciler.planner.disruption.simulator.relocation import Relocation, arrivals_of, grouped
from reconciler.planner.placement.classes import Group

OTHERS_MAX: Final = 20
"""How many other candidates are moved, one after the other, to decide about one node: with each
of fifty against each of the others the plan of a large cluster would take many seconds."""


class ReplacementConflict:
    """Finds candidates whose replacement becomes more expensive if another candidate leaves.

    Args:
        context: The run.
        simulator: Its current state counts.
        consolidator: What may replace a node.
        candidates: All that are examined.
        grouped_of: Returns the pods of a candidate, by class.
    """

    def __init__(
        self,
        context: DisruptionContext,
        simulator: DrainSimulator,
        consolidator: Consolidator,
        candidates: Sequence[Candidate],
        grouped_of: Callable[[Candidate], list[Group]],
    ) -> None:
        self._context = context
        self._simulator = simulator
        self._consolidator = consolidator
        self._candidates = candidates
        self._grouped = grouped_of
        self._served: dict[FleetKey, list[Candidate]] = {}

    def conflicting_candidate(
        self, candidate: Candidate, moves: Relocation, receiving: Container[int]
    ) -> Candidate | None:
        """Return a more expensive candidate whose pods would then need a new node like this one.

        None if there is none. The candidate's pods have been moved, and it has left the simulation.
        The others are moved one after the other, in three states: with its pods where the plan puts
        them, with those of them that come to the other node, and with its pods where kube-scheduler
        will put them, which does not know that idle nodes wait for pods.

        Args:
            candidate: The node that would leave.
            moves: Where its pods go.
            receiving: Rows that already receive pods of other nodes.
        """
        key = candidate.status.key
        others = [c for c in self._served_by(key) if c is not candidate]
        if not any(self._consolidator.is_more_expensive(c, key) for c in others):
            return None
        checkpoint = self._simulator.checkpoint()
        arrived = {r: pods for r, pods in arrivals_of(moves).items() if r not in receiving}
        found = self._first_conflicting(others, candidate, arrived)
        self._simulator.undo(checkpoint)
        if found is None:
            idle = [self._context.view.row_of[name] for name in sorted(self._context.idle)]
            self._simulator.spread(moves, idle)
            found = self._first_conflicting(others, candidate, {})
            self._simulator.undo(checkpoint)
        return found

    def _first_conflicting(
        self, others: Sequence[Candidate], candidate: Candidate, arrived: Mapping[int, list[Pod]]
    ) -> Candidate | None:
        """Return the first that conflicts, among as many as one plan has time to move."""
        able = (c for c in others if self._may_conflict(c, candidate, arrived))
        tried = islice(able, OTHERS_MAX)
        return next((c for c in tried if self._conflicts(c, candidate, arrived)), None)

    def _served_by(self, key: FleetKey) -> Sequence[Candidate]:
        """Return the candidates whose pods should rather be on a node of the fleet.

        Kept per fleet.
        """
        if key not in self._served:
            better = self._consolidator.is_better
            self._served[key] = [c for c in self._candidates if better(c, key)]
        return self._served[key]

    def _may_conflict(
        self, other: Candidate, candidate: Candidate, arrived: Mapping[int, list[Pod]]
    ) -> bool:
        """Return whether the other could leave for a new node of the candidate's fleet.

        A node that receives pods of further nodes stays, and does not conflict.
        """
        view = self._context.view
        alone = view.row_of[other.node.name] in arrived or self._simulator.staying_alone(other.node)
        return (
            alone
            and self._consolidator.might_buy(other, candidate.status.key)
            and may_go_in_time(self._context, other, when_others_moved=True)
        )

    def _conflicts(
        self, other: Candidate, candidate: Candidate, arrived: Mapping[int, list[Pod]]
    ) -> bool:
        """Return whether the other's pods fit only on a new node of the candidate's fleet.

        Pods that have just come to the other node count.
        """
        view = self._context.view
        come = arrived.get(view.row_of[other.node.name], [])
        groups = grouped(view, [*other.placed, *come]) if come else self._grouped(other)
        return self._consolidator.move(
            other, groups
        ) is None and self._consolidator.fits_with_one_more(other, groups, candidate.status.key)
