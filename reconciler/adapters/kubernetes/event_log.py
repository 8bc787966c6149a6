"""Deduplicates Events: equal ones are counted, and objects with too many are cut off."""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from reconciler.model.throttling import BucketLevel, TokenBucket
from reconciler.ports.object_events import ObjectEvent

OBJECTS_MAX = 4096
"""As in client-go's correlator: what is kept stays bounded however many objects there are."""
QUEUE_MAX = 2000
REPEAT_SECONDS = 300.0
"""How often an equal Event is written again, with its count."""
OBJECT_BUCKET: Final = TokenBucket(capacity=25, per_second=1 / 300)
"""Per object: 25 Events at once, then one per 5 min, as in client-go's spam filter."""

Key = tuple[str, str, str, str, str, str]


@dataclass(slots=True, kw_only=True)
class RecordedEvent:
    """An Event, how often it occurred, and whether it was written."""

    event: ObjectEvent
    first_at: datetime
    last_at: datetime
    count: int = 1
    written_at: float | None = None
    """Monotonic; None: not yet."""
    name: str = ""
    """Name of the Event object; empty: there is none yet."""
    queued: bool = True


class EventLog:
    """The Events to write next. Not thread-safe: its owner locks.

    Args:
        now: The wall clock.
        monotonic_seconds: A clock that never jumps.
    """

    def __init__(self, now: Callable[[], datetime], monotonic_seconds: Callable[[], float]) -> None:
        self._now = now
        self._monotonic_seconds = monotonic_seconds
        self._recorded: OrderedDict[Key, RecordedEvent] = OrderedDict()
        self._levels: OrderedDict[tuple[str, str, str, str], BucketLevel] = OrderedDict()
        self._due: deque[RecordedEvent] = deque()

    def add(self, event: ObjectEvent) -> bool:
        """Add an Event; return False when it was dropped."""
        key = _key(event)
        recorded = self._recorded.get(key)
        if recorded is not None:
            self._recorded.move_to_end(key)
            return self._repeated(recorded, event)
        if len(self._due) >= QUEUE_MAX or not self._allowed(key[:4]):
            return False
        now = self._now()
        recorded = RecordedEvent(event=event, first_at=now, last_at=now)
        self._recorded[key] = recorded
        self._due.append(recorded)
        while len(self._recorded) > OBJECTS_MAX:
            self._recorded.popitem(last=False)
        return True

    def _repeated(self, recorded: RecordedEvent, event: ObjectEvent) -> bool:
        recorded.event, recorded.last_at = event, self._now()
        recorded.count += 1
        written_at = recorded.written_at
        if recorded.queued or written_at is None:
            return True
        if self._monotonic_seconds() - written_at >= REPEAT_SECONDS and len(self._due) < QUEUE_MAX:
            recorded.queued = True
            self._due.append(recorded)
        return True

    def _allowed(self, subject: tuple[str, str, str, str]) -> bool:
        now = self._monotonic_seconds()
        before = self._levels.get(subject) or BucketLevel.full(OBJECT_BUCKET, now)
        after = before.after_call(now)
        self._levels[subject] = after or before
        self._levels.move_to_end(subject)
        while len(self._levels) > OBJECTS_MAX:
            self._levels.popitem(last=False)
        return after is not None

    def next(self) -> RecordedEvent | None:
        """Return the next one to write; it is then no longer due."""
        if not self._due:
            return None
        recorded = self._due.popleft()
        recorded.queued = False
        recorded.written_at = self._monotonic_seconds()
        return recorded

    def forget(self, recorded: RecordedEvent) -> None:
        """Forget an Event that could not be written, so that it can be written again at once."""
        self._recorded.pop(_key(recorded.event), None)

    def __len__(self) -> int:
        """Return how many are due."""
        return len(self._due)


def _key(event: ObjectEvent) -> Key:
    return (
        event.kind,
        event.namespace,
        event.name,
        event.uid,
        event.reason,
        event.about or event.message,
    )
