"""Caches a region's instances between two full answers of DescribeInstances."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from reconciler.adapters.aws.background_reads import BackgroundReads
from reconciler.model.ids import Region

FRESH_SECONDS = 30.0
"""At this age a full answer is fetched in the background."""
OLD_SECONDS = 60.0
"""At this age the cycle waits for a full answer."""
PAGE_PAUSE_SECONDS = 0.25
"""Reading a page takes a tenth of a second of CPU: without pauses a new pod would wait for all
pages."""
MOVING = ("pending", "shutting-down", "stopping")
"""States that change by themselves."""
_FLEET_TAG = "aws:ec2:fleet-id"

Fleets = Sequence[Mapping[str, Any]]
Reservations = list[dict[str, Any]]


class InstanceRequests(Protocol):
    """Requests instances from EC2, all of them or only the newer ones."""

    def all_instances(self, between_pages: Callable[[], object] = ...) -> Reservations:
        """Return all instances that may be ours.

        `between_pages` is called before each page after the first.
        """
        ...

    def newer_instances(
        self, age_seconds: float, fleet_ids: Sequence[str], ids: Sequence[str]
    ) -> Reservations:
        """Return these fleets' instances launched within this time, and those of these ids."""
        ...


@dataclass(frozen=True, slots=True)
class _FullAnswer:
    at: float
    """When the full answer was requested."""
    newest_at: float
    """When instances launched since then were last requested."""
    fleets: frozenset[tuple[Any, ...]]
    reservations: Reservations


class CachedInstances:
    """Keeps a region's instances, so that a cycle requests only those that may have changed.

    A thousand instances are a megabyte of XML, a second of waiting and half a second of CPU, too
    much for every new pod. DescribeFleets is called each time, and counts an instance from its
    launch to its end: while its answer is the same for every fleet, and no instance is launching or
    ending, the last answer is used. Otherwise only three groups are requested: instances whose
    state is changing, those whose end was just requested or announced, and those that changed
    fleets have launched since. The result is used when it matches the fleets' counts. A full answer
    is fetched in the background once the last one is 30 s old, and waited for when it is 60 s old.

    Args:
        monotonic: A clock that never jumps.
        page_pause_seconds: The pause between two pages of an answer that is fetched in the
            background.
    """

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        page_pause_seconds: float = PAGE_PAUSE_SECONDS,
    ) -> None:
        self._monotonic = monotonic
        self._page_pause_seconds = page_pause_seconds
        self._lock = threading.Lock()
        self._known: dict[Region, _FullAnswer] = {}
        self._background = BackgroundReads("ec2")
        self._closing = threading.Event()
        self._ended_at: dict[Region, dict[str, float]] = {}
        """Instances whose end was requested or announced recently. An answer may show them running:
        one that was requested before, or any, as EC2's lists are eventually consistent. They are
        then requested again."""

    def read(self, region: Region, fleets: Fleets, ask: InstanceRequests) -> Reservations:
        """Return all instances of a region, read as far as necessary.

        Args:
            region: The region.
            fleets: The current answer of DescribeFleets.
            ask: The questions for that region.

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

    def expect_end(self, ids: Collection[str]) -> bool:
        """Note that AWS announced the end of these; return whether any is a known one."""
        with self._lock:
            known = dict(self._known)
        found = False
        for region, full_answer in known.items():
            ending = {e["InstanceId"] for e in _instances(full_answer.reservations)}.intersection(
                ids
            )
            if ending:
                self.ended(region, ending)
                found = True
        return found

    def ended(self, region: Region, ids: Iterable[str]) -> None:
        """Note that EC2 was asked to terminate these instances, whatever it answered."""
        now = self._monotonic()
        with self._lock:
            before = self._ended_at.get(region, {})
            lately = {name: at for name, at in before.items() if now - at < OLD_SECONDS}
            self._ended_at[region] = lately | dict.fromkeys(ids, now)

    def _ended_lately(self, region: Region) -> set[str]:
        """Return instances that an answer may still show running, until a full answer."""
        now = self._monotonic()
        with self._lock:
            found = self._ended_at.get(region, {})
        return {name for name, ended_at in found.items() if now - ended_at < OLD_SECONDS}

    def close(self) -> None:
        """Wait until no request is in progress."""
        self._closing.set()
        self._background.close()

    def _read_all(
        self, region: Region, fleets: Fleets, ask: InstanceRequests, pause_seconds: float = 0.0
    ) -> Reservations:
        asked_at = self._monotonic()
        found = ask.all_instances(lambda: self._closing.wait(pause_seconds))
        with self._lock:
            newest = self._known.get(region)
            if newest is None or newest.at <= asked_at:
                self._known[region] = _FullAnswer(
                    asked_at, asked_at, _launch_answers(fleets), found
                )
        return found

    def _read_moving(
        self, region: Region, known: _FullAnswer, fleets: Fleets, ask: InstanceRequests
    ) -> Reservations:
        answers = _launch_answers(fleets)
        moving = _moving_ids(known.reservations, self._ended_lately(region))
        launching = _launching_ids(fleets, known.fleets)
        if answers == known.fleets and not moving and not launching:
            return known.reservations
        asked_at = self._monotonic()
        newer = ask.newer_instances(asked_at - known.newest_at, launching, moving)
        merged = _merged(known.reservations, newer)
        if not _adds_up(fleets, merged):
            return self._read_all(region, fleets, ask)
        with self._lock:
            if self._known.get(region) is known:  # else a full answer came in the meantime
                self._known[region] = replace(
                    known, newest_at=asked_at, fleets=answers, reservations=merged
                )
        return merged

    def _refresh(self, region: Region, fleets: Fleets, ask: InstanceRequests) -> None:
        """Fetch a full answer in the background, page by page, unless a fetch is in progress."""
        pause_seconds = self._page_pause_seconds
        self._background.begin(region, lambda: self._read_all(region, fleets, ask, pause_seconds))


def _launch_answers(fleets: Fleets) -> frozenset[tuple[Any, ...]]:
    return frozenset(map(_count_of, fleets))


def _count_of(fleet: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        fleet.get("FleetId"),
        fleet.get("FleetState"),
        fleet.get("ActivityStatus"),
        _target(fleet),
        fleet.get("FulfilledCapacity"),
    )


def _launching_ids(fleets: Fleets, before: frozenset[tuple[Any, ...]]) -> list[str]:
    """Return fleets that may have launched instances since EC2's last answer about them."""
    found = (fleet for fleet in fleets if _waits(fleet) or _count_of(fleet) not in before)
    return [str(each["FleetId"]) for each in found if each.get("FleetId")]


