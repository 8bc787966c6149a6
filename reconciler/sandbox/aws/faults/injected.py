"""Injected faults: pools without capacity, and the faults of a script."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from types import MappingProxyType

from reconciler.sandbox.aws.faults.scripted import LaunchPlace, ScriptedFaults
from reconciler.sandbox.aws.values import LaunchRefusal, Lifecycle, Pool

ANY = "*"

_SPOT_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "InsufficientInstanceCapacity": (
            "There is no Spot capacity available that matches your request."
        ),
    }
)
_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "InsufficientInstanceCapacity": (
            "We currently do not have sufficient {type} capacity in the Availability Zone you "
            "requested ({zone}). Our system will be working on provisioning additional capacity. "
            "You can currently get {type} capacity by not specifying an Availability Zone in your "
            "request or choosing another one."
        ),
        "MaxSpotInstanceCountExceeded": "Max spot instance count exceeded",
        "VcpuLimitExceeded": (
            "You have requested more vCPU capacity than your current vCPU limit of 32 allows for "
            "the instance bucket that the specified instance type belongs to. Please visit "
            "http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit."
        ),
        "InstanceLimitExceeded": (
            "Your quota allows for 0 more running instance(s). You requested at least 1."
        ),
        "UnfulfillableCapacity": (
            "Unable to fulfill capacity due to your request configuration. "
            "Please adjust your request and try again."
        ),
        "SpotMaxPriceTooLow": (
            "Your Spot request price is lower than the minimum required Spot request "
            "fulfillment price."
        ),
        "Unsupported": (
            "Your requested instance type ({type}) is not supported in your requested "
            "Availability Zone ({zone})."
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityLimit:
    """A pool, or with `*` several, that has capacity for only this many more instances."""

    instance_type: str = ANY
    zone: str = ANY
    lifecycle: str = ANY
    """`spot`, `on-demand` or `*`."""
    code: str = "InsufficientInstanceCapacity"
    message: str | None = None
    """None: EC2's own text for the code."""
    remaining: int = 0
    """Instances that may still be launched before the error shows."""

    def covers(self, instance_type: str, zone: str, lifecycle: Lifecycle) -> bool:
        """Return whether a launch in that pool falls under this limit."""
        return (
            self.instance_type in {ANY, instance_type}
            and self.zone in {ANY, zone}
            and self.lifecycle in {ANY, lifecycle}
        )

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what identifies a limit."""
        return (self.instance_type, self.zone, self.lifecycle)


class Faults:
    """The faults in force; thread-safe."""

    def __init__(self) -> None:
        self.script = ScriptedFaults()
        self._lock = Lock()
        self._limits: dict[tuple[str, str, str], CapacityLimit] = {}

    def limit(self, limit: CapacityLimit) -> None:
        """Put a limit in force, replacing one on the same pools."""
        with self._lock:
            self._limits[limit.key] = limit

    def lift(self, *, instance_type: str = ANY, zone: str = ANY, lifecycle: str = ANY) -> bool:
        """Remove one limit; return False when there was none on exactly these pools."""
        with self._lock:
            return self._limits.pop((instance_type, zone, lifecycle), None) is not None

    def clear(self) -> None:
        """Remove all limits and all faults of scripts."""
        self.script.clear()
        with self._lock:
            self._limits.clear()

    def limits(self) -> tuple[CapacityLimit, ...]:
        """Return the limits in force, oldest first."""
        with self._lock:
            return tuple(self._limits.values())

    def take(
        self, pool: Pool, lifecycle: Lifecycle, place: LaunchPlace, now: datetime
    ) -> LaunchRefusal | None:
        """Take one instance's capacity from a pool, or return why there is none."""
        shortage = self.script.shortage(place, now)
        if shortage is not None:
            text = shortage.message or _text(shortage.code, pool, lifecycle)
            return LaunchRefusal(code=shortage.code, message=text)
        with self._lock:
            covering = [
                limit
                for limit in self._limits.values()
                if limit.covers(pool.instance_type, pool.zone, lifecycle)
            ]
            spent = next((limit for limit in covering if limit.remaining <= 0), None)
            if spent is not None:
                words = spent.message
                if words is None:
                    words = _text(spent.code, pool, lifecycle)
                return LaunchRefusal(code=spent.code, message=words)
            for limit in covering:
                self._limits[limit.key] = replace(limit, remaining=limit.remaining - 1)
            return None


def _text(code: str, pool: Pool, lifecycle: Lifecycle) -> str:
    words = _WORDS.get(code, code)
    if lifecycle == "spot":
        words = _SPOT_WORDS.get(code, words)
    return words.format(type=pool.instance_type, zone=pool.zone)
