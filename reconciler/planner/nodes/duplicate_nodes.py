"""Nodes that claim the same instance: a renamed kubelet leaves its old Node object behind.

Only one of them is the machine. The others are mere names, and ending "their" instance would end
the machine with all that runs there.
"""

from collections.abc import Iterable, Mapping

from reconciler.model.cluster import Node
from reconciler.model.ids import InstanceId, NodeName

DuplicateNodes = Mapping[NodeName, tuple[NodeName, ...]]
"""By the node that is the machine: the other names that claim its instance."""


def find_duplicate_nodes(nodes: Iterable[Node]) -> DuplicateNodes:
    """Return by node that is a machine the other nodes that claim its instance.

    Empty if each instance is one node. The machine is the one that is Ready; of several the one
    that registered last.
    """
    known = [node for node in nodes if node.instance_id is not None]
    if len({node.instance_id for node in known}) == len(known):
        return {}
    claiming: dict[InstanceId | None, list[Node]] = {}
    for node in known:
        claiming.setdefault(node.instance_id, []).append(node)
    found: dict[NodeName, tuple[NodeName, ...]] = {}
    for several in claiming.values():
        if len(several) > 1:
            machine, *names = sorted(several, key=_likeliest, reverse=True)
            found[machine.name] = tuple(sorted(node.name for node in names))
    return found


def names_only(duplicate_nodes: DuplicateNodes) -> frozenset[NodeName]:
    """Return the nodes that only claim the instance of another node."""
    return frozenset(name for names in duplicate_nodes.values() for name in names)


def _likeliest(node: Node) -> tuple[object, ...]:
    created = node.created_at.timestamp() if node.created_at else 0.0
    return node.ready, not node.deleting, created, node.name
