"""Limits how many searches for a place may fail for the pods of one policy in a plan."""

from datetime import datetime
from typing import Final
from zlib import crc32

from reconciler.model.cluster import Pod

FAILED_FOR_ALL: Final = 1000
"""So many searches may fail before the pods take turns."""
FAILED_MAX: Final = 2000
"""After so many failed searches none is begun: together they take a third of a second."""
TURNS: Final = 16
TURN_SECONDS: Final = 60


class SearchLimit:
    """Counts the searches of one policy that found no place.

    In a full cluster thousands of pods may be proposed in each plan, and none finds a place. When
    many searches have failed, pods are searched for by turns: which ones depends on their names and
    on the time of the plan alone, so that each has its turn within some minutes, also after a
    restart.

    Args:
        at: The time of the plan.
    """

    def __init__(self, at: datetime) -> None:
        self._turn = int(at.timestamp() // TURN_SECONDS) % TURNS
        self._failed = 0

    def allows(self, pod: Pod) -> bool:
        """Return whether a place may be looked for."""
        if self._failed < FAILED_FOR_ALL:
            return True
        return self._failed < FAILED_MAX and crc32(str(pod.key).encode()) % TURNS == self._turn

    def count_failed(self) -> None:
        """Count a search that found no place."""
        self._failed += 1

    def begin_policy(self) -> None:
        """Begin to count at zero again, so that no policy takes the searches of the next one."""
        self._failed = 0
