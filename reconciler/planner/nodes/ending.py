"""Nodes whose instance EC2 ends, and those of them on which there is nothing left to do."""

from collections.abc import Mapping

from reconciler.model.fleet import Instance
from reconciler.model.ids import NodeName
from reconciler.model.snapshot import Snapshot
from reconciler.planner.nodes.drain_taints import is_draining_voluntarily


def ending_nodes(
    snapshot: Snapshot, instances: Mapping[NodeName, Instance]
) -> tuple[frozenset[NodeName], frozenset[NodeName]]:
    """Return nodes whose instance ends, and those of them to be left alone.

    What a lifecycle hook holds still has pods, unless we emptied it before its group was told.
    """
    ended = frozenset(name for name, each in instances.items() if each.ends)
    nodes = (each for each in snapshot.cluster.nodes if each.name in ended)
    left = (n for n in nodes if instances[n.name].gone or is_draining_voluntarily(n))
    return ended, frozenset(each.name for each in left)
