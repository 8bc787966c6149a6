"""Spreads calls to EC2 and Auto Scaling over time, so that we do not exhaust the account's limits.

AWS counts the calls of all clients of the account: a fifth of each bucket is left to others.
"""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from reconciler.model.errors import Throttled
from reconciler.model.ids import Region
from reconciler.model.throttling import (
    BucketLevel,
    TokenBucket,
    auto_scaling_bucket,
    instance_bucket,
    request_bucket,
)

SHARE: Final = 0.8
PATIENCE_SECONDS: Final = 10.0
"""A call that would have to wait longer is not sent; a later cycle makes it."""


class RequestLimits:
    """A token bucket per Region and action; thread-safe.

    Args:
        monotonic_seconds: A clock that never jumps.
        patience_seconds: The longest wait of one call.
    """

    def __init__(
        self,
        monotonic_seconds: Callable[[], float] = time.monotonic,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._patience_seconds = patience_seconds
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._levels: dict[tuple[Region, str], BucketLevel] = {}

    def admit(self, region: Region, action: str, body: bytes, *, service: str = "ec2") -> None:
        """Wait for the call's turn.

        Args:
            region: The Region of the bucket.
            action: The service's name of the call, such as `ModifyFleet`.
            body: The request's form, from which the cost of the call follows.
            service: The service, `ec2` or `autoscaling`.

        Raises:
            Throttled: The wait would be too long; nothing was sent.
        """
        with self._lock:
            now = self._monotonic_seconds()
            taken: dict[tuple[Region, str], BucketLevel] = {}
            wait_seconds = 0.0
            for name, bucket, tokens in _tokens_needed(service, action, body):
                key = region, name
                level = self._levels.get(key, BucketLevel.full(bucket, now)).at(now)
                wait_seconds = max(wait_seconds, level.seconds_until(tokens))
                taken[key] = level.less(tokens)
            if wait_seconds > self._patience_seconds:
                what = f"not sent: EC2's request limits allow it in {wait_seconds:.0f} s"
                raise Throttled(f"{action} {region}", what, wait_seconds)
            self._levels.update(taken)
        if wait_seconds:
            self._stopping.wait(wait_seconds)

    def stop(self) -> None:
        """End all waits."""
        self._stopping.set()


def _tokens_needed(
    service: str, action: str, body: bytes
) -> Iterator[tuple[str, TokenBucket, int]]:
    """Yield the tokens that a call takes from each bucket."""
    if service == "autoscaling":
        yield f"autoscaling/{action}", _shared(auto_scaling_bucket(action)), 1
        return
    narrowed = b"Filter." in body or b"MaxResults" in body
    bucket = request_bucket(action, narrowed=narrowed)
    yield action if narrowed else f"{action}/all", _shared(bucket), 1
    instances = instance_bucket(action)
    if instances is not None:
        yield f"{action}/instances", _shared(instances), body.count(b"InstanceId.")


def _shared(bucket: TokenBucket) -> TokenBucket:
    return TokenBucket(capacity=bucket.capacity * SHARE, per_second=bucket.per_second * SHARE)
