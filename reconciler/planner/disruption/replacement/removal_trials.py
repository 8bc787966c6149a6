"""Tries removals of candidates in the what-if cluster, ignoring timers and order.

Drains, timers and awaited idle nodes all use this. With different answers one could wait for
another forever, or buy nodes that are not used.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial

from reconciler.model.ids import FleetKey, NodeName
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.pods import NEEDED_BACK
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.replacement.competing_removals import CompetingRemovals
from reconciler.planner.disruption.replacement.conflict import ReplacementConflict
from reconciler.planner.disruption.replacement.consolidator import Consolidator, NewNodes
from reconciler.planner.disruption.replacement.kept_headroom import KeptHeadroom
from reconciler.planner.disruption.replacement.new_rows import NewRows
from reconciler.planner.disruption.replacement.short_lived_nodes import ShortLivedNodes
from reconciler.planner.disruption.simulator.drain_simulator import Checkpoint, DrainSimulator
from reconciler.planner.disruption.simulator.relocation import Relocation, grouped
from reconciler.planner.node_rows import in_each_zone, in_some_zone
from reconciler.planner.placement.classes import Group
from reconciler.planner.placement.kinds import ZONE
from reconciler.planner.placement.simulation import RowSpec


class RemovalTrials:
    """Takes candidates out of the what-if cluster, one after the other.

    Each candidate sees where the pods of those before it went.

    Args:
        context: The run.
        simulator: The what-if cluster.
        candidates: All candidates that are examined.
    """

    def __init__(
        self, context: DisruptionContext, simulator: DrainSimulator, candidates: Sequence[Candidate]
    ) -> None:
        self._context = context
        self.simulator = simulator
        self.consolidator = Consolidator(context, simulator)
        self._conflict = ReplacementConflict(
            context, simulator, self.consolidator, candidates, self.grouped
        )
        self._competing = CompetingRemovals(
            context, simulator, self.consolidator, candidates, self.grouped, self.leave
        )
        self._short_lived = ShortLivedNodes(context, simulator)
        self._kept_headroom = KeptHeadroom(context.builder, simulator)
        self._new_rows = NewRows(context.builder)
        self._groups: dict[NodeName, list[Group]] = {}

    def grouped(self, candidate: Candidate) -> list[Group]:
        """Return the candidate's pods by class; the answer is kept, as it is asked for often."""
        name = candidate.node.name
        if name not in self._groups:
            self._groups[name] = grouped(self._context.view, candidate.placed)
        return self._groups[name]

    def leave(
        self, candidate: Candidate, more: Sequence[int] = (), *, compared: bool = True
    ) -> Relocation | Blocker | None:
        """Move the candidate's pods to nodes that stay or to cheaper idle ones.

        Args:
            candidate: The node that leaves.
            more: Further rows that may take its pods, after all others.
            compared: Whether it stays if more expensive nodes would then need one like it. That
                takes most of the time.

        Returns:
            Where its pods go; or why it stays although they fit; or None if they do not fit. The
            simulation is changed only in the first case.
        """
        groups = self.grouped(candidate)
        move = partial(self.consolidator.move, candidate, groups, more)
        return self._checked(candidate, move, decided=not compared)

    def leave_with_set(self, candidate: Candidate, new: Sequence[int]) -> Relocation | None:
        """Like `leave`, for a node of a replacement set, with the new nodes of that set.

        Args:
            candidate: The node that leaves.
            new: The rows of the new nodes.

        Returns:
            Where its pods go; None if it cannot leave, with nothing changed.
        """
        move = partial(self.simulator.move, candidate.node, self.grouped(candidate), new)
        found = self._checked(candidate, move, decided=True)
        return found if isinstance(found, Relocation) else None

    def leave_in_time(self, candidate: Candidate) -> Relocation | Blocker | None:
        """Like `leave`, with cheaper launching capacity that is reserved for no pod."""
        coming = self.consolidator.coming_rows(candidate)
        return self.leave(candidate, coming) if coming else None

    def leave_for_new(self, candidate: Candidate) -> NewNodes | Blocker | None:
        """Like `leave`, with new nodes, which take pods after all others.

        Returns:
            The fewest nodes of the cheapest fleet that suffice, with the candidate's pods moved as
            if they had joined; or why none may be asked for; or None if none suffices. The
            simulation is changed only in the first case.
        """
        blocker: Blocker | None = None
        checkpoint = self.simulator.checkpoint()
        # How many nodes did not suffice, by what tells fleets' nodes apart.
        tried: dict[Hashable, int] = {}
        for key in self.consolidator.cheaper_fleets(candidate):
            enough = self.consolidator.blocker_for_asking_again(candidate, key)
            if enough is not None:
                blocker = enough
                continue
            alike, most = self._new_rows.alike(key), self.consolidator.most(candidate, key)
            for count in range(tried.get(alike, 0) + 1, most + 1):
                found = self._leave_for(candidate, key, count)
                if isinstance(found, Relocation):
                    return self._unless_removals_save_more(
                        candidate, NewNodes(key=key, count=count), checkpoint
                    )
                blocker = blocker or found
                tried[alike] = count
        return blocker or self.consolidator.blocker_for(candidate)

    def _unless_removals_save_more(
        self, candidate: Candidate, new: NewNodes, before: Checkpoint
    ) -> NewNodes | Blocker:
        """Return the new nodes, unless other nodes could leave onto the candidate and save as much.

        Args:
            candidate: The candidate, whose pods have been moved to the new nodes. The moves are
                undone if it is to stay.
            new: The nodes.
            before: The state before its pods were moved.
        """
        if candidate.must_go or candidate.outdated is not None:
            return new
        competing = self._competing
        self.simulator.undo(before)
        others = competing.that_may_come_to(candidate)
        self._leave_for(candidate, new.key, new.count)
        if competing.all_have_places(others):
            return new
        without = competing.removable(others)
        if len(without) == len(others):
            return new
        self.simulator.undo(before)
        coming = competing.removable(others)
        worth = competing.worth(without) + competing.worth_of_new(candidate, new.key, new.count)
        if competing.worth(coming) < worth:
            self._leave_for(candidate, new.key, new.count)
            return new
        names = ", ".join(each.node.name for each in coming)
        pods = f"the pods of {names} can come here"
        return Blocker("consolidation", f"{pods}, which saves as much and needs no new node")

    def blocker_of_successor(
        self, candidate: Candidate, *, some_zone: bool = False
    ) -> Blocker | None:
        """Return why its own fleet is not asked for a replacement; None if it may be.

        It has to be able to leave once that node has joined. Nothing is changed.

        Args:
            candidate: The candidate.
            some_zone: Whether it suffices that it can leave if the node joins in some zone;
                otherwise it must be able to whatever the zone.
        """
        key = candidate.status.key
        enough = self.consolidator.blocker_for_asking_again(candidate, key)
        if enough is not None:
            return enough
        spec = self._context.view.offers[key].row
        seen = candidate.node.labels.get(ZONE, "")
        blocker: Blocker | None = None
        for row_spec in in_some_zone(spec, seen) if some_zone else [spec]:
            answer = self._with_one_more(candidate, row_spec)
            if isinstance(answer, Relocation):
                return None
            blocker = blocker or answer
        if blocker is None:
            return Blocker(
                "no-destination",
                f"its pods fit on no other node, nor on one more of {key.name} in whichever "
                "zone it starts",
            )
        return blocker

    def _with_one_more(self, candidate: Candidate, spec: RowSpec) -> Relocation | Blocker | None:
        """Return the result of `leave` with such a new node, in the first zone where that fails.

        kube-scheduler may put any pods on the new node. Nothing is changed.
        """
        checkpoint, found = self.simulator.checkpoint(), None
        for row_spec in [*in_each_zone(spec), spec]:
            rows = [self.simulator.add_row(row_spec)]
            self.simulator.open(rows)
            found = self.leave(candidate, rows)
            self.simulator.undo(checkpoint)
            if not isinstance(found, Relocation):
                break
        return found

    def blocker_of(self, candidate: Candidate, *, in_time: bool = True) -> Blocker | None:
        """Return why it could not leave, if its turn had come; None if it could.

        Nothing is changed.

        Args:
            candidate: The node.
            in_time: Whether it may wait for launching and new nodes.
        """
        checkpoint = self.simulator.checkpoint()
        found: Relocation | NewNodes | Blocker | None = self.leave(candidate)
        if found is None and in_time:
            found = self.leave_in_time(candidate) or self.leave_for_new(candidate)
        self.simulator.undo(checkpoint)
        if found is None:
            return Blocker("no-destination", "its pods fit on no other node")
        return found if isinstance(found, Blocker) else None

    def _leave_for(
        self, candidate: Candidate, key: FleetKey, count: int
    ) -> Relocation | Blocker | None:
        """Like `leave`, with `count` new nodes of the fleet, whatever the zone they join in."""
        checkpoint, found = self.simulator.checkpoint(), None
        for spec in self._new_rows.specs(key):
            self.simulator.undo(checkpoint)
            rows = [self.simulator.add_row(spec) for _ in range(count)]
            move = partial(self.simulator.move, candidate.node, self.grouped(candidate), rows)
            found = self._checked(candidate, move)
            if not isinstance(found, Relocation):
                self.simulator.undo(checkpoint)
                return found
        return found

    def _checked(
        self, candidate: Candidate, move: Callable[[], Relocation | None], *, decided: bool = False
    ) -> Relocation | Blocker | None:
        """Make the moves, and return them; if something speaks against them, undo them.

        Args:
            candidate: The node that leaves.
            move: Makes the moves.
            decided: Whether it is not compared with more expensive nodes: a set has been already.
        """
        checkpoint, receiving = self.simulator.checkpoint(), frozenset(self.simulator.receiving)
        moves = move()
        if moves is None:
            return None
        why = self._objection(candidate, moves, receiving, decided=decided)
        if why is None:
            return moves
        self.simulator.undo(checkpoint)
        return why

    def _objection(
        self, candidate: Candidate, moves: Relocation, receiving: frozenset[int], *, decided: bool
    ) -> Blocker | None:
        """Return what speaks against the moves that were just made; None if nothing."""
        if not self.simulator.survives_spreading(moves):
            tight = "its pods fit elsewhere only when packed more tightly than kube-scheduler does"
            return Blocker("no-destination", tight)
        if not self._context.demand_margin.holds(
            candidate.status.settings.sector, self.simulator.staying
        ):
            return NEEDED_BACK
        # A node that must go would otherwise stay for good. Headroom is bought again, once.
        taken = None if candidate.must_go else self._kept_headroom.blocker(moves)
        if taken is not None:
            return taken
        not_worth_it = self._short_lived.blocker(candidate, moves, receiving)
        if not_worth_it is not None or decided or candidate.must_go:
            return not_worth_it
        more_expensive = self._conflict.conflicting_candidate(candidate, moves, receiving)
        if more_expensive is not None:
            because = (
                f"the pods of {more_expensive.node.name}, which costs more, would need one like it"
            )
            return Blocker("consolidation", because)
        return None
