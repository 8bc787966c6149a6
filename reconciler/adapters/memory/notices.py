"""The interruption queue in memory: messages are redelivered like those of SQS."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import count

from reconciler.adapters.memory.clock import ManualClock
from reconciler.adapters.memory.faults import CallLog
from reconciler.model.notices import MessageId, Notice

VISIBILITY_SECONDS = 30.0
"""A received message that was not deleted becomes visible again after this time."""


@dataclass(slots=True)
class _Message:
    notices: tuple[Notice, ...]
    visible_at: float = 0.0
    """When it can be received; monotonic seconds."""


class MemoryMessages:
    """The messages in the queue, shared by all its readers.

    Args:
        clock: The world's clock.
    """

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._numbers = count(1)
        self._messages: dict[MessageId, _Message] = {}

    def send(self, make: Callable[[MessageId], tuple[Notice, ...]]) -> MessageId:
        """Put a message into the queue; `make` returns its content, given its id."""
        message = MessageId(f"message-{next(self._numbers):06}")
        self._messages[message] = _Message(make(message))
        return message

    @property
    def waiting(self) -> tuple[MessageId, ...]:
        """Return the messages that were not deleted, by id."""
        return tuple(sorted(self._messages))

    def receive(self) -> dict[MessageId, tuple[Notice, ...]]:
        """Return the visible messages, and hide them for a while."""
        now = self._clock.monotonic_seconds()
        messages = {m: each for m, each in self._messages.items() if each.visible_at <= now}
        for each in messages.values():
            each.visible_at = now + VISIBILITY_SECONDS
        return {message: each.notices for message, each in messages.items()}

    def extend(self, messages: Collection[MessageId]) -> None:
        """Hide messages for longer."""
        visible_at = self._clock.monotonic_seconds() + VISIBILITY_SECONDS
        for message in messages:
            if message in self._messages:
                self._messages[message].visible_at = visible_at

    def delete(self, messages: Collection[MessageId]) -> None:
        """Delete messages from the queue."""
        for message in messages:
            self._messages.pop(message, None)


class MemoryNotices:
    """A NoticeQueue over these messages; one for each process.

    Args:
        messages: The queue.
        log: Records deletions as calls, at which the program may crash.
    """

    def __init__(self, messages: MemoryMessages, log: CallLog) -> None:
        self._messages = messages
        self._log = log
        self._held: dict[MessageId, tuple[Notice, ...]] = {}
        self._wanted = False

    def held(self) -> tuple[Notice, ...]:
        """See ports.notices."""
        if self._wanted:
            self._held.update(self._messages.receive())
            self._messages.extend(self._held)
        return tuple(sorted(notice for notices in self._held.values() for notice in notices))

    def settle(
        self,
        messages: Collection[MessageId],
        emptied: Collection[MessageId] = (),  # noqa: ARG002 - its groups have no hooks
    ) -> None:
        """See ports.notices."""
        self._wanted = True
        known = {message for message in messages if message in self._held}
        for each in known:
            del self._held[each]
        if known:
            with self._log.call("delete_messages", "queue"):
                self._messages.delete(known)
