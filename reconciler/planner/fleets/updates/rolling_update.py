"""Rolling updates: which drifted nodes are replaced next, what they wait for, when it halts.

Nodes are replaced in batches. The nodes of a batch carry the annotation `ROLLING_UPDATE` with the
launch template version, the time and their number in the batch. Number k is emptied when k nodes
that came after that time take pods, so that the fleet never has fewer of these than before: a node
that is Ready may still have a start-up taint.
Everything else is read from the nodes again in each cycle; only a halt, and since when the first
node of a version has been watched (`planner.fleets.canary`), are remembered on the Lease. Model:
AWS CloudFormation's AutoScalingRollingUpdate policy
(MinInstancesInService, MaxBatchSize, PauseTime).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from reconciler.model.cluster import Node
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.model.plan import FleetUpdate, UpdateState
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import counted_noun, duration
from reconciler.planner.calendar import in_window
from reconciler.planner.fleets.fleet_nodes import FleetNodes
from reconciler.planner.fleets.instances.stuck import StuckInstance
from reconciler.planner.fleets.live import is_told
from reconciler.planner.fleets.updates.batch_mark import BatchMark, read_mark
from reconciler.planner.fleets.updates.canary import Canaries, Canary, stays
from reconciler.planner.fleets.updates.drift import drift_of
from reconciler.planner.nodes.drain_taints import is_draining
from reconciler.planner.nodes.starting import takes_pods
from reconciler.planner.settings import PlannerSettings, RollingUpdate

_BECAUSE_MAX: Final = 160
_UNTOLD: Final = (
    "EC2 does not tell the number of its launch template version: nothing begins until it does"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """The rolling update of one fleet."""

    key: FleetKey
    version: str
    state: UpdateState
    because: str
    old: Mapping[NodeName, str]
    """Why each node is drifted, in words."""
    batch: Mapping[NodeName, BatchMark]
    """The drifted nodes that are being replaced now, by number."""
    new: tuple[Node, ...]
    """Nodes that are as the fleet launches them now."""
    staying: frozenset[NodeName] = frozenset()
    """Those of them that take pods, and are neither cordoned nor leaving."""
    canary: Canary = field(default_factory=Canary)
    """What is known of the version."""
    spare: int
    """How many nodes that take pods `min_in_service` can do without; 0 when it is not set."""
    may_go: frozenset[NodeName]
    """Nodes of the batch that need not wait for a new node any more."""
    batch_max: int
    """How many nodes the next batch may have; 0 while none may begin."""
    old_take_pods: bool = False
    """Whether pods may move to old nodes outside of the batch: the fleet's `max_capacity` has no
    room for the new nodes, or had none when their drain began, and `min_in_service` lets nodes go
    without them."""
    version_told: bool = True
    """Whether EC2 tells which version that is; else it is the last that is known."""

    @property
    def halted(self) -> bool:
        """Return whether it stands still until the version changes or a person lets it go on."""
        return self.state == "halted"

    @property
    def successors(self) -> tuple[Node, ...]:
        """New nodes that came since the batch began, whether they take pods yet or not."""
        began = min((mark.at for mark in self.batch.values()), default=None)
        if began is None:
            return ()
        return tuple(n for n in self.new if n.created_at is not None and n.created_at >= began)

    @property
    def successors_taking_pods(self) -> tuple[Node, ...]:
        """Return those that take pods and stay."""
        return tuple(node for node in self.successors if node.name in self.staying)

    @property
    def successors_in_vain(self) -> tuple[Node, ...]:
        """Return those that took pods, and are cordoned or leave now."""
        gone = (node for node in self.successors if node.name not in self.staying)
        return tuple(node for node in gone if takes_pods(node))

    def awaits(self, node: Node) -> bool:
        """Return whether pods of the batch are to come to the node."""
        came = any(node.name == each.name for each in self.successors)
        return came and (node.name in self.staying or not takes_pods(node))

    @property
    def passing(self) -> frozenset[NodeName]:
        """Return the nodes that are no destination for pods, which would move once more."""
        if self.state in {"halted", "closed"}:
            return frozenset()
        return frozenset(self.batch if self.old_take_pods else self.old)

    @property
    def successors_wanted(self) -> int:
        """Return how many of these the batch needs in all."""
        return max((mark.number for mark in self.batch.values()), default=0)

    @property
    def shown(self) -> FleetUpdate:
        """Return what the plan tells of it."""
        return FleetUpdate(
            fleet=self.key.name,
            region=self.key.region,
            version=self.version,
            state=self.state,
            because=self.because,
            old=len(self.old),
            new=len(self.new),
        )


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
        fleets: All; those that are to go as a whole, and those that EC2 does not show, have none.
        instances: By node.
        stuck: Instances that never joined, as far as they are to be believed.
        noticed: Nodes that EC2 takes back, or recommends to leave.
        saved_states: Which updates are halted, and which versions are proven.
        snapshot: Pods, and the clocks.
        settings: The config.
    """
    rules = settings.rolling_update
    if rules is None:
        return {}
    fleets = tuple(fleets)
    drifts = {fleet.key: _by_drift(fleet, instances) for fleet in fleets}
    doubted = _doubted(fleets, drifts, saved_states)
    canaries = Canaries(fleets, stuck, noticed, doubted, snapshot, settings)
    found: dict[FleetKey, Update] = {}
    for fleet in fleets:
        old, new = drifts[fleet.key]
        saved = saved_states.get((fleet.key.name, fleet.key.region))
        if fleet.live is not None and not is_told(fleet.live):
            standing = _standing(fleet, fleet.live.launch_template_version, old, saved, snapshot.at)
            if standing is not None:
                found[fleet.key] = standing
            continue
        if not old:
            continue
        assert fleet.live is not None, "without it no node is known to be drifted"
        update = Update(
            key=fleet.key,
            version=fleet.live.launch_template_version,
            state="waiting",
            because="",
            old=old,
            batch=_batch(fleet, old, snapshot.at),
            new=tuple(new),
            staying=frozenset(node.name for node in new if stays(node, noticed)),
            spare=_spare(fleet, rules),
            may_go=frozenset(),
            batch_max=0,
        )
        canary = _judged(canaries, fleet, update, saved)
        found[fleet.key] = _with_state(
            fleet, replace(update, canary=canary), canaries.now, snapshot.at, settings
        )
    return found


