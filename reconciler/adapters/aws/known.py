"""What is known of a region's instances between two full answers of DescribeInstances."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from reconciler.adapters.aws.background import InBackground
from reconciler.model.ids import Region

FRESH_SECONDS = 30.0
"""From then on a full answer is fetched beside the cycles."""
OLD_SECONDS = 60.0
"""From then on a full answer is waited for."""
PAGE_PAUSE_SECONDS = 0.25
"""Reading a page takes a tenth of a second of CPU: a pod that comes meanwhile would wait for all
of them at once."""
MOVING = ("pending", "shutting-down", "stopping")
"""States that change by themselves."""
_FLEET_TAG = "aws:ec2:fleet-id"

Fleets = Sequence[Mapping[str, Any]]
Reservations = list[dict[str, Any]]


class Asking(Protocol):
    """The two questions about instances."""

    def all_instances(self, between_pages: Callable[[], object] = ...) -> Reservations:
        """Every instance that may be ours; `between_pages` is called before each further page."""
        ...

    def newer_instances(
        self, age_seconds: float, fleet_ids: Sequence[str], ids: Sequence[str]
    ) -> Reservations:
        """Those of these fleets that were launched within that time, and those of these ids."""
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    at: float
    """When the full answer was asked for."""
    newest_at: float
    """When those that were launched since were asked for last."""
    fleets: frozenset[tuple[Any, ...]]
    reservations: Reservations


class KnownInstances:
    """Spares a cycle the long answer about instances that have not changed.

    A thousand instances are a megabyte of XML, a second of waiting and half a second of CPU, too
    much for every pod that comes. DescribeFleets is asked each time, and EC2 counts an instance
    there from its launch to its end: while it says the same of every fleet, and nothing is on its
    way in or out, the last answer holds. Otherwise only instances in motion, those that this
    program has just ended and those that fleets of which it says something new have launched since
    the last time are asked for, and the result is used when it adds up to what the fleets count. A
    full answer is fetched beside the cycle once the last one is 30 s old, and waited for when it is
    60 s old.

    Args:
        monotonic: A clock that never jumps.
        page_pause_seconds: Between two pages of an answer that is fetched beside the cycles.
    """

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        page_pause_seconds: float = PAGE_PAUSE_SECONDS,
    ) -> None:
        self._monotonic = monotonic
        self._page_pause_seconds = page_pause_seconds
        self._lock = threading.Lock()
        self._known: dict[Region, _Known] = {}
        self._background = InBackground("ec2")
        self._closing = threading.Event()
        self._ended_at: dict[Region, dict[str, float]] = {}
        """Instances that were ended lately. An answer may show them running: one that was asked for
        before, or any, as EC2's lists are eventually consistent. They are asked for again then."""

    def read(self, region: Region, fleets: Fleets, ask: Asking) -> Reservations:
        """All instances of a region, asked for as far as necessary.

        Args:
            region: Which.
            fleets: What DescribeFleets says just now.
            ask: How to ask in that region.

        Raises:
            PortError: EC2 did not answer.
        """
        with self._lock:
            known = self._known.get(region)
        age = float("inf") if known is None else self._monotonic() - known.at
        if known is None or age > OLD_SECONDS:
            return self._read_all(region, fleets, ask)
        if age > FRESH_SECONDS:
            self._refresh(region, fleets, ask)
        return self._read_moving(region, known, fleets, ask)

    def ended(self, region: Region, ids: Iterable[str]) -> None:
        """Take note that EC2 was told to end these instances, whatever it answered."""
        now = self._monotonic()
        with self._lock:
            before = self._ended_at.get(region, {})
            lately = {name: at for name, at in before.items() if now - at < OLD_SECONDS}
            self._ended_at[region] = lately | dict.fromkeys(ids, now)

    def _ended_lately(self, region: Region) -> set[str]:
        """Instances that an answer may still show running; later a full answer has been read."""
        now = self._monotonic()
        with self._lock:
            found = self._ended_at.get(region, {})
        return {name for name, ended_at in found.items() if now - ended_at < OLD_SECONDS}

    def close(self) -> None:
        """Wait until nothing is being asked for any more."""
        self._closing.set()
        self._background.close()

    def _read_all(
        self, region: Region, fleets: Fleets, ask: Asking, pause_seconds: float = 0.0
    ) -> Reservations:
        asked_at = self._monotonic()
        found = ask.all_instances(lambda: self._closing.wait(pause_seconds))
        with self._lock:
            newest = self._known.get(region)
            if newest is None or newest.at <= asked_at:
                self._known[region] = _Known(asked_at, asked_at, _said_of(fleets), found)
        return found

    def _read_moving(
        self, region: Region, known: _Known, fleets: Fleets, ask: Asking
    ) -> Reservations:
        said = _said_of(fleets)
        moving = _moving_ids(known.reservations, self._ended_lately(region))
        launching = _launching_ids(fleets, known.fleets)
        if said == known.fleets and not moving and not launching:
            return known.reservations
        asked_at = self._monotonic()
        newer = ask.newer_instances(asked_at - known.newest_at, launching, moving)
        merged = _merged(known.reservations, newer)
        if not _adds_up(fleets, merged):
            return self._read_all(region, fleets, ask)
        with self._lock:
            if self._known.get(region) is known:  # else a full answer came in between
                self._known[region] = replace(
                    known, newest_at=asked_at, fleets=said, reservations=merged
                )
        return merged

    def _refresh(self, region: Region, fleets: Fleets, ask: Asking) -> None:
        """Fetch a full answer in the background, page by page, unless one is on its way."""
        pause_seconds = self._page_pause_seconds
        self._background.begin(region, lambda: self._read_all(region, fleets, ask, pause_seconds))


