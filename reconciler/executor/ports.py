"""The ports of the capacity loop: what it observes, and what it acts on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.executor.pacing import PacedCloud, PacedCluster
from reconciler.executor.tokens import Pace
from reconciler.model.errors import Refused
from reconciler.model.fleet import Provider
from reconciler.ports.cloud import Cloud
from reconciler.ports.cluster import Cluster
from reconciler.ports.notices import NoticeQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports of the cluster, of each cloud provider, and of the interruption queue."""

    cluster: Cluster
    clouds: Mapping[Provider, Cloud]
    queue: NoticeQueue | None = None
    """None: there is no interruption queue."""


@dataclass(slots=True)
class PacedPorts:
    """The same ports behind token buckets.

    Args:
        ports: The ports without limits.
        pace: The buckets.
    """

    ports: Ports
    pace: Pace
    cluster: PacedCluster = field(init=False)

    def __post_init__(self) -> None:
        """Wrap the port of the cluster with its buckets."""
        self.cluster = PacedCluster(self.ports.cluster, self.pace)

    def cloud(self, provider: Provider) -> PacedCloud:
        """Return the port of a provider; Refused when this process is not connected to it."""
        found = self.ports.clouds.get(provider)
        if found is None:
            raise Refused(provider, "this process is not connected to it")
        return PacedCloud(found, self.pace)
