"""The faults of a script that are in force at the emulated AWS."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any

from reconciler.sandbox.aws.call_log import AwsCall
from reconciler.sandbox.aws.faults.throttling import Throttle
from reconciler.sandbox.aws.values import Lifecycle, Pool
from reconciler.sandbox.control_api import CLIENT
from reconciler.sandbox.faults.aws import (
    AwsFaults,
    CallFault,
    CapacityFault,
    InterruptionFault,
    LaunchDelay,
    LaunchFault,
    ModifyingFault,
)
from reconciler.sandbox.faults.base import ANY, PoolFault, covers
from reconciler.sandbox.faults.rules import Rules
from reconciler.sandbox.faults.script import to_document
from reconciler.sandbox.faults.trigger import Trigger

_TAIL = 3.0
"""An exponential launch delay's mean is this part of the way from `min` to `max`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlace:
    """Where an instance is launched, or runs."""

    fleet_names: frozenset[str]
    """The fleet's id and its tag `fleet`."""
    instance_type: str
    zone: str
    lifecycle: Lifecycle

    @classmethod
    def of(
        cls, pool: Pool, lifecycle: Lifecycle, fleet_names: frozenset[str] = frozenset()
    ) -> "LaunchPlace":
        """Return a pool that a fleet launches from."""
        return cls(
            fleet_names=fleet_names,
            instance_type=pool.instance_type,
            zone=pool.zone,
            lifecycle=lifecycle,
        )

    def falls_under(self, rule: PoolFault) -> bool:
        """Return whether a fault applies to this place."""
        return (
            (rule.fleet == ANY or rule.fleet in self.fleet_names)
            and rule.instance_type in {ANY, self.instance_type}
            and rule.zone in {ANY, self.zone}
            and rule.lifecycle in {ANY, self.lifecycle}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFate:
    """What happens to one launched instance."""

    launch_seconds: float | None = None
    """None: as long as usual."""
    joins: bool = True


class ScriptedFaults:
    """The faults of scripts; thread-safe."""

    def __init__(self) -> None:
        self.interruptions = Rules[InterruptionFault]("aws.interruptions")
        self._capacity = Rules[CapacityFault]("aws.capacity")
        self._launches = Rules[LaunchFault]("aws.launches")
        self._modifying = Rules[ModifyingFault]("aws.modifying")
        self._calls = Rules[CallFault]("aws.calls")
        self._throttle: Throttle | None = None
        self._lock = Lock()
        self._remaining: dict[Trigger, int] = {}

    def put(self, faults: AwsFaults, now: datetime, seed: int) -> None:
        """Put faults in force, in addition to existing ones; throttling replaces an older one."""
        self._capacity.put(faults.capacity, now, seed)
        self._launches.put(faults.launches, now, seed)
        self._modifying.put(faults.modifying, now, seed)
        self.interruptions.put(faults.interruptions, now, seed)
        self._calls.put(faults.calls, now, seed)
        if faults.throttling is not None:
            self._throttle = Throttle(faults.throttling)

    def clear(self) -> None:
        """Remove all faults; instances that got their notice still end."""
        for rules in (self._capacity, self._launches, self._modifying, self._calls):
            rules.clear()
        self.interruptions.clear()
        self._throttle = None
        with self._lock:
            self._remaining.clear()

    def shown(self) -> Mapping[str, Any]:
        """Return the faults in force as in a script, each with how often it has `shown`."""
        throttle = self._throttle
        found: dict[str, Any] = {
            "capacity": self._capacity.shown(),
            "launches": self._launches.shown(),
            "modifying": self._modifying.shown(),
            "interruptions": self.interruptions.shown(),
            "calls": self._calls.shown(),
        }
        if throttle is not None:
            found["throttling"] = {**to_document(throttle.settings), "shown": throttle.refused}
        return found

    def shortage(self, place: LaunchPlace, now: datetime) -> CapacityFault | None:
        """Return why a pool has no instance now; otherwise use one up."""
        spared: list[Trigger] = []
        with self._lock:
            for rule, trigger in self._capacity:
                if not place.falls_under(rule) or not trigger.is_open(now):
                    continue
                if self._remaining.setdefault(trigger, rule.remaining) > 0:
                    spared.append(trigger)
                elif trigger.fires(now):
                    return rule
            for trigger in spared:
                self._remaining[trigger] -= 1
        return None

    def launch(self, place: LaunchPlace, image: str, now: datetime) -> LaunchFate:
        """Return what happens to an instance of this image that is launched there now."""
        for rule, trigger in self._launches:
            meant = place.falls_under(rule) and rule.image in {ANY, image}
            if meant and trigger.fires(now):
                return LaunchFate(launch_seconds=_drawn(rule.delay, trigger), joins=rule.joins)
        return LaunchFate()

    def modifying(self, fleet_names: frozenset[str], now: datetime) -> ModifyingFault | None:
        """Return why a ModifyFleet takes long; None when it takes as long as usual."""
        return self._modifying.first(lambda r: r.fleet == ANY or r.fleet in fleet_names, now)

    def throttles(self, call: AwsCall) -> bool:
        """Return whether a call exceeds the limit."""
        throttle = self._throttle
        exempt = throttle is None or CLIENT in call.user_agent
        return not exempt and throttle is not None and not throttle.admits(call)

    def meet(self, call: AwsCall, is_vanished: Callable[[], bool]) -> CallFault | None:
        """Return the fault that applies to a call, counted; None for the sandbox's own."""
        if CLIENT in call.user_agent:
            return None
        return self._calls.first(lambda rule: _is_about(rule, call, is_vanished), call.at)

    def staleness_seconds(self) -> float:
        """Return how old a stale answer may be; 0 when there are none."""
        ages = [rule.age_seconds or 0.0 for rule, _ in self._calls if rule.fault == "stale"]
        return max(ages, default=0.0)


def _is_about(rule: CallFault, call: AwsCall, is_vanished: Callable[[], bool]) -> bool:
    return (
        rule.service == call.service
        and covers(rule.actions, call.action)
        and rule.user_agent in call.user_agent
        and not (rule.fault == "stale" and call.mutating)
        and (not rule.vanished or is_vanished())
    )


def _drawn(delay: LaunchDelay | None, trigger: Trigger) -> float | None:
    if delay is None:
        return None
    width = delay.max_seconds - delay.min_seconds
    if delay.distribution == "uniform":
        return delay.min_seconds + width * trigger.rng.random()
    return delay.min_seconds + min(width, trigger.rng.expovariate(_TAIL / width if width else 1.0))
