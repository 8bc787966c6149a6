"""The last answer about a region's instances, as long as nothing in it can have changed."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.model.ids import Region

AGE_SECONDS = 15.0
"""Less than the usual pause between cycles: only cycles that pods wake find an answer here."""
_SETTLED = frozenset({"running", "stopped", "terminated"})

Fleets = Sequence[Mapping[str, Any]]
Reservations = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Kept:
    at: float
    fleets: frozenset[tuple[Any, ...]]
    reservations: Reservations


class SettledInstances:
    """Spares cycles that pods wake the long answer about instances that nobody has touched.

    A thousand instances are a megabyte of XML, a second of waiting and half a second of CPU.
    Their answer holds while DescribeFleets, which is always asked, says the same of every fleet
    (EC2 counts an instance there from its launch to its end), while no fleet waits for instances,
    none of them is on its way in or out, and we have changed nothing ourselves.

    Args:
        monotonic: A clock that never jumps.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._kept: dict[Region, _Kept] = {}

    def get(self, region: Region, fleets: Fleets) -> Reservations | None:
        """The answer that still holds, or None."""
        with self._lock:
            kept = self._kept.get(region)
        if kept is None or self._monotonic() - kept.at > AGE_SECONDS:
            return None
        return kept.reservations if kept.fleets == _said_of(fleets) else None

    def keep(self, region: Region, fleets: Fleets, reservations: Reservations) -> None:
        """Remember an answer, if nothing in it is in motion.

        Args:
            region: Where it is from.
            fleets: What DescribeFleets said just before it.
            reservations: DescribeInstances' answer.
        """
        if any(map(_waits, fleets)) or not all(map(_is_settled, reservations)):
            self.forget(region)
            return
        kept = _Kept(self._monotonic(), _said_of(fleets), reservations)
        with self._lock:
            self._kept[region] = kept

    def forget(self, region: Region) -> None:
        """Something was changed."""
        with self._lock:
            self._kept.pop(region, None)


def _said_of(fleets: Fleets) -> frozenset[tuple[Any, ...]]:
    return frozenset(
        (
            fleet.get("FleetId"),
            fleet.get("FleetState"),
            fleet.get("ActivityStatus"),
            _target(fleet),
            fleet.get("FulfilledCapacity"),
        )
        for fleet in fleets
    )


def _target(fleet: Mapping[str, Any]) -> Any:
    return (fleet.get("TargetCapacitySpecification") or {}).get("TotalTargetCapacity", 0)


def _waits(fleet: Mapping[str, Any]) -> bool:
    return bool(fleet.get("FulfilledCapacity", 0.0) < _target(fleet))


def _is_settled(reservation: Mapping[str, Any]) -> bool:
    return all(
        (instance.get("State") or {}).get("Name") in _SETTLED
        for instance in reservation.get("Instances", ())
    )
