"""Orphans: instances with our tags whose fleet is gone. EC2 neither replaces nor ends them.

Nothing without our tags is considered. A fleet counts as gone if EC2 says that it was deleted and
that its instances run on, or if EC2 has not listed it for `instance_init_time`, kept on the Lease:
one answer that omits a fleet is no proof.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.cluster import Node
from reconciler.model.fleet import CLUSTER_TAG, FLEET_TAG, Instance
from reconciler.model.ids import FleetId, InstanceId, NodeName, Region
from reconciler.model.saved_state import LostFleet
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.planner.fleets.instances.stuck import NodesByInstance, find_pod_on_missing_node
from reconciler.planner.fleets.live_fleet import LIVE_STATES
from reconciler.planner.settings import PlannerSettings

_RUNS_ON = "deleted-running"
_FLEET_ID = "fleet-"

Place = tuple[Region, FleetId]


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """An instance of a fleet that is gone."""

    instance: Instance
    fleet: str
    """The name of the fleet, by its tag."""
    fleet_id: FleetId
    node: Node | None
    """None if it never joined, or its node is gone."""
    certain: bool
    """Whether its fleet is known to be gone by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    """All orphans, and what must be remembered to be certain about them."""

    found: tuple[Orphan, ...] = ()
    ended: frozenset[NodeName] = frozenset()
    """Nodes of such instances that EC2 shows as terminated."""
    lost_fleets: tuple[LostFleet, ...] = ()
    hidden: tuple[InstanceId, ...] = ()
    """Those that would be ended if no pod ran on a node that is not listed."""

    @property
    def nodes(self) -> frozenset[NodeName]:
        """Return the names of those instances that are nodes."""
        return frozenset(orphan.node.name for orphan in self.found if orphan.node is not None)


def find_orphans(snapshot: Snapshot, settings: PlannerSettings) -> Orphans:
    """Return instances of ours without a fleet, sorted by id.

    Left out are those of a fleet that exists, whether or not the config has it; those that EC2 is
    ending; and those of a fleet that the config still names and EC2 has under no id: it may be
    about to be recreated.
    """
    cloud, known = snapshot.cloud, snapshot.cluster.lost_fleets
    if cloud is None or not cloud.instances_known:
        return Orphans(lost_fleets=known)
    states = {(f.region, f.id): f.state.replace("_", "-") for f in cloud.fleets}
    deleted = frozenset(place for place, state in states.items() if state == _RUNS_ON)
    missed = _missing_fleets(cloud, settings, states)
    lost = _missed_since(snapshot, missed)
    certain = deleted | _missed_for_long(lost, snapshot.at, settings)
    if not deleted | missed:
        return Orphans(lost_fleets=lost)
    nodes = NodesByInstance(snapshot.cluster.nodes, cloud.instances)
    found: list[Orphan] = []
    ended: set[NodeName] = set()
    for instance, place in _launched_by(deleted | missed, cloud, settings):
        node = nodes.of(instance)
        if not instance.gone:
            orphan = Orphan(
                instance=instance,
                fleet=instance.tags[FLEET_TAG],
                fleet_id=place[1],
                node=node,
                certain=place in certain,
            )
            found.append(orphan)
        elif node is not None and instance.state == "terminated":
            ended.add(node.name)
    found.sort(key=lambda each: each.instance.id)
    shown, hidden = _split_by_missing_nodes(found, snapshot, nodes)
    return Orphans(
        found=tuple(shown), ended=frozenset(ended), lost_fleets=lost, hidden=tuple(hidden)
    )


def _launched_by(
    gone: Collection[Place], cloud: CloudState, settings: PlannerSettings
) -> Iterator[tuple[Instance, Place]]:
    """Yield our instances of these fleets, unless the config names the fleet and EC2 has none."""
    expected = _fleets_without_id(cloud, settings)
    for instance in cloud.instances:
        place = _place(instance, settings)
        if place is None or place not in gone:
            continue
        if (instance.tags[FLEET_TAG], instance.region) not in expected:
            yield instance, place


def _split_by_missing_nodes(
    found: Sequence[Orphan], snapshot: Snapshot, nodes: NodesByInstance
) -> tuple[Sequence[Orphan], Sequence[InstanceId]]:
    """Return the orphans that may be ended, and `Orphans.hidden`.

    An instance that seems to have no node may have one: that is so while it is unknown which
    instance some node is, or while a pod runs on a node that is not listed.
    """
    unjoined = [orphan for orphan in found if orphan.node is None]
    joined = [orphan for orphan in found if orphan.node is not None]
    if not unjoined or not nodes.certain:
        return joined, ()
    if find_pod_on_missing_node(snapshot) is None:
        return found, ()
    return joined, [orphan.instance.id for orphan in unjoined if orphan.certain]


def _place(instance: Instance, settings: PlannerSettings) -> Place | None:
    """Return the EC2 Fleet that launched it, if its tags say that it is ours; else None."""
    ours = instance.tags.get(CLUSTER_TAG) == settings.cluster and instance.tags.get(FLEET_TAG)
    fleet_id = instance.fleet_id
    if not ours or fleet_id is None or not fleet_id.startswith(_FLEET_ID):
        return None
    return instance.region, fleet_id


def _missing_fleets(
    cloud: CloudState, settings: PlannerSettings, states: dict[Place, str]
) -> frozenset[Place]:
    """Return fleets that our instances name and that EC2 does not show, where it answered."""
    named = {place for i in cloud.instances if (place := _place(i, settings)) is not None}
    answered = cloud.regions - cloud.silent
    unseen = named - states.keys()
    return frozenset(p for p in unseen if p[0] in answered and p[1] not in cloud.other_fleets)


def _missed_since(snapshot: Snapshot, missed: frozenset[Place]) -> tuple[LostFleet, ...]:
    """Return since when each has been missed; one that is listed again is forgotten.

    In a region that does not answer nothing is learned, and nothing forgotten.
    """
    cloud = snapshot.cloud
    silent = cloud.silent if cloud is not None else frozenset()
    known = {
        (lost_fleet.region, lost_fleet.id): lost_fleet
        for lost_fleet in snapshot.cluster.lost_fleets
    }
    kept = {place for place in known if place[0] in silent}
    found = [
        LostFleet(
            region=place[0],
            id=place[1],
            since=min(known[place].since, snapshot.at) if place in known else snapshot.at,
        )
        for place in missed | kept
    ]
    return tuple(sorted(found, key=lambda each: (each.region, each.id)))


def _missed_for_long(
    lost: Iterable[LostFleet], at: datetime, settings: PlannerSettings
) -> frozenset[Place]:
    """Return those that EC2 has not listed for `instance_init_time`."""
    wait = timedelta(seconds=settings.instance_init_seconds)
    return frozenset(
        (lost_fleet.region, lost_fleet.id) for lost_fleet in lost if at - lost_fleet.since >= wait
    )


def _fleets_without_id(
    cloud: CloudState, settings: PlannerSettings
) -> frozenset[tuple[str, Region]]:
    """Return fleets of the config that EC2 has under no id."""
    live = {(f.name, f.region) for f in cloud.fleets if f.state in LIVE_STATES}
    wanted = {(k.name, k.region) for fleet in settings.fleets() for k in fleet.fleet_keys()}
    return frozenset(wanted - live)
