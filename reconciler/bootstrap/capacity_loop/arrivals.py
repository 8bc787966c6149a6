"""What is done at once when messages of the interruption queue come."""

from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol

from reconciler.model.ids import InstanceId
from reconciler.model.notices import Arrival, NoticeKind

CALM: Final[frozenset[NoticeKind]] = frozenset({"state-change", "unreadable"})
"""Kinds that ask for no plan, apart from ends of instances that are observed: the queue has the
state changes of every instance of the account."""


class InstanceCache(Protocol):
    """Answers from what a cloud read up to a minute ago, until it is asked to read again."""

    def expect_end(self, ids: Collection[InstanceId]) -> bool:
        """Read these instances again in each observation of the next minute: they are to end.

        Returns:
            Whether at least one of them is an instance that was observed.
        """
        ...


class Arrivals:
    """Begins a cycle for notices that came, which reads instances that are ending from AWS again.

    Notices that ask for no plan are dealt with by whatever cycle comes next, unless they keep
    others from being received.

    Args:
        clouds: Those that observe instances.
        begin_cycle: Starts the next cycle now.
    """

    def __init__(self, clouds: Iterable[InstanceCache], begin_cycle: Callable[[], object]) -> None:
        self._clouds = tuple(clouds)
        self._begin_cycle = begin_cycle

    def __call__(self, came: Arrival) -> None:
        """Take notices from any thread."""
        ending = {notice.instance for notice in came.notices if notice.has_begun}
        known = [cloud.expect_end(ending) for cloud in self._clouds] if ending else []
        if came.full or any(known) or any(notice.kind not in CALM for notice in came.notices):
            self._begin_cycle()
