"""Nodes whose instance EC2 ends, and those of them for which nothing is left to do."""

from collections.abc import Mapping

from reconciler.model.counted_pods import counts
from reconciler.model.fleet import Instance
from reconciler.model.ids import NodeName
from reconciler.model.snapshot import Snapshot
from reconciler.planner.nodes.drain_taints import is_draining_voluntarily


def ending_nodes(
    snapshot: Snapshot, instances: Mapping[NodeName, Instance]
) -> tuple[frozenset[NodeName], frozenset[NodeName]]:
    """Return the nodes whose instance ends, and those of them to be left alone.

    An instance that a lifecycle hook holds is drained, unless we had drained it before its group
    was asked to end it.
    """
    ended = frozenset(name for name, instance in instances.items() if instance.ends)
    nodes = [each for each in snapshot.cluster.nodes if each.name in ended]
    gone = {node.name for node in nodes if instances[node.name].gone}
    drained = {node.name for node in nodes if is_draining_voluntarily(node)} - gone
    pods = snapshot.cluster.pods if drained else ()
    used = {pod.node_name for pod in pods if pod.node_name in drained and counts(pod)}
    return ended, frozenset(gone | (drained - used))
