"""The queue of notices: what AWS announces that it will do to instances."""

from collections.abc import Collection
from typing import Protocol

from reconciler.model.notices import MessageId, Notice


class NoticeQueue(Protocol):
    """A queue whose messages are received, held, and deleted when they are settled.

    A message that is not deleted comes again: after a crash, or from the next leader. Messages
    may come twice, late and in any order. Both methods return at once and never raise.
    """

    def held(self) -> tuple[Notice, ...]:
        """Return the notices of messages that were received and not settled, sorted."""
        ...

    def settle(self, messages: Collection[MessageId], emptied: Collection[MessageId] = ()) -> None:
        """Delete these messages, and receive more.

        Those in `emptied` are about instances that run no pods any more: the lifecycle hook that
        holds such an instance is completed before the message is deleted. While a message about
        such an instance is held, so is the instance, within limits.

        Called at the end of each cycle in which this replica acted as the leader, so nothing is
        received before the first call. Unknown messages are ignored.
        """
        ...
