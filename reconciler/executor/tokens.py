"""How often each API is called by actions, kept on our side before a server has to say no."""

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal

from reconciler.model.errors import Throttled
from reconciler.model.throttling import BucketLevel, TokenBucket

Api = Literal["ModifyFleet", "TerminateInstances", "pods/eviction", "pods", "nodes"]

RATES: Final[Mapping[Api, TokenBucket]] = MappingProxyType(
    {
        "pods/eviction": TokenBucket(capacity=200, per_second=20),
        "pods": TokenBucket(capacity=200, per_second=20),
        "nodes": TokenBucket(capacity=600, per_second=100),
    }
)
"""What one client may ask of an API server without crowding others out; nodes' patches are cheap,
and a plan may note something on hundreds of nodes. EC2's calls are spread by
its adapter, which knows the sizes of EC2's own buckets."""
CLOSED_SECONDS = 1.0
"""How long an API is left alone that throttles and does not say for how long; each time in a row
that it does, twice as long."""
CLOSED_SECONDS_MAX = 60.0
"""At most; a server that says when to come back is believed for that long."""

Where = tuple[Api, str]
"""An API in one place: a region, the cluster."""


class Pace:
    """What one executor may still ask of each API; calls are safe from any thread.

    Args:
        monotonic_seconds: A clock that never jumps.
        rates: The bucket of each API; one without is only closed by its server.
    """

    def __init__(
        self, monotonic_seconds: Callable[[], float], rates: Mapping[Api, TokenBucket] = RATES
    ) -> None:
        self._now = monotonic_seconds
        self._lock = threading.Lock()
        self._rates = rates
        self._levels: dict[Where, BucketLevel] = {}
        self._closed_until: dict[Where, float] = {}
        self._refusals_in_a_row: dict[Where, int] = {}

    def enter(self, api: Api, place: str) -> None:
        """Before a call.

        Raises:
            Throttled: Too many calls already, or the server asked for a pause; nothing was sent.
        """
        with self._lock:
            where, now = (api, place), self._now()
            wait = self._closed_until.get(where, now) - now
            bucket = self._rates.get(api)
            if wait <= 0 and bucket is not None:
                level = self._levels.get(where, BucketLevel.full(bucket, now)).at(now)
                wait = level.seconds_until(1)
                self._levels[where] = level if wait > 0 else level.less(1)
        if wait > 0:
            raise Throttled(f"{api} {place}", "held back on our side: too many calls", wait)

    def refused(self, api: Api, place: str, error: Throttled) -> None:
        """The server throttled a call that we had let through."""
        where, said, now = (api, place), error.retry_after_seconds, self._now()
        with self._lock:
            before = self._refusals_in_a_row.get(where, 0)
            # Calls that were under way together are refused together: that is one refusal.
            together = self._closed_until.get(where, now) > now
            self._refusals_in_a_row[where] = before if together and before else before + 1
            doubled = CLOSED_SECONDS * 2.0 ** min(self._refusals_in_a_row[where] - 1, 10)
            pause = doubled if said is None else said
            self._closed_until[where] = now + max(0.0, min(pause, CLOSED_SECONDS_MAX))

    def granted(self, api: Api, place: str) -> None:
        """The server carried a call out."""
        with self._lock:
            self._refusals_in_a_row.pop((api, place), None)
