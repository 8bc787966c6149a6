"""Nodes on their way out: ended when empty, drained on while not, given back when needed."""

from datetime import timedelta

from reconciler.model.actions import (
    DRAIN_PROGRESS,
    DRAIN_STARTED,
    AnyAction,
    TerminateInstance,
    ends_drain,
)
from reconciler.model.cluster import Node, Pod
from reconciler.model.counted import counts
from reconciler.model.ids import FleetId, FleetKey
from reconciler.planner.cycle import Cycle
from reconciler.planner.disruption.blockers import irreplaceable_pod, protection
from reconciler.planner.disruption.drain_simulator import DrainSimulator
from reconciler.planner.disruption.drains import (
    annotate,
    delete_when_terminated,
    drain_started,
    end_of_drain,
    evictions,
    give_back,
    give_up,
    terms_of,
)
from reconciler.planner.disruption.idleness import counted, kept_by_duplicate
from reconciler.planner.disruption.kept import keep
from reconciler.planner.disruption.relocation import Relocation, grouped, placements_of
from reconciler.planner.disruption.rounds import drain_progress, overdue
from reconciler.planner.disruption.stuck_terminating import STUCK_AFTER
from reconciler.planner.disruption.timers import stop_timer
from reconciler.planner.fleets.inventory import (
    is_draining,
    is_draining_voluntarily,
)
from reconciler.planner.fleets.live import LIVE_STATES
from reconciler.planner.policies.scale_in.blockers import (
    at_minimum,
    blocking_pod,
    comes_again,
)
from reconciler.planner.rules import Judge, Verdict, judge_of
from reconciler.planner.settings import ScaleInSettings
from reconciler.planner.text import counted_noun, duration, rfc3339


def finish_leaving(cycle: Cycle) -> list[Relocation]:
    """Delete Node objects of ended instances; end, drain on or give back draining nodes.

    Returns:
        Where the pods of nodes that drain on go.
    """
    taken_back = {action.node for action in cycle.actions if ends_drain(action)}
    under_way: list[tuple[Node, FleetKey]] = []
    for node in cycle.nodes.values():
        key = cycle.inventory.fleet_of_node.get(node.name)
        if key is None:
            _let_alone(cycle, node)
        elif node.name in cycle.inventory.leaving:
            delete_when_terminated(cycle, node, cycle.statuses[key].settings.provider)
        elif node.name in taken_back:
            stop_timer(cycle, node, "demand came back")
        elif is_draining(node):
            under_way.append((node, key))
        elif DRAIN_STARTED in node.annotations:
            # The taint came off, and then the program was killed or its call failed.
            cycle.actions += end_of_drain(cycle, node, "scale-in", "its drain is over")
    if not under_way:
        return []
    leaver = _Leaver(cycle)
    for node, key in under_way:
        if is_draining_voluntarily(node):
            leaver.finish(node, key)
    return leaver.begun


def _let_alone(cycle: Cycle, node: Node) -> None:
    """Give a node back whose fleet lives, but is not, or no more, to be emptied."""
    begun = is_draining_voluntarily(node)
    if not (begun or DRAIN_STARTED in node.annotations) or not _is_of_unnamed_fleet(cycle, node):
        return
    because = "allow_destroy does not list its fleet any more"
    if begun:
        cycle.actions += give_back(node, "scale-in", because)
    else:
        cycle.actions += end_of_drain(cycle, node, "scale-in", because)


def _is_of_unnamed_fleet(cycle: Cycle, node: Node) -> bool:
    """Whether its instance runs in a fleet that lives and that the config does not name."""
    instance, cloud = cycle.inventory.instance_of_node.get(node.name), cycle.snapshot.cloud
    if instance is None or instance.gone or cloud is None:
        return False
    known = {fleet.name for fleet in cycle.settings.fleets()}
    return any(
        (fleet.region, fleet.id) == (instance.region, instance.fleet_id)
        and fleet.state in LIVE_STATES
        and fleet.name not in known
        for fleet in cloud.fleets
    )