def _said_of(fleets: Fleets) -> frozenset[tuple[Any, ...]]:
    return frozenset(map(_said, fleets))


def _said(fleet: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        fleet.get("FleetId"),
        fleet.get("FleetState"),
        fleet.get("ActivityStatus"),
        _target(fleet),
        fleet.get("FulfilledCapacity"),
    )


def _launching_ids(fleets: Fleets, before: frozenset[tuple[Any, ...]]) -> list[str]:
    """Fleets that may have launched instances since EC2 said that of them."""
    found = (each for each in fleets if _waits(each) or _said(each) not in before)
    return [str(each["FleetId"]) for each in found if each.get("FleetId")]


def _target(fleet: Mapping[str, Any]) -> Any:
    return (fleet.get("TargetCapacitySpecification") or {}).get("TotalTargetCapacity", 0)


def _waits(fleet: Mapping[str, Any]) -> bool:
    return bool(fleet.get("FulfilledCapacity", 0.0) < _target(fleet))


def _instances(reservations: Reservations) -> list[dict[str, Any]]:
    return [each for found in reservations for each in found.get("Instances", ())]


def _state(instance: Mapping[str, Any]) -> str:
    return str((instance.get("State") or {}).get("Name", ""))


def _moving_ids(reservations: Reservations, ended: set[str]) -> list[str]:
    """Instances whose state is about to change; of those that were ended the running ones too."""
    return [
        str(each["InstanceId"])
        for each in _instances(reservations)
        if _state(each) in MOVING or (each["InstanceId"] in ended and _state(each) == "running")
    ]


def _merged(before: Reservations, changed: Reservations) -> Reservations:
    """The newer word about each instance; new ones at the end."""
    newer = {each["InstanceId"]: each for each in _instances(changed)}
    if not newer:
        return before
    kept = [each for each in _instances(before) if each["InstanceId"] not in newer]
    return [{"Instances": [*kept, *newer.values()]}]


def _adds_up(fleets: Fleets, reservations: Reservations) -> bool:
    """Whether as many instances are known of each fleet as EC2 counts.

    Fleets were asked first: an instance on its way in or out may be counted already, or still.
    Fleets with weights never add up. One without an id is left to whoever decodes the answer.
    """
    running, moving = Counter[str](), Counter[str]()
    for each in _instances(reservations):
        count = running if _state(each) == "running" else moving
        if _state(each) in {"running", *MOVING}:
            count[_fleet_of(each)] += 1
    return all(
        running[fleet_id]
        <= fleet.get("FulfilledCapacity", 0.0)
        <= running[fleet_id] + moving[fleet_id]
        for fleet in fleets
        if (fleet_id := fleet.get("FleetId"))
    )


def _fleet_of(instance: Mapping[str, Any]) -> str:
    tags = instance.get("Tags", ())
    return next((str(tag["Value"]) for tag in tags if tag.get("Key") == _FLEET_TAG), "")
