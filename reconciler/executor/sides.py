"""What actions act on."""

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model.errors import Refused
from reconciler.model.fleet import Provider
from reconciler.ports.cloud import Cloud
from reconciler.ports.cluster import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two sides, the cloud's by provider."""

    cluster: Cluster
    clouds: Mapping[Provider, Cloud]

    def cloud(self, provider: Provider) -> Cloud:
        """The cloud of a provider; Refused when this process is not connected to it."""
        found = self.clouds.get(provider)
        if found is None:
            raise Refused(provider, "this process is not connected to it")
        return found
