"""Drains candidates that have pods, if the pods fit on other nodes or on replacements."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from reconciler.model.actions import DeletePod, EvictPod
from reconciler.model.ids import NodeName
from reconciler.model.text import counted_noun, duration
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.builder_values import Removal
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption.blockers.move_cost import moves_and_saving
from reconciler.planner.disruption.blockers.pods import IN_USE, NEEDED_BACK, at_minimum
from reconciler.planner.disruption.blockers.settling import settles
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.candidate_selection import find_candidates, lasting_blocker
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.drains.actions import begin_drain, evictions
from reconciler.planner.disruption.drains.overdue import (
    evictions_and_deletions,
    reset_overdue_timer,
)
from reconciler.planner.disruption.drains.rounds import DrainProgress
from reconciler.planner.disruption.drains.timers import start_timer, stop_timer
from reconciler.planner.disruption.empty_nodes import find_eligible
from reconciler.planner.disruption.examined_nodes import examined
from reconciler.planner.disruption.no_destination import no_destination
from reconciler.planner.disruption.replacement.consolidator import NewNodes
from reconciler.planner.disruption.replacement.removal_trials import RemovalTrials
from reconciler.planner.disruption.replacement.successor import (
    ask_for_successor,
    waits_for_its_group,
    waits_for_successor,
    waits_for_what_is_owed,
)
from reconciler.planner.disruption.simulator.drain_simulator import DrainSimulator
from reconciler.planner.disruption.simulator.relocation import Relocation, placements_of
from reconciler.planner.disruption.unneeded import UnneededNodes

ENOUGH_AT_ONCE: Final = Blocker("max-non-empty-at-once", "enough nodes with pods are being emptied")
_LIMITS: Final = frozenset({ENOUGH_AT_ONCE.code, "disruption-budget"})
"""Codes of limits on the number of disrupted nodes, which say nothing about one node."""


class VoluntaryRun:
    """What the voluntary methods share: candidates, the what-if cluster, the limits.

    Each method begins drains of the candidates that it selects; each candidate sees where the pods
    of those before it went.

    Args:
        context: The limits of this plan, made after earlier drains were continued.
    """

    def __init__(self, context: DisruptionContext) -> None:
        self.context = context
        self.empty = find_eligible(context)
        self.candidates = find_candidates(context)
        self._examined: list[Candidate] = []
        self._rest: list[Candidate] = []
        """Candidates that no method has begun to drain."""
        self.limited_nodes: dict[NodeName, str] = {}
        """Candidates that only a limit on the number of disrupted nodes keeps, as far as they were
        examined, and the code of that limit."""
        self.turns_at_once_max = 0
        """The highest `max_non_empty_at_once` of those candidates' fleets; 0 if there are none."""

    def open(self) -> None:
        """Build the what-if cluster, after empty nodes have been dealt with."""
        context, candidates = self.context, self.candidates
        self._examined = examined(context, candidates) if candidates else []
        self._rest = self._examined
        last = [c.node.name for c in reversed(candidates)]
        self.simulator = DrainSimulator(context.builder, context.closed, last, context.under_way)
        self.trials = RemovalTrials(context, self.simulator, self._examined)
        looked_at = {c.node.name for c in self._examined}
        for candidate in candidates:
            if candidate.node.name not in looked_at:
                self._leave_for_later(candidate)
        row_of = context.view.row_of
        emptied = [(row_of[c.node.name], self.trials.grouped(c)) for c in self._examined]
        self.simulator.initial_room.expect(emptied)

    def _leave_for_later(self, candidate: Candidate) -> None:
        """Leave the candidate to a later plan; it keeps its timer, if any, and its soft taint."""
        self.context.not_looked_at.add(candidate.node.name)
        waits = _waits_for_its_time(self.context, candidate) if candidate.timed else None
        if waits is not None:
            self.context.timed_for_later.add(candidate.node.name)
            self.context.builder.block(candidate.node, *waits)

    def drain(self, selects: Callable[[Candidate], bool]) -> None:
        """Begin the drains of the selected candidates as far as the limits allow.

        A node of a set leaves with its set, unless it must go anyway: then what its own method
        waits for counts, and so do the budgets for its own reason.
        """
        sets, rest = self.context.sets, []
        for candidate in self._rest:
            of_set = sets.set_of(candidate.node.name)
            if not selects(candidate) or (of_set is not None and not candidate.must_go):
                rest.append(candidate)
                continue
            with self.simulator.closed(() if of_set is None else of_set.names):
                dealt_with = self._begin(candidate)
            if not dealt_with:
                rest.append(candidate)
        self._rest = rest

    def update_timers(self) -> None:
        """Start and stop the timers of the candidates; the simulated moves are undone."""
        sets = self.context.sets
        waiting = [c for c in self._rest if sets.set_of(c.node.name) is None]
        at = self.context.view.at
        unneeded = UnneededNodes(self.simulator, self.candidates, at, self._needed)
        needed = unneeded.among(waiting)
        for candidate in waiting:
            self._update_timer(candidate, needed[candidate.node.name])

    def limit_of(self, candidate: Candidate, *, decided: bool = False) -> Blocker | None:
        """Return what keeps a candidate from being drained in this plan, for now; None if nothing.

        Args:
            candidate: The node.
            decided: Whether it leaves as one of a set: then it has no timer, and the disruption
                budgets for consolidation apply.
        """
        why = _limit(self.context, self.simulator, candidate, decided=decided)
        if why is not None and why.code in _LIMITS and self._at_once_max(candidate):
            self.limited_nodes[candidate.node.name] = why.code
            if why == ENOUGH_AT_ONCE:
                own = candidate.status.settings.scale_in.non_empty_at_once_max
                self.turns_at_once_max = max(self.turns_at_once_max, own, 1)
        return why

    def _at_once_max(self, candidate: Candidate) -> int:
        """Return how many nodes like this one may be drained at a time; with 0 it never leaves."""
        return self.context.non_empty_at_once_max(candidate.status.settings, candidate.policy)

    def _begin(self, candidate: Candidate) -> bool:
        """Begin the drain, or note why it cannot begin; return whether it is dealt with."""
        builder, node = self.context.builder, candidate.node
        if candidate.outdated is not None and candidate.outdated.waits:
            builder.block(node, "replacement", candidate.outdated.waits)
            return True
        why = self.limit_of(candidate) or _waits_for_a_set(self.context, candidate)
        if why is not None:
            self._block(candidate, why)
            return False
        if not self.context.removal_quota.allows(candidate.status.key, node.name):
            return self._ask_for_successor(candidate)
        moves = self.trials.leave(candidate)
        if moves is None:
            return self._replace(candidate)
        if not isinstance(moves, Relocation):
            self._block(candidate, moves)
            return False
        self.begin(candidate, moves)
        return True

    def begin(self, candidate: Candidate, moves: Relocation) -> None:
        """Begin the drain whose moves were made in the what-if cluster."""
        context, builder = self.context, self.context.builder
        self.simulator.begin(moves)
        builder.reserve_moves(moves.rows)
        taken = {builder.row_name(row) for row in moves.rows}
        for name in taken:
            context.unneeded.pop(name, None)
        context.closed -= taken
        context.waiting -= taken
        context.spares -= taken
        context.timed_for_later -= taken
        context.removal_quota.take(candidate.status.key, candidate.node.name)
        context.non_empty_begun += 1
        builder.begin_removal(_removal(context, candidate, moves))

    def _ask_for_successor(self, candidate: Candidate) -> bool:
        """Ask the candidate's fleet, which is at its minimum, for one more node.

        No node is asked for that its pods could not use: that would be ended as idle, and asked for
        again.

        Returns:
            Whether the candidate is dealt with: a node was asked for, now or earlier.
        """
        status, outdated = candidate.status, candidate.outdated
        if outdated is not None and outdated.replaced_by_group:
            self.context.builder.block(candidate.node, *waits_for_its_group(status.key))
            return True
        own = outdated is None or not outdated.has_batch
        if own and waits_for_what_is_owed(self.context, candidate.node, status):
            self.context.non_empty_begun += 1
            return True
        why = self.trials.blocker_of_successor(candidate) if own else None
        if why is not None:
            self.context.builder.block(candidate.node, *why)
            return False
        asked = ask_for_successor(self.context, candidate.node, status, outdated)
        if asked and own:
            # It is drained next: no more nodes are asked for than may be drained at once.
            self.context.non_empty_begun += 1
            self.trials.consolidator.note(candidate, status.key)
        return asked

    def _replace(self, candidate: Candidate) -> bool:
        """Ask for the cheaper nodes that could take its pods; return whether it is dealt with.

        Its pods keep their places until these have joined: if other pods took the places, the
        purchase would be useless.
        """
        builder, node, trials = self.context.builder, candidate.node, self.trials
        answer: Relocation | NewNodes | Blocker | None = trials.leave_in_time(candidate)
        outdated = candidate.outdated
        if answer is None and outdated is not None and outdated.replaced_by_group:
            builder.block(node, *waits_for_its_group(candidate.status.key))
            return True
        if outdated is None or not outdated.has_batch:
            answer = answer or trials.leave_for_new(candidate)
        code = _code(candidate)
        match answer:
            case Relocation():
                self.context.non_empty_begun += 1
                self.context.ledger.take_node(candidate.status.key, node.name)
                builder.block(node, code, "nodes that take its pods are launching")
            case NewNodes(text=text):
                trials.consolidator.ask_for(candidate, answer)
                joined = "has joined" if answer.count == 1 else "have joined"
                builder.block(node, code, f"it is drained when {text} {joined} to take its pods")
            case None:
                if (
                    candidate.outdated is not None
                ):  # a node with a timer is blocked in `_update_timer`
                    waits = _waits_for_its_batch(builder, candidate)
                    builder.block(node, *(waits or no_destination(builder, candidate)))
                return False
            case Blocker():
                self._block(candidate, answer)
                return False
        return True

    def _update_timer(self, candidate: Candidate, needed: Blocker | None) -> None:
        builder, node = self.context.builder, candidate.node
        if needed is not None:
            self._block(candidate, needed)
            because = f"no longer unneeded: {needed[1]}; its timer is removed"
            stop_timer(builder, node, because)
            return
        if not candidate.timed:
            start_timer(builder, node, f"unneeded from now: {candidate.because}")
            self.context.chosen_now.add(node.name)
        else:
            self.context.unneeded[node.name] = candidate.policy

    def _block(self, candidate: Candidate, why: Blocker) -> None:
        """Note why the node stays.

        For a drifted node outside the batch nothing is noted: of several reasons the last one is
        shown, and it should show what its update waits for.
        """
        builder, name = self.context.builder, candidate.node.name
        update = builder.view.inventory.updates.get(candidate.status.key)
        drifted = update is not None and name in update.old.keys() - update.batch.keys()
        if candidate.outdated is not None or not drifted:
            builder.block(candidate.node, *why)

    def _needed(self, candidate: Candidate) -> Blocker | None:
        """Return why the node is needed; None if it is not, or not beyond this plan."""
        builder, status, trials = self.context.builder, candidate.status, self.trials
        if builder.view.row_of[candidate.node.name] in self.simulator.receiving:
            return IN_USE
        if candidate.outdated is not None:
            return None
        if not self.context.removal_quota.allows(status.key, candidate.node.name):
            return at_minimum(status)
        found: Relocation | NewNodes | Blocker | None = trials.leave(candidate)
        if found is None:
            checkpoint = self.simulator.checkpoint()
            found = trials.leave_in_time(candidate)
            found = found or trials.leave_for_new(candidate)
            self.simulator.undo(checkpoint)
        if found is None:
            return no_destination(builder, candidate)
        if isinstance(found, Relocation | NewNodes):
            return None
        # Demand needs it only as long as this burst lasts: its time need not start again
        # afterwards.
        return None if found == NEEDED_BACK else found


