"""Token buckets: how often each API is called, kept on our side before the server has to say no."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from reconciler.model.errors import Throttled

Api = Literal["ModifyFleet", "TerminateInstances", "pods/eviction", "pods", "nodes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The size of one bucket."""

    burst: int
    """Calls that may come at once."""
    per_second: float
    """How fast it fills again."""


RATES: Final[Mapping[Api, Rate]] = MappingProxyType(
    {
        # EC2 gives mutating calls of an account and Region buckets of 50 or more that fill at 5
        # per second (EC2 API reference, "Request throttling", read 2026-08). Others share them.
        "ModifyFleet": Rate(burst=40, per_second=4.0),
        "TerminateInstances": Rate(burst=40, per_second=4.0),
        "pods/eviction": Rate(burst=200, per_second=20.0),
        "pods": Rate(burst=200, per_second=20.0),
        "nodes": Rate(burst=200, per_second=50.0),
    }
)
"""Four fifths of what EC2 allows; of Kubernetes what crowds nobody out."""
CLOSED_SECONDS_MAX = 60.0
"""A server that says when to come back is believed for that long."""


class TokenBucket:
    """One API's calls.

    Args:
        rate: Its size.
        monotonic_seconds: A clock that never jumps.
    """

    def __init__(self, rate: Rate, monotonic_seconds: Callable[[], float]) -> None:
        self._rate = rate
        self._now = monotonic_seconds
        self._tokens = float(rate.burst)
        self._filled_at = monotonic_seconds()

    def take(self) -> float:
        """Take a token; returns 0, or the seconds until there is one."""
        now = self._now()
        if now > self._filled_at:
            gained = (now - self._filled_at) * self._rate.per_second
            self._tokens = min(float(self._rate.burst), self._tokens + gained)
            self._filled_at = now
        if self._tokens >= 1.0 and now >= self._filled_at:
            self._tokens -= 1.0
            return 0.0
        return (1.0 - min(self._tokens, 1.0)) / self._rate.per_second + self._filled_at - now

    def close(self, seconds: float) -> None:
        """The server said no: nothing for so long, and then slowly."""
        self._tokens = 1.0
        self._filled_at = self._now() + max(0.0, min(seconds, CLOSED_SECONDS_MAX))


class Pace:
    """The buckets of one executor, each for one API and one place (a region, the cluster).

    Args:
        monotonic_seconds: A clock that never jumps.
        rates: The size of each bucket.
    """

    def __init__(
        self, monotonic_seconds: Callable[[], float], rates: Mapping[Api, Rate] = RATES
    ) -> None:
        self._now = monotonic_seconds
        self._rates = rates
        self._buckets: dict[tuple[Api, str], TokenBucket] = {}

    def enter(self, api: Api, place: str) -> None:
        """Before a call.

        Raises:
            Throttled: Too many calls already; nothing was sent.
        """
        wait = self._bucket(api, place).take()
        if wait > 0:
            raise Throttled(f"{api} {place}", "held back on our side: too many calls", wait)

    def refused(self, api: Api, place: str, error: Throttled) -> None:
        """The server throttled a call that we had let through."""
        pause = error.retry_after_seconds
        self._bucket(api, place).close(1.0 if pause is None else pause)

    def _bucket(self, api: Api, place: str) -> TokenBucket:
        key = api, place
        if key not in self._buckets:
            self._buckets[key] = TokenBucket(self._rates[api], self._now)
        return self._buckets[key]
