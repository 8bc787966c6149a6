"""Whether our clock can be trusted to tell the age of something.

EC2 dates launches and the API server dates objects by their own clocks. If ours is an hour ahead,
an instance launched a minute ago would count as never joined. So ages are computed by the earliest
of the clocks, and while they differ by more than a bound nothing is removed because of its age.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.cluster import Node
from reconciler.model.snapshot import Snapshot

SKEW_MAX = timedelta(minutes=2)
"""Machines that keep time differ by milliseconds; an answer may be some seconds old."""
CLOCK_SKEW: Final = "clock-skew"
"""Code of `held`."""


def clock_skew(snapshot: Snapshot) -> timedelta:
    """Return how far our clock is ahead of the others; negative if it is behind.

    Of several others the one that differs most counts. The snapshot has the times of their answers;
    without these a launch or a node in our future shows that we are behind.
    """
    answered = [
        snapshot.cluster.server_time,
        snapshot.cloud.server_time if snapshot.cloud else None,
    ]
    offsets = [snapshot.at - each for each in answered if each is not None]
    newest = _newest(snapshot)
    if newest is not None and newest > snapshot.at:
        offsets.append(snapshot.at - newest)
    return max(offsets, key=abs, default=timedelta(0))


def is_skewed(snapshot: Snapshot) -> bool:
    """Return whether the clocks differ by more than the tolerated error of an age."""
    return abs(clock_skew(snapshot)) > SKEW_MAX


def is_beyond_skew(moment: datetime, at: datetime) -> bool:
    """Return whether a noted time is so far in our future that no clock explains it.

    What it was noted for must not last until then.
    """
    return moment - at > SKEW_MAX


def earliest_now(snapshot: Snapshot) -> datetime:
    """Return the time by the clock that is furthest behind: no age is larger than by that."""
    answered = [
        snapshot.cluster.server_time,
        snapshot.cloud.server_time if snapshot.cloud else None,
    ]
    return min([snapshot.at, *(each for each in answered if each is not None)])


def decided_at(snapshot: Snapshot, nodes: Iterable[Node]) -> datetime:
    """Return the time to note for a decision: nodes that join after it count as new.

    The API server dates nodes, so the clock that is furthest behind is used: with ours ahead the
    first new nodes would be missed. The time is later than all existing nodes and never in our
    future.

    Args:
        snapshot: What was observed.
        nodes: The nodes that existed before.
    """
    newest = max((node.created_at for node in nodes if node.created_at is not None), default=None)
    now = earliest_now(snapshot)
    if newest is not None:
        now = max(now, min(newest, snapshot.at) + timedelta(seconds=1))
    return min(now, snapshot.at)


def _newest(snapshot: Snapshot) -> datetime | None:
    launches = snapshot.cloud.instances if snapshot.cloud else ()
    stamps = [at for launch in launches if (at := launch.launched_at) is not None]
    stamps += [at for node in snapshot.cluster.nodes if (at := node.created_at) is not None]
    return max(stamps, default=None)