def _target(fleet: Mapping[str, Any]) -> Any:
    return (fleet.get("TargetCapacitySpecification") or {}).get("TotalTargetCapacity", 0)


def _waits(fleet: Mapping[str, Any]) -> bool:
    return bool(fleet.get("FulfilledCapacity", 0.0) < _target(fleet))


def _instances(reservations: Reservations) -> list[dict[str, Any]]:
    return [instance for found in reservations for instance in found.get("Instances", ())]


def _state(instance: Mapping[str, Any]) -> str:
    return str((instance.get("State") or {}).get("Name", ""))


def _moving_ids(reservations: Reservations, ended: set[str]) -> list[str]:
    """Return instances whose state is about to change, including terminated ones shown running."""
    return [
        str(instance["InstanceId"])
        for instance in _instances(reservations)
        if _state(instance) in MOVING
        or (instance["InstanceId"] in ended and _state(instance) == "running")
    ]


def _merged(before: Reservations, changed: Reservations) -> Reservations:
    """Return the newer entry of each instance; new ones at the end."""
    newer = {instance["InstanceId"]: instance for instance in _instances(changed)}
    if not newer:
        return before
    kept = [instance for instance in _instances(before) if instance["InstanceId"] not in newer]
    return [{"Instances": [*kept, *newer.values()]}]


def _adds_up(fleets: Fleets, reservations: Reservations) -> bool:
    """Return whether the known instances of each fleet match EC2's count.

    Fleets were read first: a launching or ending instance may already, or still, be counted. Fleets
    with weights never match. A fleet without an id is left to the decoder.
    """
    running, moving = Counter[str](), Counter[str]()
    for instance in _instances(reservations):
        count = running if _state(instance) == "running" else moving
        if _state(instance) in {"running", *MOVING}:
            count[_fleet_of(instance)] += 1
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
