"""One consistent observation of cluster and cloud."""

from collections.abc import Sequence

from reconciler.model.errors import PortError
from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState, Ignored, Snapshot
from reconciler.observer.merge import merged_clouds
from reconciler.ports.clock import Clock
from reconciler.ports.cloud import Cloud
from reconciler.ports.cluster import Cluster
from reconciler.ports.notices import NoticeQueue


def observe(
    cluster: Cluster,
    clouds: Sequence[Cloud],
    regions: Sequence[Region],
    clock: Clock,
    queue: NoticeQueue | None = None,
) -> Snapshot:
    """Read the cluster and all clouds, and freeze them with the clock.

    EC2 is read first and the cluster after it, so that an instance which joins in between shows
    as joined and not as launching twice.

    Args:
        cluster: The Kubernetes side.
        clouds: One per provider or account; none when nothing is known of EC2.
        regions: Where to look for fleets.
        clock: The time that the plan will be made for.
        queue: What AWS announces; None without an interruption queue.

    Raises:
        ObservationError: The cluster's caches are too old to decide from.
        PortError: No cloud answered in any region; the first one's error.
    """
    # Notices come first: that an instance is not ours must be said by a later answer of EC2.
    notices = queue.held() if queue is not None else ()
    cloud_state = _observed(clouds, regions)
    # The clock comes last: a first observation waits for its lists, and what the servers' clocks
    # show is compared with ours.
    cluster_state = cluster.observe()
    return Snapshot(at=clock.now(), cluster=cluster_state, cloud=cloud_state, notices=notices)


def _observed(clouds: Sequence[Cloud], regions: Sequence[Region]) -> CloudState | None:
    """Return what all clouds show; of one that does not answer, every region is silent."""
    states: list[CloudState] = []
    failed: list[PortError] = []
    for cloud in clouds:
        try:
            states.append(cloud.observe(regions))
        except PortError as error:
            failed.append(error)
    if failed and not states:
        raise failed[0]
    if failed:
        told = tuple(
            Ignored(code="unreadable", kind="Region", name=each) for each in sorted(regions)
        )
        states.append(CloudState(silent=frozenset(regions), ignored=told))
    return merged_clouds(states)
