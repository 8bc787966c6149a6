"""Reads cluster and cloud into one consistent snapshot."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from reconciler.model.errors import PortError, name_and_text
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
    """Read the cluster and all clouds, and return them with the time as a snapshot.

    EC2 is read first and the cluster after it, so that an instance which joins in between shows
    as joined and not as launching twice.

    Args:
        cluster: The Kubernetes side.
        clouds: One per provider or account; none when nothing is known of EC2.
        regions: Where to look for fleets.
        clock: The time that the plan will be made for.
        queue: The interruption queue; None without one.

    Raises:
        ObservationError: The cluster's caches are too old to decide from.
        PortError: No cloud answered in any region; the first one's error.
    """
    # Notices are read first, since only a later answer of EC2 can show that an instance is not
    # ours.
    notices = queue.held() if queue is not None else ()
    cloud_state = _observed(clouds, regions, clock)
    answered_at = clock.monotonic_seconds()
    # The clock is read last: a first observation waits for its lists, and the servers' clocks are
    # compared with ours.
    cluster_state = cluster.observe()
    if cloud_state is not None:
        cloud_state = _with_time_of(cloud_state, clock.monotonic_seconds() - answered_at)
    return Snapshot(at=clock.now(), cluster=cluster_state, cloud=cloud_state, notices=notices)


def _observed(
    clouds: Sequence[Cloud], regions: Sequence[Region], clock: Clock
) -> CloudState | None:
    """Return what all clouds show; of a cloud that does not answer every region is silent."""
    answered: list[tuple[CloudState, float]] = []
    failed: list[PortError] = []
    for cloud in clouds:
        try:
            answered.append((cloud.observe(regions), clock.monotonic_seconds()))
        except PortError as error:
            failed.append(error)
    now = clock.monotonic_seconds()
    states = [_with_time_of(state, now - at) for state, at in answered]
    if failed and not states:
        raise failed[0]
    if failed:
        why = name_and_text(failed[0])
        ignored = tuple(
            Ignored(code="unreadable", kind="Region", name=region, detail=why)
            for region in sorted(regions)
        )
        states.append(CloudState(silent=frozenset(regions), ignored=ignored))
    return merged_clouds(states)


def _with_time_of(state: CloudState, seconds: float) -> CloudState:
    """Return the state with the server's time so much later: what was read next took that long.

    Our clock is read last, and would seem to be ahead of that of a server that answered early.
    """
    answered_at = state.server_time
    if answered_at is None or not seconds:
        return state
    return replace(state, server_time=answered_at + timedelta(seconds=seconds))