class _Leaver:
    """Goes on with drains, one node after the other."""

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._simulator = DrainSimulator(cycle)
        self.begun: list[Relocation] = []
        """The moves of the nodes that drain on."""
        self._going_on: dict[FleetKey, int] = {}
        """Nodes per fleet that drain on: they will lower its target too."""

    def finish(self, node: Node, key: FleetKey) -> None:
        """Whatever comes next for the node."""
        cycle, status = self._cycle, self._cycle.statuses[key]
        pods = cycle.pods_on.get(node.name, [])
        judge = judge_of(terms_of(status.settings.scale_in), cycle.budgets.coverage)
        begun = DRAIN_STARTED in node.annotations
        remaining = cycle.targets[key] - 1 - self._going_on.get(key, 0)
        beside = [pod for pod in pods if not counts(pod)]
        kept = protection(cycle, node) or irreplaceable_pod(judge, beside)
        because = kept_by_duplicate(cycle, node)
        if kept is not None:
            because = f"{kept.detail}: it may not be removed"
        elif not _already_lowered(cycle, key) and remaining < status.min:
            because = at_minimum(status)[1]
        elif cycle.row_of[node.name] in cycle.used_rows or (counted(pods) and not begun):
            because = "it is used again"
        if because:
            cycle.actions += give_back(node, "scale-in", because)
        elif status.out_of_reach or cycle.inventory.is_unseen(node, key):
            return  # no answer, a late one, or it is gone: no pod is evicted, nothing is ended
        elif counted(pods):
            self._drain_on(node, key, pods, judge)
        elif _evicted_lately(cycle, node):
            return
        elif node.instance_id is not None:
            _end(cycle, node, key)

    def _drain_on(self, node: Node, key: FleetKey, pods: list[Pod], judge: Judge) -> None:
        """Evict what is still there, unless time is up or the end is no longer in sight."""
        cycle = self._cycle
        settings = cycle.statuses[key].settings.scale_in
        rulings = list(judge.rulings(pods))
        left = [pod for pod, ruling in rulings if ruling.verdict is Verdict.OK]
        moving = [*left, *(pod for pod, ruling in rulings if comes_again(pod, ruling))]
        ending = sum(ruling.verdict is Verdict.WAIT for _, ruling in rulings)
        moves = None
        barred = blocking_pod(rulings)
        why = barred[1] if barred else _too_long(cycle, node, settings, len(left), ending)
        if not why:
            moves = self._simulator.move(node, grouped(cycle, moving))
            why = "" if moves else "its pods fit nowhere else any more"
        if moves is None:
            cycle.actions += give_up(cycle, node, "scale-in", why)
            return
        self.begun.append(moves)
        self._going_on[key] = self._going_on.get(key, 0) + 1
        cycle.used_rows.update(moves.rows)
        cycle.actions += _noted(cycle, node, len(left), ending)
        # A budget may allow some now and the rest later: as after a 429, those are asked again.
        refused = cycle.budgets.refusal(left)
        now = cycle.budgets.take_now(left)
        allowed = {pod.key for pod in now}
        because = "its drain goes on"
        if len(now) < len(left):
            because += f": {len(now)} of {counted_noun(len(left), 'pod')} now, as {refused}"
            keep(cycle, node, "budget", because)
        grace = settings.graceful_termination_max_seconds
        cycle.actions += evictions(node, now, grace, "scale-in", because)
        cycle.placements += [move for move in placements_of(cycle, moves) if move.pod in allowed]


def _evicted_lately(cycle: Cycle, node: Node) -> bool:
    """Whether pods that seem stuck have not had their time by our clock.

    Their deletion is dated by the API server's, which may be far behind ours.
    """
    graces = [
        p.spec.termination_grace_seconds for p in cycle.stuck_terminating_on.get(node.name, ())
    ]
    started = drain_started(cycle, node)
    if not graces or started is None:
        return False
    return cycle.at - started <= timedelta(seconds=max(graces)) + STUCK_AFTER


def _too_long(
    cycle: Cycle, node: Node, settings: ScaleInSettings, to_evict: int, ending: int
) -> str:
    """Why the drain has failed by the clock; empty when there is time left."""
    started = drain_started(cycle, node) or cycle.at
    progress = drain_progress(node, cycle.at)
    if progress is not None:
        return overdue(progress.after(cycle.at, to_evict, ending), started, cycle.at, settings)
    limit_seconds = settings.pod_eviction_timeout_seconds
    if not to_evict:
        limit_seconds += settings.graceful_termination_max_seconds
    spent = cycle.at - started
    if spent <= timedelta(seconds=limit_seconds):
        return ""
    return f"not empty {duration(spent)} after its drain began"


def _noted(cycle: Cycle, node: Node, to_evict: int, ending: int) -> list[AnyAction]:
    """What has changed of the drain's marks: how far it is, or a start that cannot be read.

    Such a start is written again, so that the drain can time out.
    """
    marks: list[tuple[str, str, str]] = []
    text = node.annotations.get(DRAIN_STARTED, "")
    started = drain_started(cycle, node)
    if started is None or (started >= cycle.at and text != rfc3339(cycle.at)):
        marks.append((DRAIN_STARTED, rfc3339(cycle.at), "the start of its drain is not readable"))
    progress = drain_progress(node, cycle.at)
    if progress is not None:
        now = str(progress.after(cycle.at, to_evict, ending))
        if now != node.annotations[DRAIN_PROGRESS]:
            marks.append((DRAIN_PROGRESS, now, "its drain in rounds has come further"))
    return [annotate(node, key, value, "scale-in", because) for key, value, because in marks]


def _end(cycle: Cycle, node: Node, key: FleetKey) -> None:
    status = cycle.statuses[key]
    lowered = _already_lowered(cycle, key)
    if not lowered:
        cycle.targets[key] -= 1
    if node.instance_id is not None:
        cycle.actions.append(
            TerminateInstance(
                instance=node.instance_id,
                node=node.name,
                fleet=key.name,
                fleet_id=status.live.id if status.live else FleetId(""),
                provider=status.settings.provider,
                region=key.region,
                decrement=not lowered,
                precondition="empty",
                from_capacity=status.current,
                stuck_terminating=cycle.stuck_terminating(node.name),
                policy="scale-in",
                because="drained and still empty",
            )
        )


def _already_lowered(cycle: Cycle, key: FleetKey) -> bool:
    """Whether the target was lowered for this node before, but the node was not ended.

    More nodes than the target asks for, when all that this plan ends are gone, say so: after a
    crash between the two steps the target must not go down twice. A target that this plan raises
    for nodes to come asks for them on top of all that have joined. Nodes and instances that are
    replaced do not count: the target still asks for them.
    """
    ending = sum(
        1
        for action in cycle.actions
        if isinstance(action, TerminateInstance)
        and action.precondition == "empty"
        and (action.fleet, action.region) == (key.name, key.region)
    )
    return cycle.statuses[key].joined - ending > cycle.targets[key]
