"""Devices of nodes that have just joined: their plugins register minutes after the kubelet.

Until then such a node looks as if its fleet had no such device: for the pods that it was launched
for another would be bought, from a more expensive fleet.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from reconciler.model.cluster import NO_RESOURCES, Node, Resources
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.model.snapshot import Snapshot
from reconciler.planner.demand import FLEET
from reconciler.planner.fleets.group_tags import with_tags
from reconciler.planner.fleets.live_fleet import fleet_keys_by_instance, live_fleets
from reconciler.planner.fleets.new_nodes.learned_resources import FROM_THE_START, least_of
from reconciler.planner.placement.kinds import REGION
from reconciler.planner.settings import FleetSettings, PlannerSettings


def with_devices_of_fleets(
    snapshot: Snapshot, settings: PlannerSettings
) -> tuple[Snapshot, frozenset[NodeName]]:
    """Return the snapshot with fleets' devices on nodes younger than `instance_init_time`.

    Also return these nodes: pods may wait for the devices, and are not moved there before.
    """
    offered = _devices_of_fleets(snapshot, settings)
    since = snapshot.at - timedelta(seconds=settings.instance_init_seconds)
    before = snapshot.cluster.nodes
    young = [node.created_at is not None and node.created_at >= since for node in before]
    if not (offered and any(young)):
        return snapshot, frozenset()
    members = fleet_keys_by_instance(snapshot.cloud, settings) if snapshot.cloud else {}
    nodes = tuple(
        _with_devices(node, offered.get(_fleet_of(node, members, settings), NO_RESOURCES))
        if is_young
        else node
        for node, is_young in zip(before, young, strict=True)
    )
    changed = (n.name for n, was in zip(nodes, before, strict=True) if n is not was)
    return replace(snapshot, cluster=replace(snapshot.cluster, nodes=nodes)), frozenset(changed)


def _devices_of_fleets(snapshot: Snapshot, settings: PlannerSettings) -> dict[FleetKey, Resources]:
    """Return the devices of each fleet, including those that only a group's tags state."""
    live = live_fleets(snapshot.cloud)
    found: dict[FleetKey, Resources] = {}
    for fleet in settings.fleets():
        for key in fleet.fleet_keys():
            tagged = fleet
            if key in live and fleet.is_made_elsewhere:
                tagged = with_tags(fleet, live[key].tags, settings.startup_taints)
            if devices := _devices(tagged):
                found[key] = devices
    return found


def _fleet_of(node: Node, members: Mapping[str, FleetKey], settings: PlannerSettings) -> FleetKey:
    """Return the fleet of a node by its instance's membership, else by its labels."""
    region = Region(node.labels.get(REGION, settings.home_region))
    labelled = FleetKey(name=node.labels.get(FLEET, ""), region=region)
    return members.get(node.instance_id or "", labelled)


def _devices(fleet: FleetSettings) -> Resources:
    offered = fleet.allocatable
    if offered is None:
        offered = least_of([option.resources for option in fleet.options])
    return FrozenMap((name, n) for name, n in offered.items() if name not in FROM_THE_START)


def _with_devices(node: Node, devices: Resources) -> Node:
    if not devices or node.unreadable:
        return node
    missing = {name: n for name, n in devices.items() if not node.allocatable.get(name)}
    if not missing:
        return node
    return replace(node, allocatable=FrozenMap({**node.allocatable, **missing}))
