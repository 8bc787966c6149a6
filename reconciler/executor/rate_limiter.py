"""Limits how often actions call each API, so that servers need not throttle us."""

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal

from reconciler.model.errors import Throttled
from reconciler.model.throttling import BucketLevel, TokenBucket

Api = Literal[
    "ModifyFleet",
    "TerminateInstances",
    "SetDesiredCapacity",
    "TerminateInstanceInAutoScalingGroup",
    "pods/eviction",
    "pods",
    "nodes",
]

RATES: Final[Mapping[Api, TokenBucket]] = MappingProxyType(
    {
        "pods/eviction": TokenBucket(capacity=200, per_second=20),
        "pods": TokenBucket(capacity=200, per_second=20),
        "nodes": TokenBucket(capacity=600, per_second=100),
    }
)
"""What one client may send to an API server without displacing others. Patches of nodes are cheap,
and a plan may have notes on hundreds of nodes. EC2's calls are limited in its adapter, which knows
the sizes of EC2's own buckets."""
CLOSED_SECONDS = 1.0
"""How long an API is not called after it throttled without a time; doubled each time in a row."""
CLOSED_SECONDS_MAX = 60.0
"""The limit of that; a time that a server names is obeyed up to this limit."""

Where = tuple[Api, str]
"""An API in one place: a region, the cluster."""


class RateLimiter:
    """What one executor may still call of each API; thread-safe.

    Args:
        monotonic_seconds: A clock that never jumps.
        rates: The bucket of each API; an API without one is only closed when its server throttles.
    """

    def __init__(
        self, monotonic_seconds: Callable[[], float], rates: Mapping[Api, TokenBucket] = RATES
    ) -> None:
        self._now = monotonic_seconds
        self._lock = threading.Lock()
        self._rates = rates
        self._levels: dict[Where, BucketLevel] = {}
        self._closed: dict[Where, tuple[float, str]] = {}
        """Until when, and what the server answered."""
        self._refusals_in_a_row: dict[Where, int] = {}

    def enter(self, api: Api, place: str) -> None:
        """Take a token for a call.

        Raises:
            Throttled: Too many calls already, or the server asked for a pause; nothing was sent.
        """
        with self._lock:
            where, now = (api, place), self._now()
            until, answer = self._closed.get(where, (now, ""))
            wait, why = until - now, f"not sent, as the call before it was throttled: {answer}"
            bucket = self._rates.get(api)
            if wait <= 0 and bucket is not None:
                level = self._levels.get(where, BucketLevel.full(bucket, now)).at(now)
                wait, why = level.seconds_until(1), "not sent: our own limit of calls is reached"
                self._levels[where] = level if wait > 0 else level.less(1)
        if wait > 0:
            raise Throttled(f"{api} {place}", why, wait)

    def refused(self, api: Api, place: str, error: Throttled) -> None:
        """Note that the server throttled a call that we had let through."""
        where, asked_seconds, now = (api, place), error.retry_after_seconds, self._now()
        with self._lock:
            before = self._refusals_in_a_row.get(where, 0)
            # Calls that were in flight together and are all throttled count as one refusal.
            together = self._closed.get(where, (now, ""))[0] > now
            self._refusals_in_a_row[where] = before if together and before else before + 1
            doubled = CLOSED_SECONDS * 2.0 ** min(self._refusals_in_a_row[where] - 1, 10)
            pause = doubled if asked_seconds is None else asked_seconds
            until = now + max(0.0, min(pause, CLOSED_SECONDS_MAX))
            self._closed[where] = until, error.what

    def granted(self, api: Api, place: str) -> None:
        """Note that the server executed a call."""
        with self._lock:
            self._refusals_in_a_row.pop((api, place), None)
