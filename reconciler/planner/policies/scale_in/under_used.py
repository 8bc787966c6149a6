"""Nodes that are little used, or whose pods may bounce: emptied when every pod fits elsewhere."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.actions import UNNEEDED_SINCE
from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import FleetKey
from reconciler.planner.calendar import grace_seconds
from reconciler.planner.cycle import Cycle
from reconciler.planner.drains import begin_drain, keep, rests_until
from reconciler.planner.idleness import counted, is_empty, unneeded_since
from reconciler.planner.inventory import FleetStatus, is_draining
from reconciler.planner.moves import Mover, Moves, grouped
from reconciler.planner.policies.scale_in.bars import bar, pod_bar
from reconciler.planner.policies.scale_in.scene import Scene
from reconciler.planner.policies.scale_in.timers import start_timer, stop_timer
from reconciler.planner.removal import Removal
from reconciler.planner.rules import Verdict
from reconciler.planner.text import counted_noun, duration
from reconciler.planner.utilisation import Utilisation

EXAMINED_MIN = 50
EXAMINED_SHARE = 10
"""Nodes whose moves one plan simulates: a tenth of all, at least 50 (as Cluster Autoscaler does),
or as many as may go at once. The others keep their timers and have their turn a minute later."""

BOUNCE_AFTER = timedelta(seconds=1800)
"""Kluster Fleet Manager's figure for `bounce_deployment_pods`."""


@dataclass(slots=True, eq=False)
class Candidate:
    """A node that may be emptied, if its pods fit elsewhere."""

    node: Node
    status: FleetStatus
    moving: list[Pod]
    share: float
    bounces: bool
    """Its pods may bounce: no timer is needed, they have run for long."""
    since: datetime | None
    """Since when it has been unneeded; None when that begins now."""
    failures_rank: int
    """1 after a failed drain: others go first."""
    because: str

    def ripe(self, at: datetime) -> bool:
        """Whether it has been unneeded for `unneeded_time`."""
        if self.bounces:
            return True
        needed = timedelta(seconds=self.status.settings.scale_in.unneeded_seconds)
        return at - (self.since or at) >= needed

    def order(self) -> tuple[object, ...]:
        """Unneeded longest first, so that the choice stays the same from cycle to cycle."""
        waited = self.since is None, self.since.timestamp() if self.since else 0.0
        return (self.failures_rank, *waited, self.share, self.node.name)


def remove_under_used(scene: Scene) -> None:
    """Empty ripe candidates within the limits, and keep the timers of all the others right."""
    candidates = _candidates(scene)
    if not candidates:
        return
    last = [c.node.name for c in reversed(candidates)]
    mover = Mover(scene.cycle, scene.leaving, last)
    examined = _examined(scene, candidates)
    rest = [c for c in examined if not _begin(scene, mover, c)]
    mark = mover.mark()
    for candidate in rest:
        _tend_timer(scene, mover, candidate)
    mover.undo(mark)


