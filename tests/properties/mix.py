"""What random cases are mixed from: features that may be left out, and the names they share."""

from dataclasses import dataclass

from hypothesis import strategies as st

from reconciler.model.cluster import Taint

ZONES = ("us-west-2a", "us-west-2b")
APPS = ("a", "b", "c")
SIZES = {
    "small": {"cpu": 2, "memory": "8Gi", "pods": 5, "price": "0.10"},
    "medium": {"cpu": 4, "memory": "16Gi", "pods": 10, "price": "0.19"},
    "large": {"cpu": 8, "memory": "64Gi", "pods": 20, "price": "0.45"},
}
TAINT = Taint(key="dedicated", value="x", effect="NoSchedule")


@dataclass(frozen=True, kw_only=True)
class Mix:
    """Which features a case may have."""

    between_pods: bool = True
    spread: bool = True
    limits: bool = True
    trouble: bool = True
    """Nodes that are unready, cordoned, draining; fleets that fail."""
    clouds: bool | None = None
    """Whether EC2's answers are given; None: either."""
    idle: bool = False
    """Nodes with idle annotations and protections, fleets with short thresholds."""
    volumes: bool = False
    """Claims on every other pod, and few attachments on every node."""
    balloons: bool = False
    """Pods of low priority on nodes, pods that may or may not preempt them."""
    crowded: bool = False
    """Rules between pods on every other app, most replicas on nodes already."""
    apps_max: int = 5
    nodes_max: int = 5

    @property
    def dense(self) -> bool:
        """One feature at a time: several apps of small pods that share a few nodes."""
        return self.volumes or self.balloons or self.crowded


EVERYTHING = Mix()


def rarely(draw: st.DrawFn, chance: int = 5) -> bool:
    """True once in so many."""
    return draw(st.integers(0, chance - 1)) == chance - 1
