"""The ports of the capacity loop: what it observes, and what it acts on."""

from collections.abc import Mapping
from dataclasses import dataclass

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