def _examined(scene: Scene, candidates: list[Candidate]) -> list[Candidate]:
    """As many candidates as one plan has time for, those without a timer taking turns."""
    at_once = max(c.status.settings.scale_in.non_empty_at_once_max for c in candidates)
    most = max(EXAMINED_MIN, len(scene.cycle.nodes) // EXAMINED_SHARE, at_once)
    if len(candidates) <= most:
        return candidates
    timed = [c for c in candidates if c.since is not None]
    fresh = [c for c in candidates if c.since is None]
    turn = int(scene.cycle.at.timestamp() // 60) * most % max(1, len(fresh))
    return [*timed, *fresh[turn:], *fresh[:turn]][:most]


def _candidates(scene: Scene) -> list[Candidate]:
    """Every node that its use, its annotations and its pods allow to empty, in order."""
    cycle = scene.cycle
    utilisation = Utilisation(cycle)
    found: list[Candidate] = []
    for node in cycle.nodes.values():
        key = cycle.inventory.fleet_of_node.get(node.name)
        if key is None or is_draining(node) or node.name in cycle.inventory.leaving:
            continue
        if not is_empty(cycle, node):
            candidate = _candidate(scene, utilisation, node, key)
            if candidate is None:
                stop_timer(cycle, node)
            else:
                found.append(candidate)
    return sorted(found, key=Candidate.order)


def _candidate(
    scene: Scene, utilisation: Utilisation, node: Node, key: FleetKey
) -> Candidate | None:
    cycle, status = scene.cycle, scene.cycle.statuses[key]
    if cycle.row_of[node.name] in cycle.used_rows:
        return None
    share, threshold = utilisation.highest(node.name), status.settings.scale_in
    pods = cycle.pods_on.get(node.name, [])
    bounces = status.settings.bounce_deployment_pods and _bounce(cycle, pods)
    if share >= threshold.utilization_threshold and not bounces:
        return None
    rulings = scene.judge(status.settings).rulings(pods)
    barred = bar(cycle, node, status) or _too_young(cycle, node, status) or pod_bar(rulings)
    moving = [pod for pod, ruling in rulings if ruling.verdict is Verdict.OK]
    if barred is not None or not moving:
        keep(cycle, node, *(barred or ("deleting", "its last pods are being deleted")))
        return None
    because = f"its pods ask for {utilisation.shown(node.name)}"
    if bounces:
        because = "all its pods belong to ReplicaSets and have run for 30m"
    return Candidate(
        node=node,
        status=status,
        moving=moving,
        share=share,
        bounces=bounces,
        since=unneeded_since(cycle, node),
        failures_rank=int(rests_until(cycle, node) is not None),
        because=because,
    )


def _bounce(cycle: Cycle, pods: list[Pod]) -> bool:
    """Whether all pods that count belong to ReplicaSets and have run for long enough."""
    return all(
        pod.owner is not None
        and pod.owner.kind == "ReplicaSet"
        and pod.started_at is not None
        and cycle.at - pod.started_at >= BOUNCE_AFTER
        for pod in counted(pods)
    )


def _too_young(cycle: Cycle, node: Node, status: FleetStatus) -> tuple[str, str] | None:
    """A node is older than the grace period in force before it is a candidate."""
    grace = grace_seconds(status.settings.grace_periods, cycle.at, cycle.settings.timezone)
    if grace is None or node.created_at is None:
        return None
    age = cycle.at - node.created_at
    if age >= timedelta(seconds=grace):
        return None
    return "grace-period", f"it is {duration(age)} old, its grace period is {grace:g} s"


def _begin(scene: Scene, mover: Mover, candidate: Candidate) -> bool:
    """Begin the drain if everything allows it now; why not is noted."""
    cycle, node, status = scene.cycle, candidate.node, candidate.status
    why = _limit(scene, mover, candidate)
    if why is not None:
        keep(cycle, node, *why)
        return False
    mark = mover.mark()
    moves = mover.move(node, grouped(cycle, candidate.moving))
    if moves is None:
        return False
    if not scene.reserve.holds(status.settings.sector, mover.staying):
        mover.undo(mark)
        keep(cycle, node, "demand", "demand with its over-subscription would need it back")
        return False
    cycle.budgets.take(candidate.moving)
    cycle.used_rows.update(moves.rows)
    scene.room.leave(status.key)
    scene.non_empty_begun += 1
    cycle.removals.append(_removal(cycle, candidate, moves))
    return True


def _limit(scene: Scene, mover: Mover, candidate: Candidate) -> tuple[str, str] | None:
    """What keeps a candidate from being drained in this plan, for now."""
    cycle, node, status = scene.cycle, candidate.node, candidate.status
    settings = status.settings.scale_in
    rests = rests_until(cycle, node)
    found: tuple[str, str] | None = None
    if cycle.row_of[node.name] in mover.receiving:
        found = "in-use", "pods of nodes that leave come here"
    elif not candidate.ripe(cycle.at):
        waits = timedelta(seconds=settings.unneeded_seconds)
        waits -= cycle.at - (candidate.since or cycle.at)
        found = "unneeded-time", f"{candidate.because}; {duration(waits)} to go"
    elif rests is not None:
        found = "drain-cool-off", f"its last drain failed: not again before {rests:%H:%M:%S}"
    elif not scene.room.may_leave(status.key):
        found = "min-capacity", f"the fleet is at its min_capacity of {status.min}"
    elif scene.non_empty_draining + scene.non_empty_begun >= settings.non_empty_at_once_max:
        found = "max-non-empty-at-once", "enough nodes with pods are being emptied"
    else:
        refusal = cycle.budgets.refusal(candidate.moving)
        found = ("budget", refusal) if refusal else None
    return found


def _removal(cycle: Cycle, candidate: Candidate, moves: Moves) -> Removal:
    node, settings = candidate.node, candidate.status.settings.scale_in
    because = f"{candidate.because}; {counted_noun(len(candidate.moving), 'pod')} fit elsewhere"
    return Removal(
        key=candidate.status.key,
        node=node.name,
        actions=begin_drain(
            cycle,
            node,
            candidate.moving,
            settings.graceful_termination_max_seconds,
            "scale-in",
            because,
        ),
        placements=tuple(moves.placements),
    )


def _tend_timer(scene: Scene, mover: Mover, candidate: Candidate) -> None:
    """A node is unneeded while its pods fit elsewhere together with those of the ones before it."""
    cycle, node, key = scene.cycle, candidate.node, candidate.status.key
    needed = "pods of nodes that leave come here"
    if cycle.row_of[node.name] not in mover.receiving:
        needed = ""
        if not scene.room.may_leave(key):
            needed = "its fleet is at its min_capacity"
        elif mover.move(node, grouped(cycle, candidate.moving)) is None:
            needed = "its pods fit on no other node"
            keep(cycle, node, "no-destination", needed)
    if needed:
        stop_timer(cycle, node, needed)
        return
    if UNNEEDED_SINCE not in node.annotations or candidate.since is None:
        start_timer(cycle, node, f"unneeded from now: {candidate.because}")