_OldAndNew = tuple[dict[NodeName, str], list[Node]]


def _doubted(
    fleets: Iterable[FleetNodes],
    drifts: Mapping[FleetKey, _OldAndNew],
    saved_states: Mapping[tuple[str, Region], SavedFleetState],
) -> frozenset[NodeName]:
    """Return the new nodes of fleets that have old ones and whose version is not proven."""
    found: set[NodeName] = set()
    for fleet in fleets:
        old, new = drifts[fleet.key]
        saved = saved_states.get((fleet.key.name, fleet.key.region))
        version = fleet.live.launch_template_version if fleet.live is not None else ""
        proven = saved is not None and saved.canary_proven and saved.canary_version == version
        if old and not proven:
            found.update(node.name for node in new)
    return frozenset(found)


def _by_drift(fleet: FleetNodes, instances: Mapping[NodeName, Instance]) -> _OldAndNew:
    """Return the drifted nodes of a fleet with the reasons, and those that are known not to be."""
    old: dict[NodeName, str] = {}
    new: list[Node] = []
    for node in () if fleet.settings.departing else fleet.nodes:
        drift = drift_of(fleet.live, instances.get(node.name))
        if drift.reasons:
            old[node.name] = ", ".join(drift.reasons.values())
        elif not drift.unknown:
            new.append(node)
    return old, new


def _batch(
    fleet: FleetNodes, old: Mapping[NodeName, str], at: datetime
) -> Mapping[NodeName, BatchMark]:
    """Return the drifted nodes that are being replaced by the present version, by number."""
    assert fleet.live is not None
    version = fleet.live.launch_template_version
    marks = {n.name: mark for n in fleet.nodes if n.name in old and (mark := read_mark(n, at))}
    batch = {name: mark for name, mark in marks.items() if mark.version == version}
    return dict(sorted(batch.items(), key=lambda each: (each[1].number, each[0])))


