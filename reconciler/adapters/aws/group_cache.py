"""Caches a region's Auto Scaling groups between two full answers about them."""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from reconciler.adapters.aws.background_reads import BackgroundReads
from reconciler.model.ids import Region

FRESH_SECONDS: Final = 60.0
"""At this age a full answer is fetched in the background: 500 groups and 5,000 instances are ten
calls."""
OLD_SECONDS: Final = 120.0
"""At this age the cycle waits for a full answer."""
CHANGED_SECONDS: Final = 60.0
"""How long a group that we changed, or that a notice is about, is read in each cycle, since lists
lag behind."""
MOVING_MAX: Final = 100
"""The limit of groups that are read by name; with more, a full answer is fetched."""
_AT_REST: Final = frozenset({"InService", "Standby", "Terminated"})

Group = Mapping[str, Any]
Reservations = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswers:
    """Groups by name and their instances, as AWS answered."""

    groups: Mapping[str, Group]
    reservations: Reservations
    at: float = 0.0
    """When the full answer was requested."""

    def moving(self, changed: Collection[str]) -> list[str]:
        """Return groups with launching or ending instances, or that we changed."""
        on_their_way = set(map(_group_of, _moving_instances(self.reservations)))
        return sorted(
            name
            for name, group in self.groups.items()
            if name in changed or name in on_their_way or _moves(group)
        )


class GroupRequests(Protocol):
    """Requests groups from Auto Scaling, all of them or some by name."""

    def all(self) -> GroupAnswers:
        """Return all our groups."""
        ...

    def some(self, names: Sequence[str]) -> GroupAnswers:
        """Return the groups of these names."""
        ...


class CachedGroups:
    """Keeps a region's groups, so that a cycle requests only those that may have changed.

    While a group is short of instances, has launching or ending ones, or was changed by us or had a
    notice in the last minute, it is read in every cycle, by its name. All groups are read once a
    minute, in the background, and waited for when the last answer is two minutes old. A plan's
    changes are compared with the live group first, so an old answer only
    delays a change by a cycle.

    Args:
        monotonic: A clock that never jumps.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._known: dict[Region, GroupAnswers] = {}
        self._changed: dict[Region, dict[str, float]] = {}
        self._background = BackgroundReads("auto-scaling")

    def read(self, region: Region, ask: GroupRequests) -> GroupAnswers:
        """Return every group of a region, read as far as necessary.

        Raises:
            PortError: AWS did not answer.
        """
        now = self._monotonic()
        with self._lock:
            known, changed = self._known.get(region), self._changed.get(region, {})
            self._changed[region] = {
                name: at for name, at in changed.items() if now - at < CHANGED_SECONDS
            }
        if known is None or now - known.at > OLD_SECONDS:
            return self._read_all(region, ask)
        if now - known.at > FRESH_SECONDS:
            self._background.begin(region, lambda: self._read_all(region, ask))
        moving = known.moving(changed)
        if not moving:
            return known
        if len(moving) > MOVING_MAX:
            return self._read_all(region, ask)
        merged = _merged(known, moving, ask.some(moving))
        with self._lock:
            if self._known.get(region) is known:  # else a full answer came in the meantime
                self._known[region] = merged
        return merged

    def expect_end(self, ids: Collection[str]) -> bool:
        """Note that AWS announced the end of these; return whether any is a known one."""
        with self._lock:
            known = dict(self._known)
        found = {
            (region, name)
            for region, each in known.items()
            for name in _groups_of(each.reservations, ids)
        }
        for region, name in found:
            self.changed(region, name)
        return bool(found)

    def changed(self, region: Region, name: str) -> None:
        """Note that we changed a group, or that AWS announced that it changes."""
        with self._lock:
            self._changed.setdefault(region, {})[name] = self._monotonic()

    def close(self) -> None:
        """Wait until no request is in progress."""
        self._background.close()

    def _read_all(self, region: Region, ask: GroupRequests) -> GroupAnswers:
        asked_at = self._monotonic()
        found = ask.all()
        known = GroupAnswers(groups=found.groups, reservations=found.reservations, at=asked_at)
        with self._lock:
            before = self._known.get(region)
            if before is None or before.at <= asked_at:
                self._known[region] = known
        return known


def _merged(before: GroupAnswers, names: Iterable[str], newer: GroupAnswers) -> GroupAnswers:
    """Return the newer entries of some groups, and the known ones of the others."""
    asked = frozenset(names)
    groups = {name: each for name, each in before.groups.items() if name not in asked}
    kept = [
        instance
        for found in before.reservations
        for instance in found.get("Instances", ())
        if _group_of(instance) not in asked
    ]
    return GroupAnswers(
        groups={**groups, **newer.groups},
        reservations=[{"Instances": kept}, *newer.reservations],
        at=before.at,
    )


def _moves(group: Group) -> bool:
    states = [instance.get("LifecycleState") for instance in group.get("Instances", ())]
    settled = sum(state == "InService" for state in states)
    return settled != group.get("DesiredCapacity", 0) or not set(states) <= _AT_REST


def _moving_instances(reservations: Reservations) -> list[Mapping[str, Any]]:
    moving = {"pending", "shutting-down", "stopping"}
    return [
        instance
        for found in reservations
        for instance in found.get("Instances", ())
        if (instance.get("State") or {}).get("Name") in moving
    ]


def _groups_of(reservations: Reservations, ids: Collection[str]) -> set[str]:
    return {
        _group_of(instance)
        for found in reservations
        for instance in found.get("Instances", ())
        if instance.get("InstanceId") in ids
    }


def _group_of(instance: Mapping[str, Any]) -> str:
    tags = instance.get("Tags", ())
    key = "aws:autoscaling:groupName"
    return next((str(tag["Value"]) for tag in tags if tag.get("Key") == key), "")
