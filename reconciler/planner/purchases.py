"""What a plan buys for pods and headroom, and the kinds of pods for which it buys no more."""

from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.model.saved_state import SavedDemandState


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacesTaken:
    """Who filled the nodes that were asked for other pods."""

    short: str
    """By number and sector, for Events, which tenants read."""
    named: str
    """With the pods' names, for operators."""


@dataclass(slots=True, eq=False)
class Purchases:
    """Written by scale-up, and by headroom through `add_headroom`; everything else reads it."""

    nodes: dict[FleetKey, int] = field(default_factory=dict)
    """New nodes per fleet that pods and headroom asked for, and no minimum."""
    pods: dict[FleetKey, int] = field(default_factory=dict)
    """Pods that asked for some of them."""
    nano_usd_per_hour: int = 0
    """What the nodes that pods asked for cost; the bounds are on the same ones."""
    remembered: dict[tuple[str, str, Region], SavedDemandState] = field(default_factory=dict)
    """Purchases to be remembered, by kind of pods, fleet and region."""
    quarantined: dict[int, str] = field(default_factory=dict)
    """Numbers of classes for which nothing is bought any more, and why."""
    awaiting_bind: dict[int, str] = field(default_factory=dict)
    """Numbers of classes for which nothing more is bought for now, and the sentence that says why:
    kube-scheduler has yet to bind them, or pods of other sectors keep taking their places."""
    awaiting_pods: dict[NodeName, datetime] = field(default_factory=dict)
    """Nodes that were bought for pods which still wait, and until when kube-scheduler may bind
    them there. A node that ended earlier would not be counted as one that no pod used."""
    held_back: set[int] = field(default_factory=set)
    """Numbers of classes whose nodes would open a zone that refuses pods of higher priority."""
    places_taken: dict[int, PlacesTaken] = field(default_factory=dict)
    """Numbers of classes whose new nodes other pods have filled, and who they are."""
    bound_nano_usd_per_hour: int = 0
    """What the nodes that pods asked for cost at least, however they are chosen."""

    def add(self, key: FleetKey, nodes: int, pods: int, nano_usd_per_hour: int) -> None:
        """Note nodes of a fleet that are bought, and how many pods get places on them."""
        self.nodes[key] = self.nodes.get(key, 0) + nodes
        self.pods[key] = self.pods.get(key, 0) + pods
        self.nano_usd_per_hour += nano_usd_per_hour

    def add_headroom(self, key: FleetKey, nodes: int) -> None:
        """Note nodes of a fleet that are bought as headroom: no pod has asked for them."""
        self.nodes[key] = self.nodes.get(key, 0) + nodes

    def note_bound(self, nano_usd: int) -> None:
        """Note that some more of what pods need, which shares no node with the rest, costs this."""
        self.bound_nano_usd_per_hour += nano_usd