def _code(candidate: Candidate) -> str:
    """Return the code of a node that leaves when new nodes have joined for its pods."""
    if candidate.outdated is not None:
        return "replacement"
    return "removal" if candidate.status.settings.departing else "consolidation"


def _waits_for_its_batch(builder: PlanBuilder, candidate: Candidate) -> Blocker | None:
    """Return a blocker while new nodes of its rolling update are still to join.

    None if the node is in no batch.
    """
    update = builder.view.inventory.updates.get(candidate.status.key)
    if update is None or candidate.node.name not in update.batch:
        return None
    if len(update.successors_taking_pods) >= update.successors_wanted:
        return None
    return waits_for_successor(candidate.status.key)


def _waits_for_a_set(context: DisruptionContext, candidate: Candidate) -> Blocker | None:
    """Return a blocker while nodes of its sector are replaced as a set; None if it need not wait.

    Only nodes that leave to save money wait.
    """
    if candidate.must_go or candidate.status.settings.sector not in context.sets.sectors:
        return None
    return Blocker("consolidation", "it waits until nodes of its sector have been replaced")


def _limit(
    context: DisruptionContext,
    simulator: DrainSimulator,
    candidate: Candidate,
    *,
    decided: bool,
) -> Blocker | None:
    """Return what `VoluntaryRun.limit_of` returns; nothing is noted."""
    view = context.view
    if view.row_of[candidate.node.name] in simulator.receiving:
        return IN_USE
    waits = None if decided else _waits_for_its_time(context, candidate)
    if waits is not None:
        return waits
    settling = candidate.settles_for(view.at)
    if settling is not None:
        return settles(settling, view.at)
    blocker = lasting_blocker(context, candidate)
    if blocker is not None:
        return blocker
    most = context.non_empty_at_once_max(candidate.status.settings, candidate.policy)
    if context.non_empty_draining + context.non_empty_begun >= most:
        return ENOUGH_AT_ONCE
    reason = "consolidation" if decided else candidate.reason
    return context.ledger.node_blocker(candidate.status.key, reason, candidate.node.name)


