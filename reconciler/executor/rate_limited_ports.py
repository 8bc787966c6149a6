"""The ports as the executor uses them: every changing call takes a token from its API's bucket."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from reconciler.executor.ports import Ports
from reconciler.executor.rate_limiter import Api, RateLimiter
from reconciler.model.cluster import Node, Taint
from reconciler.model.errors import Refused, Throttled
from reconciler.model.fleet import Fleet, Instance, Provider
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey, Region
from reconciler.ports.cloud import Cloud
from reconciler.ports.cluster import Cluster

CLUSTER = "cluster"
_RAISES: Final[Mapping[Provider, Api]] = {"ec2-fleet": "ModifyFleet", "asg": "SetDesiredCapacity"}
_ENDS: Final[Mapping[Provider, Api]] = {
    "ec2-fleet": "TerminateInstances",
    "asg": "TerminateInstanceInAutoScalingGroup",
}
"""By provider: the API that sets targets, and the one that ends instances."""


@contextmanager
def rate_limited(limiter: RateLimiter, place: str, api: Api) -> Iterator[None]:
    """Let one call of an API through; a server that throttles it closes the API's bucket.

    Raises:
        Throttled: By our bucket or by the server; nothing was changed.
    """
    limiter.enter(api, place)
    try:
        yield
    except Throttled as error:
        limiter.refused(api, place, error)
        raise
    limiter.granted(api, place)


class RateLimitedCloud:
    """The parts of a Cloud that actions use; reading calls take no token.

    Args:
        cloud: The provider.
        limiter: The buckets.
        provider: Its name.
    """

    def __init__(self, cloud: Cloud, limiter: RateLimiter, provider: Provider) -> None:
        self._cloud = cloud
        self._limiter = limiter
        self._provider: Provider = provider

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
        with rate_limited(self._limiter, region, _RAISES[self._provider]):
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

        Whichever of its calls is throttled, only ends are held back: raises must not wait for them.
        """
        modifies = lower_target and self._provider == "ec2-fleet"
        if modifies:
            self._limiter.enter("ModifyFleet", region)
        with rate_limited(self._limiter, region, _ENDS[self._provider]):
            target = self._cloud.terminate(
                region, fleet_id, ids, lower_target=lower_target, expected_target=expected_target
            )
        if modifies:
            self._limiter.granted("ModifyFleet", region)
        return target


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
        return RateLimitedCloud(found, self.limiter, provider)
