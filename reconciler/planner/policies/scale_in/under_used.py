"""Nodes with pods that are not needed: emptied when every pod fits elsewhere."""

from datetime import timedelta

from reconciler.model.actions import UNNEEDED_SINCE
from reconciler.planner.cycle import Cycle, Removal
from reconciler.planner.disruption.move_cost import moves_and_saving
from reconciler.planner.leaving.drains import begin_drain, evictions
from reconciler.planner.leaving.kept import keep
from reconciler.planner.leaving.mover import Mover
from reconciler.planner.leaving.moves import Moves, placements_of
from reconciler.planner.leaving.rounds import DrainProgress
from reconciler.planner.leaving.timers import start_timer, stop_timer
from reconciler.planner.leaving.waiting_removals import (
    selects_only_what_goes,
    why_nothing_is_bought,
)
from reconciler.planner.policies.scale_in.bars import IN_USE, NEEDED_BACK, Bar, at_minimum
from reconciler.planner.policies.scale_in.candidates import Candidate, examined, lasting_bar
from reconciler.planner.policies.scale_in.consolidate import NewNodes, is_departing
from reconciler.planner.policies.scale_in.departures import Departures
from reconciler.planner.policies.scale_in.scene import Scene
from reconciler.planner.text import counted_noun, duration


def remove_under_used(scene: Scene, candidates: list[Candidate]) -> None:
    """Empty ripe candidates within the limits, and keep the timers of all the others right."""
    if candidates:
        _Emptier(scene, candidates).run()


class _Emptier:
    """One pass over the candidates, each seeing what the ones before it took."""

    def __init__(self, scene: Scene, candidates: list[Candidate]) -> None:
        self._scene = scene
        self._examined = examined(scene, candidates)
        last = [c.node.name for c in reversed(candidates)]
        self._mover = Mover(scene.cycle, scene.closed, last, scene.under_way)
        self._departures = Departures(scene, self._mover, self._examined)
        scene.not_looked_at |= {c.node.name for c in candidates}
        scene.not_looked_at -= {c.node.name for c in self._examined}

    def run(self) -> None:
        """Begin what may begin; what is only simulated for the timers is undone at the end."""
        row_of = self._scene.cycle.row_of
        leaving = [(row_of[c.node.name], self._departures.grouped(c)) for c in self._examined]
        self._mover.room_at_first.expect(leaving)
        rest = [c for c in self._examined if not self._begin(c)]
        mark = self._mover.mark()
        for candidate in rest:
            self._tend_timer(candidate)
        self._mover.undo(mark)

    def _begin(self, candidate: Candidate) -> bool:
        """Begin the drain if everything allows it now; why not is noted."""
        scene, mover, node = self._scene, self._mover, candidate.node
        cycle = scene.cycle
        why = _limit(scene, mover, candidate)
        if why is not None:
            keep(cycle, node, *why)
            return False
        moves = self._departures.leave(candidate)
        if moves is None:
            return self._replace(candidate)
        if not isinstance(moves, Moves):
            keep(cycle, node, *moves)
            return False
        mover.begin(moves)
        cycle.used_rows.update(moves.rows)
        taken = {cycle.row_name(row) for row in moves.rows}
        for name in taken:
            scene.unneeded.pop(name, None)
        scene.closed -= taken
        scene.waiting -= taken
        scene.spares -= taken
        scene.room.leave(candidate.status.key)
        scene.budgets.take(candidate.status.key)
        scene.blast_radius.take(candidate.moving)
        scene.non_empty_begun += 1
        cycle.removals.append(_removal(cycle, candidate, moves))
        return True

    def _replace(self, candidate: Candidate) -> bool:
        """Ask for the cheaper node that could take its pods, once; whether one is to be had.

        Its pods keep their places until the node has come: given to others meanwhile, they would
        make the purchase vain.
        """
        cycle, node, departures = self._scene.cycle, candidate.node, self._departures
        answer = departures.leave_in_time(candidate) or departures.leave_for_new(candidate)
        code = "removal" if is_departing(candidate) else "consolidation"
        match answer:
            case Moves():
                self._scene.non_empty_begun += 1
                self._scene.budgets.take(candidate.status.key)
                keep(cycle, node, code, "nodes that take its pods are launching")
            case NewNodes(text=text):
                departures.consolidator.ask_for(candidate, answer)
                keep(cycle, node, code, f"it goes when {text} came for its pods")
            case None:
                return False
            case why, detail:
                keep(cycle, node, why, detail)
                return False
        return True

    def _tend_timer(self, candidate: Candidate) -> None:
        """A node is unneeded while its pods fit elsewhere, with those of the ones before it."""
        cycle, node = self._scene.cycle, candidate.node
        needed = self._needed(candidate)
        if needed is not None:
            keep(cycle, node, *needed)
            stop_timer(cycle, node, needed[1])
            return
        if UNNEEDED_SINCE not in node.annotations or candidate.since is None:
            start_timer(cycle, node, f"unneeded from now: {candidate.because}")
        else:
            self._scene.unneeded[node.name] = candidate.policy

    def _needed(self, candidate: Candidate) -> Bar | None:
        """Why the node is needed after all; None when it is not, or only in this very plan."""
        cycle, status, departures = self._scene.cycle, candidate.status, self._departures
        if cycle.row_of[candidate.node.name] in self._mover.receiving:
            return IN_USE
        if not self._scene.room.may_leave(status.key):
            return at_minimum(status)
        found: Moves | NewNodes | Bar | None = departures.leave(candidate)
        if found is None:
            mark = self._mover.mark()
            found = departures.leave_in_time(candidate) or departures.leave_for_new(candidate)
            self._mover.undo(mark)
        if found is None:
            return _no_destination(cycle, candidate)
        if isinstance(found, Moves | NewNodes):
            return None
        # What demand needs back it needs for as long as this burst: its time need not run anew.
        return None if found == NEEDED_BACK else found