def _waits_for_its_time(context: DisruptionContext, candidate: Candidate) -> Blocker | None:
    """Return a blocker until it has been unneeded for `unneeded_time`; None afterwards."""
    at = context.view.at
    if candidate.unneeded_long_enough(at):
        return None
    waits = timedelta(seconds=candidate.status.settings.scale_in.unneeded_seconds)
    waits -= at - (candidate.since or at)
    detail = f"{candidate.because}; {duration(waits)} to go"
    return Blocker("unneeded-time", detail, at + waits)


def _removal(context: DisruptionContext, candidate: Candidate, moves: Relocation) -> Removal:
    """Return the removal with the evictions that budgets allow now; the ledger counts them."""
    builder, view = context.builder, context.view
    node, settings = candidate.node, candidate.status.settings.scale_in
    key = candidate.status.key
    now, rounds = context.ledger.begin_drain(key, node.name, candidate.moving)
    fit = "fits" if len(candidate.moving) == 1 else "fit"
    pods = counted_noun(len(candidate.moving), "pod")
    because = f"{candidate.because}; {pods} {fit} elsewhere"
    offer = view.offers[key]
    if offer.priced and not candidate.must_go:
        price, cost = offer.nano_usd_per_hour, settings.move_cost_usd
        because += f"; {moves_and_saving(candidate.moving, price, cost)}"
    moved: Sequence[EvictPod | DeletePod]
    if candidate.overdue(view.at):
        rounds, coverage = 1, builder.budgets.coverage
        moved = evictions_and_deletions(coverage, node, candidate.moving, now, because)
    else:
        if rounds > 1:
            because += f"; budgets let them go in {rounds} rounds, {len(now)} now"
        grace = settings.graceful_termination_max_seconds
        moved = evictions(node, now, grace, candidate.policy, because)
    evicted = {each.pod for each in moved}
    progress = DrainProgress(at=view.at, rounds=rounds, to_evict=len(candidate.moving), ending=0)
    # A drain that deletes pods goes on as it began.
    ordinary = not any(isinstance(each, DeletePod) for each in moved)
    notes = reset_overdue_timer(node) if ordinary and node.name in context.not_kept else []
    return Removal(
        key=key,
        node=node.name,
        actions=begin_drain(view, node, (moved, progress), candidate.policy, because, notes=notes),
        placements=tuple(p for p in placements_of(builder, moves) if p.pod in evicted),
    )
