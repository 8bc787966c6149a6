"""Remembers for a minute which desired capacities Auto Scaling has accepted from us."""

import threading
from collections.abc import Callable

from reconciler.adapters.aws.replaced_targets import STALE_SECONDS
from reconciler.model.ids import FleetId, Region


class RaisedCapacities:
    """Recognises answers about groups that are older than a capacity that was just raised.

    Auto Scaling's answers are eventually consistent. A capacity between the old one and ours would
    look like a raise, and the group would end instances of its own choice.

    Args:
        monotonic: A clock that never jumps.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._raised: dict[tuple[Region, FleetId], tuple[int, float]] = {}

    def accepted(self, region: Region, group: FleetId, capacity: int) -> None:
        """Note that a desired capacity was accepted."""
        with self._lock:
            self._raised[region, group] = capacity, self._monotonic()

    def lowered(self, region: Region, group: FleetId) -> None:
        """Note that an instance was ended together with its unit of the desired capacity."""
        with self._lock:
            raised = self._raised.get((region, group))
            if raised is not None:
                self._raised[region, group] = raised[0] - 1, raised[1]

    def latest(self, region: Region, group: FleetId) -> int:
        """Return what was accepted less than a minute ago; 0 if nothing was."""
        with self._lock:
            capacity, at = self._raised.get((region, group), (0, 0.0))
            if self._monotonic() - at < STALE_SECONDS:
                return capacity
            self._raised.pop((region, group), None)
            return 0
