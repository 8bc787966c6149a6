"""The queue of notices: what AWS says that it will do to instances."""

from collections.abc import Collection
from typing import Protocol

from reconciler.model.notices import MessageId, Notice


class NoticeQueue(Protocol):
    """Messages are received, held, and deleted when they were dealt with.

    A message that is not deleted comes again: after a crash, or from the next leader. Messages
    may come twice, late and in any order. Both methods return at once and never raise.
    """

    def held(self) -> tuple[Notice, ...]:
        """The notices of the messages that were received and not settled, sorted."""
        ...

    def settle(self, messages: Collection[MessageId], emptied: Collection[MessageId] = ()) -> None:
        """Have these messages deleted, and receive more.

        Of those in `emptied` the instance runs nothing any more: what a lifecycle hook holds may
        go on, and is told so before the message is deleted. While a message about such an
        instance is held, so is the instance, within limits.

        Called at the end of each cycle in which this replica acted as the leader, so nothing is
        received before the first call. Unknown messages are passed over.
        """
        ...
