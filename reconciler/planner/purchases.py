"""What a plan buys for pods and headroom, and the classes of pods for which it buys no more."""

from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.ids import FleetKey, NodeName, Region
from reconciler.model.saved_state import SavedDemandState


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacesTaken:
    """Which pods filled the nodes that were bought for others."""

    short: str
    """By number and sector, for Events, which tenants read."""
    named: str
    """With the pods' names, for operators."""


@dataclass(slots=True, eq=False)
class Purchases:
    """The purchases of a plan; scale-up writes it, headroom too through `add_headroom`."""

    nodes: dict[FleetKey, int] = field(default_factory=dict)
    """New nodes per fleet for pods and headroom, without those for a minimum."""
    pods: dict[FleetKey, int] = field(default_factory=dict)
    """How many pods get places on them."""
    displaced: dict[FleetKey, int] = field(default_factory=dict)
    """Those of these pods that are not pending: EC2 takes their nodes back."""
    nano_usd_per_hour: int = 0
    """The cost of the nodes for pods, in nano-USD per hour; the bounds are about the same nodes."""
    remembered: dict[tuple[str, str, Region], SavedDemandState] = field(default_factory=dict)
    """Purchases to be noted, by kind of pods, fleet and region."""
    quarantined: dict[int, str] = field(default_factory=dict)
    """Numbers of classes for which nothing is bought any more, and why."""
    awaiting_bind: dict[int, str] = field(default_factory=dict)
    """Numbers of classes for which nothing more is bought for now, and a sentence with the
    reason: kube-scheduler has yet to bind them, or pods of other sectors keep taking their
    places."""
    awaiting_pods: dict[NodeName, datetime] = field(default_factory=dict)
    """Nodes that were bought for pods which are still pending, and until when kube-scheduler may
    bind them there. If the node ended earlier it would not count as one that no pod used."""
    left_out_classes: set[int] = field(default_factory=set)
    """Numbers of classes whose nodes would open a zone that refuses pods of higher priority."""
    places_taken: dict[int, PlacesTaken] = field(default_factory=dict)
    """Numbers of classes whose new nodes other pods have filled, and which pods."""
    bound_nano_usd_per_hour: int = 0
    """A lower bound on the cost of nodes for pods, however they are chosen."""

    def add(
        self, key: FleetKey, nodes: int, pods: int, nano_usd_per_hour: int, *, displaced: int
    ) -> None:
        """Note nodes of a fleet that are bought, and how many pods get places on them.

        `displaced` says how many of these pods still run, on nodes that EC2 takes back.
        """
        self.nodes[key] = self.nodes.get(key, 0) + nodes
        self.pods[key] = self.pods.get(key, 0) + pods
        self.displaced[key] = self.displaced.get(key, 0) + displaced
        self.nano_usd_per_hour += nano_usd_per_hour

    def add_headroom(self, key: FleetKey, nodes: int) -> None:
        """Note nodes of a fleet that are bought as headroom, without a pod that asked for them."""
        self.nodes[key] = self.nodes.get(key, 0) + nodes

    def note_bound(self, nano_usd: int) -> None:
        """Add the bound of a further part of the demand, which shares no node with the rest."""
        self.bound_nano_usd_per_hour += nano_usd
