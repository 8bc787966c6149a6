"""What is done at once when messages of the interruption queue come."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from reconciler.model.ids import InstanceId
from reconciler.model.notices import Notice


class InstanceCache(Protocol):
    """A cloud that may answer from what it read a minute ago."""

    def expect_end(self, ids: Collection[InstanceId]) -> bool:
        """Read these anew in observations of the next minute, as AWS announced their end.

        Returns:
            Whether at least one of them is an instance that was observed.
        """
        ...


class Arrivals:
    """Begins a cycle for notices that came, which reads the instances that are ending anew.

    Args:
        clouds: Those that observe instances.
        begin_cycle: Starts the next cycle now.
    """

    def __init__(self, clouds: Iterable[InstanceCache], begin_cycle: Callable[[], object]) -> None:
        self._clouds = tuple(clouds)
        self._begin_cycle = begin_cycle

    def __call__(self, notices: Sequence[Notice]) -> None:
        """Take notices from any thread."""
        ending = {each.instance for each in notices if each.has_begun}
        if ending:
            for cloud in self._clouds:
                cloud.expect_end(ending)
        self._begin_cycle()
