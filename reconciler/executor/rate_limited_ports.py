"""The ports as the executor uses them: every changing call takes a token from its API's bucket."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from reconciler.executor.ports import Ports
from reconciler.executor.rate_limiter import Api, RateLimiter
from reconciler.model.cluster import Node, Taint
from reconciler.model.errors import Refused, Throttled
from reconciler.model.fleet import Fleet, Instance, Provider
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey, Region
from reconciler.ports.cloud import Cloud
from reconciler.ports.cluster import Cluster

CLUSTER = "cluster"


@contextmanager
def rate_limited(limiter: RateLimiter, place: str, *apis: Api) -> Iterator[None]:
    """Let one call of these APIs through; a server that throttles it closes all their buckets.

    Raises:
        Throttled: By our buckets or by the server; nothing was changed.
    """
    for api in apis:
        limiter.enter(api, place)
    try:
        yield
    except Throttled as error:
        for api in apis:
            limiter.refused(api, place, error)
        raise
    for api in apis:
        limiter.granted(api, place)


class RateLimitedCloud:
    """The parts of a Cloud that actions use; reading calls take no token.

    Args:
        cloud: The provider.
        limiter: The buckets.
    """

    def __init__(self, cloud: Cloud, limiter: RateLimiter) -> None:
        self._cloud = cloud
        self._limiter = limiter

    def fleet(self, region: Region, fleet_id: FleetId) -> Fleet:
        """See `ports.cloud.Cloud.fleet`."""
        return self._cloud.fleet(region, fleet_id)

    def fleet_state(self, region: Region, fleet_id: FleetId) -> str:
        """See `ports.cloud.Cloud.fleet_state`."""
        return self._cloud.fleet_state(region, fleet_id)

    def instances(self, region: Region, ids: Sequence[InstanceId]) -> tuple[Instance, ...]:
        """See `ports.cloud.Cloud.instances`."""
        return self._cloud.instances(region, ids)

    def set_target_capacity(self, region: Region, fleet_id: FleetId, capacity: int) -> None:
        """See `ports.cloud.Cloud.set_target_capacity`."""
        with rate_limited(self._limiter, region, "ModifyFleet"):
            self._cloud.set_target_capacity(region, fleet_id, capacity)

    def terminate(
        self,
        region: Region,
        fleet_id: FleetId,
        ids: Sequence[InstanceId],
        *,
        lower_target: bool,
        expected_target: int | None = None,
    ) -> int | None:
        """See `ports.cloud.Cloud.terminate`.

        The call starts only once every bucket it needs has a token.
        """
        apis: tuple[Api, ...] = ("TerminateInstances",)
        with rate_limited(
            self._limiter, region, *(("ModifyFleet", *apis) if lower_target else apis)
        ):
            return self._cloud.terminate(
                region, fleet_id, ids, lower_target=lower_target, expected_target=expected_target
            )


class RateLimitedCluster:
    """The parts of a Cluster that actions use; reading calls take no token.

    Args:
        cluster: The API server.
        limiter: The buckets.
    """

    def __init__(self, cluster: Cluster, limiter: RateLimiter) -> None:
        self._cluster = cluster
        self._limiter = limiter

    def counted_pods_on(self, node: NodeName) -> tuple[PodKey, ...]:
        """See `ports.cluster.Cluster.counted_pods_on`."""
        return self._cluster.counted_pods_on(node)

    def nodes(self) -> tuple[Node, ...]:
        """See `ports.cluster.Cluster.nodes`."""
        return self._cluster.nodes()

    def taint_node(self, node: NodeName, taint: Taint) -> bool:
        """See `ports.cluster.Cluster.taint_node`."""
        with rate_limited(self._limiter, CLUSTER, "nodes"):
            return self._cluster.taint_node(node, taint)

    def untaint_node(self, node: NodeName, key: str) -> bool:
        """See `ports.cluster.Cluster.untaint_node`."""
        with rate_limited(self._limiter, CLUSTER, "nodes"):
            return self._cluster.untaint_node(node, key)

    def annotate_node(self, node: NodeName, annotations: Mapping[str, str | None]) -> None:
        """See `ports.cluster.Cluster.annotate_node`."""
        with rate_limited(self._limiter, CLUSTER, "nodes"):
            self._cluster.annotate_node(node, annotations)

    def evict_pod(self, pod: PodKey, grace_seconds: int) -> bool:
        """See `ports.cluster.Cluster.evict_pod`."""
        with rate_limited(self._limiter, CLUSTER, "pods/eviction"):
            return self._cluster.evict_pod(pod, grace_seconds)

    def delete_pod(self, pod: PodKey, grace_seconds: int) -> bool:
        """See `ports.cluster.Cluster.delete_pod`."""
        with rate_limited(self._limiter, CLUSTER, "pods"):
            return self._cluster.delete_pod(pod, grace_seconds)

    def delete_node(self, node: NodeName, uid: str) -> bool:
        """See `ports.cluster.Cluster.delete_node`."""
        with rate_limited(self._limiter, CLUSTER, "nodes"):
            return self._cluster.delete_node(node, uid)


@dataclass(slots=True)
class RateLimitedPorts:
    """The ports of the capacity loop behind token buckets.

    Args:
        ports: The ports without limits.
        limiter: The buckets.
    """

    ports: Ports
    limiter: RateLimiter
    cluster: RateLimitedCluster = field(init=False)

    def __post_init__(self) -> None:
        """Wrap the port of the cluster with its buckets."""
        self.cluster = RateLimitedCluster(self.ports.cluster, self.limiter)

    def cloud(self, provider: Provider) -> RateLimitedCloud:
        """Return the port of a provider; Refused when this process is not connected to it."""
        found = self.ports.clouds.get(provider)
        if found is None:
            raise Refused(provider, "this process is not connected to it")
        return RateLimitedCloud(found, self.limiter)
