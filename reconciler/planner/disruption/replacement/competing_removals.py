"""Compares replacing a node with keeping it and removing other nodes whose pods fit onto it.

A half-used large node can take the pods of a full small one, or be replaced by a second small one.
The second costs a launch, and the two small nodes would then be the next set that one large node
could replace: all pods would move twice, and the large node be bought again. So a node is not
replaced while other nodes could leave onto it and save as much.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final, Protocol

from reconciler.model.ids import FleetKey
from reconciler.planner.disruption.blockers.move_cost import move_cost_nano_usd
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.candidate_selection import may_go_in_time
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.replacement.conflict import OTHERS_MAX
from reconciler.planner.disruption.replacement.consolidator import Consolidator
from reconciler.planner.disruption.simulator.drain_simulator import DrainSimulator
from reconciler.planner.disruption.simulator.relocation import Relocation
from reconciler.planner.placement.classes import Group

COMING_MAX: Final = 10
"""How many of them are taken out together, with and without the node: each takes a full check."""


class _Leave(Protocol):
    def __call__(self, candidate: Candidate, *, compared: bool = True) -> object:
        """Take a candidate out; return a `Relocation` if it could leave: `RemovalTrials.leave`."""
        ...


class CompetingRemovals:
    """Finds the removals that the replacement of a node would make impossible.

    Args:
        context: The run.
        simulator: Its current state counts.
        consolidator: What may take the pods of a node.
        candidates: All that are examined.
        grouped_of: Returns the pods of a candidate, by class.
        leave: Takes a candidate out.
    """

    def __init__(
        self,
        context: DisruptionContext,
        simulator: DrainSimulator,
        consolidator: Consolidator,
        candidates: Sequence[Candidate],
        grouped_of: Callable[[Candidate], list[Group]],
        leave: _Leave,
    ) -> None:
        self._context = context
        self._simulator = simulator
        self._consolidator = consolidator
        self._candidates = candidates
        self._grouped = grouped_of
        self._leave = leave

    def that_may_come_to(self, candidate: Candidate) -> list[Candidate]:
        """Return the candidates that can leave by themselves and whose pods this one could take.

        Those are candidates of which a pod would come to it, or of which all pods fit there, and
        which only time or their turn keeps. Nothing is changed.
        """
        row = self._context.view.row_of[candidate.node.name]
        able = (c for c in self._candidates if c is not candidate and self._may_leave(c))
        moved = ((c, moves) for c in able if (moves := self._moved_alone(c)) is not None)
        coming = (
            c
            for c, moves in islice(moved, OTHERS_MAX)
            if row in moves.rows or self._fits_on(c, row)
        )
        return list(islice(coming, COMING_MAX))

    def removable(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Return those that can be removed one after the other in the current state.

        Nothing is changed.
        """
        return self._removable(candidates, compared=True)

    def all_have_places(self, candidates: Sequence[Candidate]) -> bool:
        """Return whether all candidates can be removed together.

        A quick test before `removable`, which takes much longer. Nothing is changed.
        """
        return len(self._removable(candidates, compared=False)) == len(candidates)

    def _removable(self, candidates: Iterable[Candidate], *, compared: bool) -> list[Candidate]:
        checkpoint, found = self._simulator.checkpoint(), []
        for candidate in candidates:
            alone = self._simulator.staying_alone(candidate.node)
            if alone and isinstance(self._leave(candidate, compared=compared), Relocation):
                found.append(candidate)
        self._simulator.undo(checkpoint)
        return found

    def worth(self, candidates: Iterable[Candidate]) -> int:
        """Return what the removals save in an hour less the cost of their moves, in nano-USD."""
        return sum(self._price(c.status.key) - _cost(c) for c in candidates)

    def worth_of_new(self, candidate: Candidate, key: FleetKey, count: int) -> int:
        """Return the same for the candidate itself, if new nodes of the fleet replace it."""
        return self.worth((candidate,)) - count * self._price(key)

    def _price(self, key: FleetKey) -> int:
        return self._context.view.offers[key].nano_usd_per_hour

    def _may_leave(self, other: Candidate) -> bool:
        """Return whether only its time or its turn keeps it."""
        context = self._context
        return (
            other.outdated is None
            and not other.must_go
            and context.view.offers[other.status.key].priced
            and self._simulator.staying_alone(other.node)
            and other.settles_for(context.view.at) is None
            and context.sets.set_of(other.node.name) is None
            and may_go_in_time(context, other)
        )

    def _moved_alone(self, other: Candidate) -> Relocation | None:
        """Return where the pods of the other node would go by themselves; nothing is changed."""
        checkpoint = self._simulator.checkpoint()
        moves = self._consolidator.move(other, self._grouped(other))
        self._simulator.undo(checkpoint)
        return moves

    def _fits_on(self, other: Candidate, row: int) -> bool:
        """Return whether all pods of the other node fit on the row; nothing is changed.

        Each of several nodes by itself may go to the same better place, which has room for one of
        them only: this row may be the place of the next.
        """
        checkpoint = self._simulator.checkpoint()
        moves = self._simulator.move_onto(other.node, self._grouped(other), [row])
        self._simulator.undo(checkpoint)
        return moves is not None


def _cost(candidate: Candidate) -> int:
    return move_cost_nano_usd(candidate.moving, candidate.status.settings.scale_in.move_cost_usd)
