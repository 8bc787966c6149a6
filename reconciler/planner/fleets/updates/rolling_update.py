"""Rolling updates: which drifted nodes are replaced next, what they wait for, when it halts.

Nodes are replaced in batches. The nodes of a batch carry the annotation `ROLLING_UPDATE` with the
launch template version, the time and their number in the batch. Number k is drained once k nodes
that joined after that time take pods, so that the fleet never has fewer such nodes than before: a
node that is Ready may still have a start-up taint. Everything else is read from the nodes again in
each cycle; only a halt, and since when the first node of a version has been watched
(`planner.fleets.updates.canary`), are remembered on the Lease. Model: AWS CloudFormation's
AutoScalingRollingUpdate policy (MinInstancesInService, MaxBatchSize, PauseTime).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from reconciler.model.cluster import Node
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.model.plan import UpdateState
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import counted_noun, duration
from reconciler.planner.calendar import in_window_opened_on
from reconciler.planner.disruption_settings import RollingUpdate
from reconciler.planner.fleets.fleet_nodes import FleetNodes
from reconciler.planner.fleets.instances.stuck import StuckInstance
from reconciler.planner.fleets.live_fleet import is_version_known
from reconciler.planner.fleets.updates.batch_annotation import BatchAnnotation, read_batch
from reconciler.planner.fleets.updates.canary import Canaries, Canary, stays
from reconciler.planner.fleets.updates.drift import OldAndNew, old_and_new
from reconciler.planner.fleets.updates.unknown_version import DRIFTED_AT_FIRST, standing_update
from reconciler.planner.fleets.updates.update import Update, unlike_nodes
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.nodes.starting import takes_pods
from reconciler.planner.settings import PlannerSettings

_BECAUSE_MAX: Final = 160


def find_updates(
    fleets: Iterable[FleetNodes],
    instances: Mapping[NodeName, Instance],
    stuck: Sequence[StuckInstance],
    noticed: Collection[NodeName],
    saved_states: Mapping[tuple[str, Region], SavedFleetState],
    snapshot: Snapshot,
    settings: PlannerSettings,
) -> Mapping[FleetKey, Update]:
    """Return the rolling updates that are not finished.

    Args:
        fleets: All fleets; departing ones, those that EC2 does not show, and those without a launch
            template have none: without a version new nodes cannot be distinguished from old ones.
        instances: Instances by node.
        stuck: Instances that never joined, if they are to be believed.
        noticed: Nodes that EC2 takes back, or recommends to replace.
        saved_states: Which updates are halted, and which versions are proven.
        snapshot: Pods, and the clocks.
        settings: The config.
    """
    if settings.rolling_update is None:
        return {}
    fleets = tuple(fleets)
    aside = (name for name, instance in instances.items() if instance.set_aside)
    noticed = frozenset(noticed).union(aside)
    drifts = {fleet.key: old_and_new(fleet, fleet.live, instances) for fleet in fleets}
    doubted = _doubted(fleets, drifts, saved_states)
    canaries = Canaries(fleets, instances, stuck, noticed, doubted, snapshot, settings)
    updates: dict[FleetKey, Update] = {}
    for fleet in fleets:
        drift = drifts[fleet.key]
        saved = saved_states.get((fleet.key.name, fleet.key.region))
        if fleet.live is not None and not is_version_known(fleet.live):
            standing = standing_update(fleet, instances, saved, snapshot.at, settings)
            if standing is not None:
                updates[fleet.key] = standing
        elif drift[0] and fleet.live is not None and fleet.live.launch_template_version:
            update = _undecided(fleet, drift, noticed, snapshot.at, settings)
            update = replace(update, not_new=_not_new(fleet, update, instances))
            update = replace(update, canary=_judged(canaries, fleet, update, saved))
            updates[fleet.key] = _with_state(fleet, update, canaries.now, snapshot.at, settings)
    return updates


def _undecided(
    fleet: FleetNodes,
    drift: OldAndNew,
    noticed: Collection[NodeName],
    at: datetime,
    settings: PlannerSettings,
) -> Update:
    """Return the update of a fleet with drifted nodes before its version is judged."""
    assert fleet.live is not None, "without it no node is known to be drifted"
    known, new = drift
    version = fleet.live.launch_template_version
    shown = {node.name for node in new}.union(known)
    annotated = _annotated(fleet, version, at)
    unknown = frozenset(annotated.keys() - shown)
    old = {**dict.fromkeys(sorted(unknown), DRIFTED_AT_FIRST), **known}
    return Update(
        key=fleet.key,
        version=version,
        state="waiting",
        because="",
        old=old,
        unknown=unknown,
        batch={name: batch for name, batch in annotated.items() if name in old},
        new=tuple(new),
        taking=frozenset(node.name for node in new if takes_pods(node, settings)),
        staying=frozenset(node.name for node in new if stays(node, noticed, settings)),
        spare=_spare(fleet, settings),
        may_go=frozenset(),
        batch_max=0,
    )


def _doubted(
    fleets: Iterable[FleetNodes],
    drifts: Mapping[FleetKey, OldAndNew],
    saved_states: Mapping[tuple[str, Region], SavedFleetState],
) -> frozenset[NodeName]:
    """Return the new nodes of fleets that have old ones and whose version is not proven."""
    node_names: set[NodeName] = set()
    for fleet in fleets:
        old, new = drifts[fleet.key]
        saved = saved_states.get((fleet.key.name, fleet.key.region))
        version = fleet.live.launch_template_version if fleet.live is not None else ""
        proven = saved is not None and saved.canary_proven and saved.canary_version == version
        if old and not proven:
            node_names.update(node.name for node in new)
    return frozenset(node_names)


def _annotated(fleet: FleetNodes, version: str, at: datetime) -> Mapping[NodeName, BatchAnnotation]:
    """Return the nodes that are annotated with a batch of the version, by number."""
    every = {node.name: batch for node in fleet.nodes if (batch := read_batch(node, at))}
    batches = {name: batch for name, batch in every.items() if batch.version == version}
    return dict(sorted(batches.items(), key=lambda each: (each[1].number, each[0])))


def _not_new(
    fleet: FleetNodes, update: Update, instances: Mapping[NodeName, Instance]
) -> tuple[Node, ...]:
    """Return `Update.not_new`.

    A node that was launched before the batch began may be of the version before, and says nothing.
    """
    began = min((batch.at for batch in update.batch.values()), default=None)
    if began is None:
        return ()
    known = {node.name for node in update.new}.union(update.batch)
    nodes: list[Node] = []
    for node in fleet.nodes:
        instance = instances.get(node.name)
        launched_at = None if instance is None else instance.launched_at
        times = [at for at in (node.created_at, launched_at) if at is not None]
        if node.name not in known and times and min(times) >= began:
            nodes.append(node)
    return tuple(nodes)


def _judged(
    canaries: Canaries, fleet: FleetNodes, update: Update, saved: SavedFleetState | None
) -> Canary:
    """Return what is known about the version; its failure is why the update halts, if it does.

    After a halt was lifted the watch begins again.
    """
    halted = saved.halted_because if saved and saved.halted_version == update.version else ""
    if not halted:
        canary = canaries.judge(fleet, update.old, update.new, saved, in_batch=bool(update.batch))
        if not canary.failure:
            return canary
        halted = canary.failure[:_BECAUSE_MAX]
    return Canary(version=update.version, failure=halted)


def _with_state(
    fleet: FleetNodes, update: Update, now: datetime, at: datetime, settings: PlannerSettings
) -> Update:
    """Return the update with what its fleet's nodes and the canary allow now.

    Args:
        fleet: The fleet.
        update: The parts of the update.
        now: The earliest time that the API server may have.
        at: Our time, which the maintenance windows follow.
        settings: The config.
    """
    rules, canary = settings.rolling_update, update.canary
    assert rules is not None
    if canary.failure:
        return replace(update, batch={}, state="halted", because=canary.failure)
    local = at.astimezone(ZoneInfo(settings.timezone))
    state, because = _state(update, rules, now, local)
    most = rules.batch_max if canary.proven else 1
    update = replace(
        update, state=state, because=because, batch_max=most if state == "waiting" else 0
    )
    went_first = _went_first(fleet, update) or _lacks_room(fleet, update)
    old_take_pods = rules.min_in_service is not None and went_first
    return replace(update, may_go=_may_go(fleet, update), old_take_pods=old_take_pods)


def _state(  # noqa: PLR0911 - one return per state
    update: Update, rules: RollingUpdate, now: datetime, local: datetime
) -> tuple[UpdateState, str]:
    """Return the state of an update that is not halted, and what it waits for.

    Args:
        update: The update.
        rules: How nodes are replaced.
        now: The earliest time that the API server may have.
        local: The time of the maintenance windows.
    """
    if update.batch:
        nodes, more = counted_noun(len(update.batch), "node"), unlike_nodes(update)
        if update.canary.proven:
            return "rolling", f"a batch of {nodes} is being replaced{more}"
        return "canary", f"the first node is being replaced: {next(iter(update.batch))}{more}"
    taking = [node for node in update.new if node.name in update.taking]
    ready = [node.ready_changed_at for node in taking if node.ready_changed_at]
    if update.new and not update.canary.proven:
        awaited = _canary_awaited(update.canary, ready, rules, now)
        if awaited:
            return "canary", awaited
    if update.new and not taking:
        return "paused", "none of the new nodes takes pods now"
    paused = timedelta(seconds=rules.pause_seconds)
    if ready and max(ready) + paused > now:
        return "paused", f"the next batch begins in {duration(max(ready) + paused - now)}"
    if not _is_open(rules, local):
        return "closed", "no maintenance window is open"
    return "waiting", "the next batch may begin"


def _canary_awaited(
    canary: Canary, ready: Sequence[datetime], rules: RollingUpdate, now: datetime
) -> str:
    """Return what the first new node of a version is to do before the next one is replaced.

    Empty if it had no pods for `canary_time`: that proves nothing, and one more node is replaced.
    In an outage it may have had some, which nothing has watched.

    Args:
        canary: What is known about the version.
        ready: Since when new nodes that take pods are Ready.
        rules: How nodes are replaced.
        now: The earliest time that the API server may have.
    """
    if not ready:
        return "the first new node takes no pods yet"
    left = canary.left
    if left is None and not canary.judged:
        return "the first new node cannot be judged now (outage or clock difference)"
    if left is None:
        left = min(ready) + timedelta(seconds=rules.canary_seconds) - now
        if left <= timedelta(0):
            return ""
    return f"the first new node is watched for another {duration(left)}"


def _is_open(rules: RollingUpdate, local: datetime) -> bool:
    """Return whether a batch may begin at a local time."""
    found = (in_window_opened_on(local, w.starts, w.ends, w.weekdays) for w in rules.windows)
    return not rules.windows or any(found)


def _spare(fleet: FleetNodes, settings: PlannerSettings) -> int:
    """Return `Update.spare`."""
    rules = settings.rolling_update
    if rules is None or rules.min_in_service is None:
        return 0
    in_service = sum(takes_pods(node, settings) and not is_draining(node) for node in fleet.nodes)
    return max(0, in_service - rules.min_in_service)


def _lacks_room(fleet: FleetNodes, update: Update) -> bool:
    """Return whether the fleet's maximum has no room for new nodes of this batch, or the next."""
    lacking = max(1, update.successors_wanted) - len(update.successors)
    return fleet.max is not None and fleet.joined_or_launching + lacking > fleet.max


def _went_first(fleet: FleetNodes, update: Update) -> bool:
    """Return whether a node of the batch drains without a new node, in a fleet with a maximum.

    The fleet may have room for a new node by now; but the drain would be given up if its pods could
    no longer go to the nodes to which they had begun to move.
    """
    came = len(update.successors_taking_pods)
    going = (node for node in fleet.nodes if is_draining(node) and node.name in update.batch)
    early = any(update.batch[node.name].number > came for node in going)
    return fleet.max is not None and early


def _may_go(fleet: FleetNodes, update: Update) -> frozenset[NodeName]:
    """Return the batch's nodes that have a new node that takes pods, or need none.

    Nodes of which EC2 does not show whether they are drifted wait; drains that have begun go on.
    """
    came = len(update.successors_taking_pods)
    node_names = {name for name, batch in update.batch.items() if batch.number <= came}
    draining = {node.name for node in fleet.nodes if is_draining(node)}
    waiting = update.unknown - draining
    staying = [name for name in update.batch if name not in draining | waiting]
    return frozenset(node_names.union(staying[: update.spare]) - waiting)
