"""What actions act on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.executor.pacing import PacedCloud, PacedCluster
from reconciler.executor.tokens import Pace
from reconciler.model.errors import Refused
from reconciler.model.fleet import Provider
from reconciler.ports.cloud import Cloud
from reconciler.ports.cluster import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two sides, the cloud's by provider."""

    cluster: Cluster
    clouds: Mapping[Provider, Cloud]


@dataclass(slots=True)
class PacedSides:
    """The two sides behind token buckets.

    Args:
        sides: The sides themselves.
        pace: The buckets.
    """

    sides: Sides
    pace: Pace
    cluster: PacedCluster = field(init=False)

    def __post_init__(self) -> None:
        """The cluster is one, clouds are found by provider."""
        self.cluster = PacedCluster(self.sides.cluster, self.pace)

    def cloud(self, provider: Provider) -> PacedCloud:
        """The cloud of a provider; Refused when this process is not connected to it."""
        found = self.sides.clouds.get(provider)
        if found is None:
            raise Refused(provider, "this process is not connected to it")
        return PacedCloud(found, self.pace)