def _no_destination(cycle: Cycle, candidate: Candidate) -> Bar:
    """That its pods fit nowhere; of a fleet that is to go also what would have to change."""
    nowhere = "its pods fit on no other node"
    if not is_departing(candidate):
        return "no-destination", nowhere
    specs = [pod.spec for pod in candidate.placed]
    label = selects_only_what_goes(cycle.settings, specs)
    if label:
        owner = f"pods there select {label}, which only fleets that are to go have"
        return "no-destination", f"{owner}: it stays until their owner changes the selector"
    return "no-destination", f"{nowhere}: {why_nothing_is_bought(cycle, specs)}"


def _limit(scene: Scene, mover: Mover, candidate: Candidate) -> Bar | None:
    """What keeps a candidate from being drained in this plan, for now."""
    cycle, settings = scene.cycle, candidate.status.settings.scale_in
    if cycle.row_of[candidate.node.name] in mover.receiving:
        return IN_USE
    settles = candidate.settles_for(cycle.at)
    if not candidate.unneeded_long_enough(cycle.at):
        waits = timedelta(seconds=settings.unneeded_seconds)
        waits -= cycle.at - (candidate.since or cycle.at)
        return "unneeded-time", f"{candidate.because}; {duration(waits)} to go"
    if settles is not None:
        return "settling", f"a pod was placed there a short time ago; {duration(settles)} to go"
    found = lasting_bar(scene, candidate)
    if found is not None:
        return found
    if scene.non_empty_draining + scene.non_empty_begun >= settings.non_empty_at_once_max:
        return "max-non-empty-at-once", "enough nodes with pods are being emptied"
    return scene.budgets.blocker(candidate.status.key, candidate.reason)


def _removal(cycle: Cycle, candidate: Candidate, moves: Moves) -> Removal:
    """The removal with the evictions that budgets allow now; they are used up with it."""
    node, settings = candidate.node, candidate.status.settings.scale_in
    rounds = cycle.budgets.rounds(candidate.moving)
    now = cycle.budgets.take_now(candidate.moving)
    evicted = {pod.key for pod in now}
    fit = "fits" if len(candidate.moving) == 1 else "fit"
    pods = counted_noun(len(candidate.moving), "pod")
    because = f"{candidate.because}; {pods} {fit} elsewhere"
    offer = cycle.offers[candidate.status.key]
    if offer.priced and not candidate.status.settings.departing:
        price, cost = offer.nano_usd_per_hour, settings.move_cost_usd
        because += f"; {moves_and_saving(candidate.moving, price, cost)}"
    if rounds > 1:
        because += f"; budgets let them go in {rounds} rounds, {len(now)} now"
    policy, grace = candidate.policy, settings.graceful_termination_max_seconds
    progress = DrainProgress(at=cycle.at, rounds=rounds, to_evict=len(candidate.moving), ending=0)
    moved = evictions(node, now, grace, policy, because)
    return Removal(
        key=candidate.status.key,
        node=node.name,
        actions=begin_drain(cycle, node, (moved, progress), policy, because),
        placements=tuple(p for p in placements_of(cycle, moves) if p.pod in evicted),
    )
