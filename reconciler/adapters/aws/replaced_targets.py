"""Recognises answers of EC2 that are older than a target that was just set."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from reconciler.model.ids import FleetId, Region

STALE_SECONDS: Final = 60.0
"""For how long an answer may still show a target of before our change."""
_SPECIFICATION: Final = "TargetCapacitySpecification"
_TOTAL: Final = "TotalTargetCapacity"


class ReplacedTargets:
    """Keeps the targets that were replaced, because EC2's answers are eventually consistent.

    An answer that shows exactly a target from before our last change counts as showing the new one,
    if that is lower: otherwise the next end of a node would lower the old target, and EC2 would
    launch again what was ended. Any other value is another writer's, and counts. So does an old
    target that is lower than ours: a raise that somebody rolled back has to be made again, and
    making it twice does no harm.

    Args:
        monotonic: A clock that never jumps.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._shown: dict[tuple[Region, str], int] = {}
        self._set: dict[tuple[Region, str], int] = {}
        self._replaced_at: dict[tuple[Region, str], dict[int, float]] = {}
        """Targets above the one that was set last, and when they were replaced."""

    def changed(self, region: Region, fleet_id: FleetId, target: int) -> None:
        """Note that EC2 has accepted a new target."""
        key, now = (region, str(fleet_id)), self._monotonic()
        with self._lock:
            before = self._replaced_at.get(key, {})
            replaced = {**before, self._shown.get(key, target): now}
            self._replaced_at[key] = {
                each: at
                for each, at in replaced.items()
                if each > target and now - at < STALE_SECONDS
            }
            self._set[key] = self._shown[key] = target

    def corrected(
        self, region: Region, fleets: Sequence[Mapping[str, Any]]
    ) -> list[Mapping[str, Any]]:
        """Return entries of DescribeFleets with the targets that count."""
        with self._lock:
            return [self._corrected(region, fleet) for fleet in fleets]

    def _corrected(self, region: Region, fleet: Mapping[str, Any]) -> Mapping[str, Any]:
        key, specification = (region, str(fleet.get("FleetId"))), fleet.get(_SPECIFICATION)
        target = specification.get(_TOTAL) if isinstance(specification, Mapping) else None
        if not isinstance(specification, Mapping) or not isinstance(target, int):
            return fleet
        at = self._replaced_at.get(key, {}).get(target)
        if at is not None and self._monotonic() - at < STALE_SECONDS:
            return {**fleet, _SPECIFICATION: {**specification, _TOTAL: self._set[key]}}
        if target != self._set.get(key):
            self._replaced_at.pop(key, None)
            self._set.pop(key, None)
        self._shown[key] = target
        return fleet
