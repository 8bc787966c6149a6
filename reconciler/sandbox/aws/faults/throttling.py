"""EC2's request throttling: a token bucket per account, Region and action, as documented."""

from collections.abc import Mapping
from datetime import UTC, datetime
from threading import Lock

from reconciler.model.throttling import BucketLevel, TokenBucket, instance_bucket, request_bucket
from reconciler.sandbox.aws.call_log import AwsCall
from reconciler.sandbox.faults.aws import Bucket, Throttling

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ALL = "/all"


class Throttle:
    """The buckets of all Regions; thread-safe."""

    def __init__(self, settings: Throttling) -> None:
        self.settings = settings
        self.refused = 0
        """Calls that found a bucket empty."""
        self._lock = Lock()
        self._levels: dict[tuple[str, str], BucketLevel] = {}

    def admits(self, call: AwsCall) -> bool:
        """Take the call's tokens from its buckets; False, taking none, if one has too few."""
        if call.service != "ec2":
            return True
        now = (call.at - _EPOCH).total_seconds()
        with self._lock:
            taken: dict[tuple[str, str], BucketLevel] = {}
            for name, bucket, tokens in self._wanted(call):
                key = (call.region, name)
                level = self._levels.get(key, BucketLevel.full(bucket, now)).at(now)
                if level.seconds_until(tokens) > 0:
                    self.refused += 1
                    return False
                taken[key] = level.less(tokens)
            self._levels.update(taken)
        return True

    def _wanted(self, call: AwsCall) -> list[tuple[str, TokenBucket, int]]:
        """Return what a call takes from each bucket."""
        action = call.action
        narrowed = any(key.startswith(("Filter.", "MaxResults")) for key in call.parameters)
        own = _own(self.settings.requests, action)
        name = action if narrowed or own else action + _ALL
        wanted = [(name, own or request_bucket(action, narrowed=narrowed), 1)]
        instances = _own(self.settings.resources, action) or instance_bucket(action)
        if instances is not None:
            wanted.append((f"{action}/instances", instances, _instances_of(call)))
        return wanted


def _own(buckets: Mapping[str, Bucket], action: str) -> TokenBucket | None:
    """Return the script's bucket for an action."""
    bucket = buckets.get(action)
    if bucket is None:
        return None
    return TokenBucket(capacity=bucket.capacity, per_second=bucket.per_second)


def _instances_of(call: AwsCall) -> int:
    """Return how many instances a call is about."""
    if call.action == "RunInstances":
        asked = call.parameters.get("MaxCount", "1")
        return int(asked) if asked.isdigit() else 1
    return sum(1 for key in call.parameters if key.startswith("InstanceId."))
