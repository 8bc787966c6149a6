"""Devices of nodes that have only just come: their plugins register minutes after the kubelet.

Until then a node looks as if its fleet had no such device: the pods that it was launched for would
be bought for again, from a dearer fleet.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.model.cluster import Node, Resources
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName
from reconciler.model.snapshot import Snapshot
from reconciler.planner.demand import FLEET
from reconciler.planner.fleets.new_nodes.learned import FROM_THE_START, least_of
from reconciler.planner.settings import FleetSettings, PlannerSettings


def with_promised_devices(
    snapshot: Snapshot, settings: PlannerSettings
) -> tuple[Snapshot, frozenset[NodeName]]:
    """The snapshot in which nodes younger than `instance_init_time` have their fleets' devices.

    And which nodes these are: pods may wait for them, and are not moved there before they are.
    """
    promised = {fleet.name: found for fleet in settings.fleets() if (found := _devices(fleet))}
    if not promised:
        return snapshot, frozenset()
    since = snapshot.at - timedelta(seconds=settings.instance_init_seconds)
    before = snapshot.cluster.nodes
    nodes = tuple(_equipped(node, promised, since) for node in before)
    changed = (n.name for n, was in zip(nodes, before, strict=True) if n is not was)
    return replace(snapshot, cluster=replace(snapshot.cluster, nodes=nodes)), frozenset(changed)


def _devices(fleet: FleetSettings) -> Resources:
    offered = fleet.allocatable
    if offered is None:
        offered = least_of([option.resources for option in fleet.options])
    return FrozenMap((name, n) for name, n in offered.items() if name not in FROM_THE_START)


def _equipped(node: Node, promised: Mapping[str, Resources], since: datetime) -> Node:
    devices = promised.get(node.labels.get(FLEET, ""))
    if not devices or node.unreadable or node.created_at is None or node.created_at < since:
        return node
    missing = {name: n for name, n in devices.items() if not node.allocatable.get(name)}
    if not missing:
        return node
    return replace(node, allocatable=FrozenMap({**node.allocatable, **missing}))