def _judged(
    canaries: Canaries, fleet: FleetNodes, update: Update, saved: SavedFleetState | None
) -> Canary:
    """Return what is known of the version; its failure is why the update stands still, if it does.

    A halt that is over begins the watch again.
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
        update: What it consists of.
        now: The time that the API server has at least.
        at: Our clock, which the maintenance windows follow.
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


def _standing(
    fleet: FleetNodes,
    version: str,
    old: Mapping[NodeName, str],
    saved: SavedFleetState | None,
    at: datetime,
) -> Update | None:
    """Return the update of a fleet whose version EC2 does not tell; None when it has none.

    What was known last holds: its halt, and the batch whose nodes are marked. The nodes that came
    since that began count as those for which the batch waits, but none of it is emptied for them:
    they may be of a later version.
    """
    marks = {n.name: mark for n in fleet.nodes if (mark := read_mark(n, at)) is not None}
    halted = saved is not None and bool(saved.halted_version)
    if fleet.settings.departing or not (halted or old or marks):
        return None
    update = Update(
        key=fleet.key,
        version=version,
        state="paused",
        because=_UNTOLD,
        old=old,
        batch={},
        new=(),
        spare=0,
        may_go=frozenset(),
        batch_max=0,
        version_told=False,
    )
    if saved is not None and halted:
        because = saved.halted_because
        return replace(update, version=saved.halted_version, state="halted", because=because)
    if not marks:
        return update
    latest, began = max(m.at for m in marks.values()), min(m.at for m in marks.values())
    newer = (n for n in fleet.nodes if n.name not in marks and n.name not in old)
    came = tuple(n for n in newer if n.created_at is not None and n.created_at >= began)
    return replace(
        update,
        version=next(m.version for m in marks.values() if m.at == latest),
        old={**dict.fromkeys(marks, "it was drifted when its batch began"), **old},
        batch=dict(sorted(marks.items(), key=lambda each: (each[1].number, each[0]))),
        new=came,
        staying=frozenset(n.name for n in came if stays(n, ())),
    )


def _state(  # noqa: PLR0911 - one return per state
    update: Update, rules: RollingUpdate, now: datetime, local: datetime
) -> tuple[UpdateState, str]:
    """Return the state of an update that is not halted, and what it waits for.

    Args:
        update: The update.
        rules: How nodes are replaced.
        now: The time that the API server has at least.
        local: The time of the maintenance windows.
    """
    canary = update.canary
    if update.batch:
        nodes = counted_noun(len(update.batch), "node")
        if canary.proven:
            return "rolling", f"a batch of {nodes} is being replaced"
        return "canary", f"the first node is being replaced: {next(iter(update.batch))}"
    taking = [node for node in update.new if takes_pods(node)]
    ready = [node.ready_changed_at for node in taking if node.ready_changed_at]
    if update.new and not canary.proven:
        if not ready:
            return "canary", "the first new node takes no pods yet"
        # One to which no pod came in that time proves nothing: one more node is replaced then.
        left = canary.left
        if left is None:
            left = min(ready) + timedelta(seconds=rules.canary_seconds) - now
        if canary.left is not None or left > timedelta(0):
            return "canary", f"the first new node is watched for another {duration(left)}"
    if update.new and not taking:
        return "paused", "none of the new nodes takes pods now"
    paused = timedelta(seconds=rules.pause_seconds)
    if ready and max(ready) + paused > now:
        return "paused", f"the next batch begins in {duration(max(ready) + paused - now)}"
    if not _is_open(rules, local):
        return "closed", "no maintenance window is open"
    return "waiting", "the next batch may begin"


def _is_open(rules: RollingUpdate, local: datetime) -> bool:
    """Return whether a batch may begin at a local time."""
    found = (in_window(local, w.starts, w.ends, w.weekdays) for w in rules.windows)
    return not rules.windows or any(found)


def _spare(fleet: FleetNodes, rules: RollingUpdate) -> int:
    if rules.min_in_service is None:
        return 0
    in_service = sum(takes_pods(node) and not is_draining(node) for node in fleet.nodes)
    return max(0, in_service - rules.min_in_service)


def _lacks_room(fleet: FleetNodes, update: Update) -> bool:
    """Whether the fleet may not hold the new nodes that its batch, or the next one, still lacks."""
    lacking = max(1, update.successors_wanted) - len(update.successors)
    return fleet.max is not None and fleet.joined_or_launching + lacking > fleet.max


def _went_first(fleet: FleetNodes, update: Update) -> bool:
    """Whether a node of the batch drains without its new node, in a fleet that has a maximum.

    That fleet may have room for a new node meanwhile; the drain would be given up all the same if
    its pods could not go on to the nodes to which they had begun to move.
    """
    came = len(update.successors_taking_pods)
    going = (node for node in fleet.nodes if is_draining(node) and node.name in update.batch)
    early = any(update.batch[node.name].number > came for node in going)
    return fleet.max is not None and early


def _may_go(fleet: FleetNodes, update: Update) -> frozenset[NodeName]:
    """The nodes of the batch whose new node takes pods, or without which enough are in service."""
    came = len(update.successors_taking_pods)
    found = {name for name, mark in update.batch.items() if mark.number <= came}
    draining = {node.name for node in fleet.nodes if is_draining(node)}
    staying = [name for name in update.batch if name not in draining]
    return frozenset(found.union(staying[: update.spare]))
