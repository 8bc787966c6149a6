"""Whether our clock can be trusted to say how old something is.

EC2 dates launches and the API server dates objects by their own clocks. With ours an hour ahead, an
instance that was launched a minute ago would count as never joined. So ages count by the earlier of
the clocks, and while they differ by more than a bound nothing is removed because of its age.
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
    """Return how far our clock is ahead of the others; negative when it is behind.

    Of several others the one that differs most counts. What they told with their answers is in the
    snapshot; without that a launch or a node in our future shows that we are behind.
    """
    told = [snapshot.cluster.server_time, snapshot.cloud.server_time if snapshot.cloud else None]
    offsets = [snapshot.at - each for each in told if each is not None]
    newest = _newest(snapshot)
    if newest is not None and newest > snapshot.at:
        offsets.append(snapshot.at - newest)
    return max(offsets, key=abs, default=timedelta(0))


def is_skewed(snapshot: Snapshot) -> bool:
    """Return whether the clocks differ by more than an age may be wrong."""
    return abs(clock_skew(snapshot)) > SKEW_MAX


def earliest_now(snapshot: Snapshot) -> datetime:
    """Return the time by the clock that is furthest behind: nothing is older than that says."""
    told = [snapshot.cluster.server_time, snapshot.cloud.server_time if snapshot.cloud else None]
    return min([snapshot.at, *(each for each in told if each is not None)])


def decided_at(snapshot: Snapshot, nodes: Iterable[Node]) -> datetime:
    """Return the time to note of a decision: nodes that join after it count as new.

    The API server dates nodes, so the clock that is furthest behind says it: with ours ahead the
    first ones would be missed. It is later than all nodes that are there, in our future never.

    Args:
        snapshot: What was observed.
        nodes: Those that were there before.
    """
    newest = max((each.created_at for each in nodes if each.created_at is not None), default=None)
    now = earliest_now(snapshot)
    if newest is not None:
        now = max(now, newest + timedelta(seconds=1))
    return min(now, snapshot.at)


def _newest(snapshot: Snapshot) -> datetime | None:
    launches = snapshot.cloud.instances if snapshot.cloud else ()
    stamps = [each.launched_at for each in launches]
    stamps += [node.created_at for node in snapshot.cluster.nodes]
    return max((each for each in stamps if each is not None), default=None)
