"""Which nodes of a fleet count in its target."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from reconciler.model.cluster import Node
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.planner.nodes.starting import is_joining
from reconciler.planner.settings import PlannerSettings


def in_service(
    nodes: Iterable[Node],
    key: FleetKey,
    shown: frozenset[Region],
    instances: Mapping[NodeName, Instance],
    cloud: CloudState | None,
) -> Iterable[Node]:
    """Return the nodes that count in the fleet's target.

    Not counted are silent nodes whose instance is gone, which their fleet replaces, and those that
    somebody set aside. If EC2 was asked and answered, a node counts only if EC2 shows its instance:
    a label is no membership.

    Args:
        nodes: The nodes of the fleet.
        key: The fleet.
        shown: Regions where EC2 shows instances.
        instances: Instances by node.
        cloud: What EC2 answered.
    """
    if _answered(key.region, cloud, shown):
        return (n for n in nodes if n.name in instances and instances[n.name].counts)
    there = nodes
    if key.region in shown:
        there = (n for n in nodes if n.ready or n.instance_id is None or n.name in instances)
    return (n for n in there if n.name not in instances or instances[n.name].counts)


def find_joined(
    snapshot: Snapshot,
    settings: PlannerSettings,
    nodes: Mapping[FleetKey, Sequence[Node]],
    shown: frozenset[Region],
    instances: Mapping[NodeName, Instance],
    at_work: Mapping[FleetKey, frozenset[NodeName]],
    stuck: Collection[NodeName],
) -> dict[FleetKey, frozenset[NodeName]]:
    """Return the nodes of each fleet that are in service and have joined.

    Args:
        snapshot: What was observed.
        settings: The sector config, resolved.
        nodes: The nodes of each fleet.
        shown: Regions where EC2 shows instances.
        instances: Instances by node.
        at_work: Nodes under which members have long been at work, whatever instance they name.
        stuck: Nodes that never took a pod and should long have: they have not joined.
    """
    return {
        key: at_work.get(key, frozenset()).union(
            node.name
            for node in in_service(nodes.get(key, ()), key, shown, instances, snapshot.cloud)
            if node.name not in stuck
            and not is_joining(node, instances.get(node.name), snapshot.at, settings)
        )
        for key in nodes.keys() | at_work.keys()
    }


def _answered(region: Region, cloud: CloudState | None, shown: frozenset[Region]) -> bool:
    """Return whether EC2 was just asked for the region's instances, and reported them all.

    An answer without any is not believed while fleets of the region say that they have some.
    """
    if cloud is None or not (cloud.instances_asked and cloud.instances_known):
        return False
    if region not in cloud.regions - cloud.silent:
        return False
    return region in shown or not any(
        fleet.fulfilled_capacity for fleet in cloud.fleets if fleet.region == region
    )


def names_set_aside(instances: Mapping[NodeName, Instance]) -> frozenset[NodeName]:
    """Return the nodes whose instance somebody set aside."""
    return frozenset(name for name, instance in instances.items() if instance.set_aside)
