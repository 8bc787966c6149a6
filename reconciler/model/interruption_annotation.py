"""Writes and reads the value of the node annotation `fleet-reconciler.io/interruption`.

Its form is `<action>/<RFC 3339>`. The node watch writes it from instance metadata, the capacity
loop from the interruption queue, and the planner reads it. Notices that it outranks are in
`fleet-reconciler.io/further-interruptions`, which only the capacity loop writes: they apply once it
is withdrawn. Standard library only, so that the node watch stays small.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from reconciler.model.notices import SPOT_ACTIONS

REBALANCE_RECOMMENDATION: Final = "rebalance-recommendation"
"""A rebalance recommendation: a spot instance is more likely to be interrupted; the time is when
EC2 said so."""
SCHEDULED_CHANGE: Final = "scheduled-change"
"""EC2 reboots, stops or retires the instance; the time is `NotBefore`."""
RANKS: Final = {**dict.fromkeys(SPOT_ACTIONS, 0), SCHEDULED_CHANGE: 1, REBALANCE_RECOMMENDATION: 2}
"""The known actions: one with a lower number outranks the others."""
ACTIONS: Final = frozenset(RANKS)
WRITTEN_BY_NODE_WATCH: Final = "fleet-reconciler.io/node-watch"
"""A second annotation with the value that the node watch wrote.

If both are the same, the notice is the node watch's own, and it may remove it.
"""
OVER_AFTER: Final = timedelta(minutes=5)
"""This long after its time a notice has not come true, or was delivered far too late."""
LENGTH_MAX: Final = 64
"""Characters; the longest action has 24 and an RFC 3339 time at most 35."""
FURTHER_MAX: Final = 8
"""How many notices are kept besides the one that applies, including a recommendation; EC2 rarely
announces two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedNotice:
    """The content of a node's annotation."""

    action: str
    """One of `ACTIONS`."""
    at: datetime
    """When it begins, in UTC, whole seconds."""

    def __str__(self) -> str:
        """Return the value of the annotation."""
        return f"{self.action}/{self.at.isoformat().replace('+00:00', 'Z')}"

    @property
    def forced(self) -> bool:
        """Return whether the instance ends at that time in any case."""
        return self.action in SPOT_ACTIONS

    def is_over(self, now: datetime) -> bool:
        """Return whether its time is so long past that it has not come true."""
        return is_over(self.at, now, recommended=self.action == REBALANCE_RECOMMENDATION)

    @property
    def rank(self) -> tuple[int, datetime]:
        """Return its rank: of several notices for a node the one with the lowest rank applies."""
        return RANKS[self.action], self.at


def is_over(at: datetime, now: datetime, *, recommended: bool) -> bool:
    """Return whether a notice no longer applies, for messages of the queue and annotations alike.

    Args:
        at: Its time.
        now: The clock.
        recommended: Whether it is a recommendation: its time is when it was given, and it applies
            until it is withdrawn.
    """
    return not recommended and now - at > OVER_AFTER


def annotated_notice(action: str, at: datetime) -> AnnotatedNotice | None:
    """Return a notice; None for an unknown action, or a time without a zone or out of range."""
    if action not in ACTIONS or at.tzinfo is None:
        return None
    try:
        in_utc = at.astimezone(UTC).replace(microsecond=0)
    except OverflowError:
        return None
    return AnnotatedNotice(action=action, at=in_utc)


def read_annotation(text: str) -> AnnotatedNotice | None:
    """Return the content of the annotation's value; None if it is unreadable."""
    action, _, time = text.partition("/")
    if len(text) > LENGTH_MAX:
        return None
    try:
        at = datetime.fromisoformat(time)
    except ValueError:
        return None
    return annotated_notice(action, at)


def read_further(text: str) -> tuple[AnnotatedNotice, ...]:
    """Return the notices in the value of the other annotation, without unreadable ones."""
    parts = text.split(",", FURTHER_MAX)[:FURTHER_MAX]
    return tuple(notice for part in parts if (notice := read_annotation(part)) is not None)
