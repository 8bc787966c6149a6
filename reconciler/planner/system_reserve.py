"""How much of a new node is reserved, while no node of its fleet shows what it offers."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from reconciler.model.cluster import NO_RESOURCES, Resources
from reconciler.model.fleet import Provider
from reconciler.model.frozen import FrozenMap


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReserve:
    """What is reserved of a new node of one fleet."""

    amounts: Resources = NO_RESOURCES
    """For the system and the DaemonSets together: CPU in milli, memory in bytes."""
    as_eks: AbstractSet[str] = frozenset()
    """Of CPU and memory those of which the node lacks what EKS's images take, and DaemonSets."""


ALL_AS_EKS: Final = NodeReserve(as_eks=frozenset({"cpu", "memory"}))
"""The least that a node lacks, whatever a config reserves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemReserve:
    """What the config reserves of new nodes."""

    amounts: Resources = NO_RESOURCES
    """Per node, for the system and the DaemonSets together: CPU in milli, memory in bytes."""
    groups_as_eks: AbstractSet[str] = frozenset()
    """Of CPU and memory those that the config does not state: new nodes of Auto Scaling groups lack
    what EKS's images and DaemonSets take of them. The defaults are meant for EC2 Fleets of this
    program."""

    def of(self, provider: Provider) -> NodeReserve:
        """Return the reserve of new nodes of such a fleet."""
        if provider != "asg":
            return NodeReserve(amounts=self.amounts)
        stated = {k: v for k, v in self.amounts.items() if k not in self.groups_as_eks}
        return NodeReserve(amounts=FrozenMap(stated), as_eks=self.groups_as_eks)
