"""What actions act on."""

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model.fleet import Provider
from reconciler.ports.cloud import Cloud
from reconciler.ports.cluster import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two sides, the cloud's by provider."""

    cluster: Cluster
    clouds: Mapping[Provider, Cloud]
