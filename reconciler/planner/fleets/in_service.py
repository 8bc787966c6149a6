"""Which nodes of a fleet its target counts."""

from collections.abc import Iterable, Mapping

from reconciler.model.cluster import Node
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetKey, NodeName, Region


def in_service(
    nodes: Iterable[Node],
    key: FleetKey,
    shown: frozenset[Region],
    instances: Mapping[NodeName, Instance],
) -> Iterable[Node]:
    """Return the nodes that the fleet's target counts.

    Not those that are silent and whose instance went away, which their fleet replaces; nor those
    that somebody set aside.

    Args:
        nodes: The fleet's.
        key: The fleet.
        shown: Regions where EC2 shows instances.
        instances: By node.
    """
    if key.region not in shown:
        return nodes
    there = (n for n in nodes if n.ready or n.instance_id is None or n.name in instances)
    return (n for n in there if n.name not in instances or instances[n.name].counts)


def names_set_aside(instances: Mapping[NodeName, Instance]) -> frozenset[NodeName]:
    """Return the nodes whose instance somebody set aside."""
    return frozenset(name for name, each in instances.items() if each.set_aside)
