"""Drains in rounds: budgets that allow some of a node's pods now and the rest later.

How far such a drain has come is kept on the node, so that any replica can go on with it.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.model.actions import DRAIN_PROGRESS
from reconciler.model.cluster import Node
from reconciler.model.text import counted_noun, duration, parse_rfc3339, rfc3339
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.settings import ScaleInSettings

DRAIN_ROUNDS_MAX = 3
"""A drain begins when no more rounds are needed: each may take minutes, and the node is closed to
other pods meanwhile."""
_NUMBERS = 3
_DIGITS_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainProgress:
    """Says how far a drain in rounds has come; written as `<RFC 3339>/<rounds>/<pods>/<ending>`."""

    at: datetime
    """When it last came further."""
    rounds: int
    """How many it was begun for."""
    to_evict: int
    """Pods that were still to be evicted then."""
    ending: int
    """Pods that were being deleted then."""

    def __str__(self) -> str:
        return f"{rfc3339(self.at)}/{self.rounds}/{self.to_evict}/{self.ending}"

    def after(self, at: datetime, to_evict: int, ending: int) -> "DrainProgress":
        """Return the progress, with the current time when one more pod is deleted or gone."""
        if (to_evict, ending) >= (self.to_evict, self.ending):
            return self
        return replace(self, at=at, to_evict=to_evict, ending=ending)


def drain_progress(node: Node, at: datetime) -> DrainProgress | None:
    """Return what the node's annotation says; None for a drain in one round.

    A value that cannot be read counts as noted now, for as many rounds as there may be: the drain
    then has its whole time again, once.
    """
    text = node.annotations.get(DRAIN_PROGRESS)
    if text is None:
        return None
    noted, *numbers = text.split("/")
    when = parse_rfc3339(noted)
    readable = [int(n) for n in numbers if n.isascii() and n.isdigit() and len(n) <= _DIGITS_MAX]
    if when is None or len(readable) != _NUMBERS or len(numbers) != _NUMBERS:
        most = 10**_DIGITS_MAX
        return DrainProgress(at=at, rounds=DRAIN_ROUNDS_MAX, to_evict=most, ending=0)
    rounds = min(max(1, readable[0]), DRAIN_ROUNDS_MAX)
    return DrainProgress(at=min(when, at), rounds=rounds, to_evict=readable[1], ending=readable[2])


def timed_out(
    progress: DrainProgress, started: datetime, at: datetime, settings: ScaleInSettings
) -> Blocker | None:
    """Return a blocker when a drain in rounds has failed by the clock.

    None while there is time left.
    """
    timeout = timedelta(seconds=settings.pod_eviction_timeout_seconds)
    grace = timedelta(seconds=settings.graceful_termination_max_seconds)
    still = at - progress.at
    if still > (timeout + grace if progress.ending else timeout):
        return Blocker("drain-timeout", f"none of its pods has left for {duration(still)}")
    spent = at - started
    if spent > progress.rounds * (grace + timeout):
        rounds = counted_noun(progress.rounds, "round")
        why = f"not empty {duration(spent)} after its drain in {rounds} began"
        return Blocker("drain-timeout", why)
    return None
