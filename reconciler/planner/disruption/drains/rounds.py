"""Drains in rounds: budgets allow some of a node's pods now and the rest later.

How far such a drain has come is kept on the node, so that any replica can continue it.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.model.actions import DRAIN_PROGRESS
from reconciler.model.cluster import Node, Pod
from reconciler.model.text import counted_noun, duration, parse_rfc3339, rfc3339
from reconciler.planner.disruption.blocker import Blocker
from reconciler.planner.disruption_settings import ScaleInSettings

DRAIN_ROUNDS_MAX = 3
"""The most rounds for which a drain begins that only saves money: each may take minutes, and the
node takes no other pods meanwhile."""
_ROUNDS_READ_MAX = 1000
"""More rounds than a node has pods; an annotation with more is not from this program."""
_NUMBERS = 3
_DIGITS_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainProgress:
    """How far a drain in rounds has come; written as `<RFC 3339>/<rounds>/<pods>/<ending>`."""

    at: datetime
    """When it last made progress."""
    rounds: int
    """The number of rounds for which it began."""
    to_evict: int
    """The number of pods that were still to be evicted then."""
    ending: int
    """The number of pods that were being deleted then."""

    def __str__(self) -> str:
        return f"{rfc3339(self.at)}/{self.rounds}/{self.to_evict}/{self.ending}"

    def after(self, at: datetime, to_evict: int, ending: int) -> "DrainProgress":
        """Return the progress; it has the time `at` if one more pod is being deleted or is gone."""
        if (to_evict, ending) >= (self.to_evict, self.ending):
            return self
        return replace(self, at=at, to_evict=to_evict, ending=ending)


def allowed_rounds(pods: Collection[Pod], *, must_go: bool) -> int:
    """Return in how many rounds the pods of a node may be evicted.

    If the node must go, one pod a round is enough: otherwise it would stay for good where a
    PodDisruptionBudget allows one disruption and covers many of its pods.
    """
    return max(DRAIN_ROUNDS_MAX, len(pods)) if must_go else DRAIN_ROUNDS_MAX


def drain_progress(node: Node, at: datetime) -> DrainProgress | None:
    """Return the progress noted on the node; None for a drain in one round.

    A value that cannot be decoded counts as noted now, with the most rounds: the drain then has its
    whole time again, once.
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
    rounds = min(max(1, readable[0]), _ROUNDS_READ_MAX)
    return DrainProgress(at=min(when, at), rounds=rounds, to_evict=readable[1], ending=readable[2])


def timed_out(
    progress: DrainProgress, started: datetime, at: datetime, settings: ScaleInSettings
) -> Blocker | None:
    """Return a blocker if a drain in rounds has taken too long; None while there is time left."""
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
