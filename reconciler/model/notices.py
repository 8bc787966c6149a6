"""Notices: what AWS announces that it will do to an instance, or has done."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, NewType

from reconciler.model.ids import InstanceId, Region

MessageId = NewType("MessageId", str)
"""A message of the interruption queue; one message may hold notices for several instances."""

NoticeKind = Literal[
    "spot-interruption",
    "rebalance",
    "scheduled-change",
    "change-withdrawn",
    "state-change",
    "lifecycle-action",
    "unreadable",
]
"""What a message is about. `change-withdrawn`: a scheduled change was cancelled, or is done.
`unreadable`: it is not one of the events that the rules send."""

NoticeResult = Literal[
    "acted", "instance-gone", "no-change", "not-ours", "ignored", "expired", "unreadable", "waiting"
]
"""What a snapshot shows about a notice; with `waiting` its message stays in the queue."""

STAYING: Final = frozenset({"pending", "running"})
"""States of an instance after which nothing is left to do."""
SPOT_ACTIONS: Final = frozenset({"terminate", "stop", "hibernate"})
"""What EC2 does to an interrupted spot instance; after each of these the node runs nothing."""

SPOT_NOTICE: Final = timedelta(minutes=2)
"""From the event to the moment at which EC2 starts the interruption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleAction:
    """The wait of an instance's end for a lifecycle hook of its Auto Scaling group."""

    region: Region
    group: str
    name: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Notice:
    """One instance of one message."""

    message: MessageId
    kind: NoticeKind
    instance: InstanceId
    """Empty for `unreadable`."""
    action: str = ""
    """`terminate`, `stop` or `hibernate` for a spot interruption; the instance's new state for a
    state change; the type of the event for a scheduled change, withdrawn or not."""
    at: datetime | None = None
    """When AWS does it, did it or was to do it, aware; None for `unreadable`."""
    hook: LifecycleAction | None = field(default=None, compare=False)
    """Of a lifecycle action: the action to complete."""

    @property
    def has_begun(self) -> bool:
        """Return whether AWS is ending the instance now, so that its state shows it."""
        changed = self.kind == "state-change" and self.action not in STAYING
        return changed or self.kind == "lifecycle-action"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Messages that were received by one call."""

    notices: tuple[Notice, ...]
    full: bool = False
    """Whether so many messages are held that no others are received until some are settled."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class NoticeOutcome:
    """The result of one notice, as far as a snapshot shows it."""

    notice: Notice
    result: NoticeResult

    @property
    def done(self) -> bool:
        """Return whether nothing is left to do about it."""
        return self.result != "waiting"


def settled_messages(outcomes: Iterable[NoticeOutcome]) -> frozenset[MessageId]:
    """Return the messages whose notices are all done."""
    known = list(outcomes)
    waiting = {notice_outcome.notice.message for notice_outcome in known if not notice_outcome.done}
    return frozenset(notice_outcome.notice.message for notice_outcome in known) - waiting


def emptied_messages(outcomes: Iterable[NoticeOutcome]) -> frozenset[MessageId]:
    """Return the messages about instances that a hook holds and that have no pod left."""
    return frozenset(e.notice.message for e in outcomes if e.notice.hook and e.result == "acted")


def settled_by_kind(
    outcomes: Iterable[NoticeOutcome],
) -> Mapping[tuple[NoticeKind, NoticeResult], int]:
    """Count the notices of settled messages by kind and result."""
    known = list(outcomes)
    settled = settled_messages(known)
    return Counter((e.notice.kind, e.result) for e in known if e.notice.message in settled)
