"""One consistent observation of cluster and cloud."""

from collections.abc import Sequence

from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.ports.clock import Clock
from reconciler.ports.cloud import Cloud
from reconciler.ports.cluster import Cluster


def observe(
    cluster: Cluster, cloud: Cloud | None, regions: Sequence[Region], clock: Clock
) -> Snapshot:
    """Read both ports and freeze them with the clock.

    EC2 is read first and the cluster after it, so that an instance which joins in between shows
    as joined and not as launching twice.

    Args:
        cluster: The Kubernetes side.
        cloud: The EC2 side; None when nothing is known of it.
        regions: Where to look for fleets.
        clock: The time that the plan will be made for.

    Raises:
        ObservationError: The cluster's caches are too old to decide from.
        PortError: EC2 did not answer in any region.
    """
    cloud_state: CloudState | None = cloud.observe(regions) if cloud is not None else None
    # The clock comes last: a first observation waits for its lists, and what the servers' clocks
    # show is compared with ours.
    cluster_state = cluster.observe()
    return Snapshot(at=clock.now(), cluster=cluster_state, cloud=cloud_state)
