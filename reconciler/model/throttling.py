"""Token buckets, including those with which EC2 throttles an account in a region.

Source: "Request throttling for the Amazon EC2 API" (EC2 developer guide, read 2026-11): each action
has buckets of its own.
"""

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBucket:
    """How many calls may be made at once, and at what rate more may follow."""

    capacity: float
    """Tokens when it is full."""
    per_second: float
    """Tokens that are added each second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketLevel:
    """The content of a bucket at a time of a monotonic clock."""

    bucket: TokenBucket
    tokens: float
    at_seconds: float

    @classmethod
    def full(cls, bucket: TokenBucket, at_seconds: float) -> "BucketLevel":
        """Return a bucket from which nothing was taken."""
        return cls(bucket=bucket, tokens=bucket.capacity, at_seconds=at_seconds)

    def at(self, at_seconds: float) -> "BucketLevel":
        """Return the same bucket later, refilled."""
        passed = max(0.0, at_seconds - self.at_seconds)
        tokens = min(self.bucket.capacity, self.tokens + passed * self.bucket.per_second)
        return replace(self, tokens=tokens, at_seconds=max(at_seconds, self.at_seconds))

    def seconds_until(self, tokens: float) -> float:
        """Return how long until this many tokens can be taken; infinite if they never can."""
        missing = min(tokens, self.bucket.capacity) - self.tokens
        if missing <= _ROUNDING:
            return 0.0
        return missing / self.bucket.per_second if self.bucket.per_second > 0 else float("inf")

    def less(self, tokens: float) -> "BucketLevel":
        """Return the level after taking this many; below 0 it must be refilled first."""
        return replace(self, tokens=self.tokens - tokens)

    def after_call(self, at_seconds: float) -> "BucketLevel | None":
        """Return the level after one more call at this time; None if there is no token for it."""
        level = self.at(at_seconds)
        return None if level.seconds_until(1) > 0 else level.less(1)


_ROUNDING: Final = 1e-9

READING: Final = TokenBucket(capacity=100, per_second=20)
"""Describe*, List*, Search* and Get*."""
READING_ALL: Final = TokenBucket(capacity=50, per_second=10)
"""Those of `_READING_ALL` that have neither a page size nor a filter."""
CHANGING: Final = TokenBucket(capacity=50, per_second=5)
"""Everything else, such as ModifyFleet, CreateFleet and DeleteFleets."""
_AUTO_SCALING_CHANGES: Final = TokenBucket(capacity=25, per_second=2.5)
_READING_ALL: Final = frozenset(
    {
        "DescribeInstances",
        "DescribeInstanceStatus",
        "DescribeNetworkInterfaces",
        "DescribeSecurityGroups",
        "DescribeSnapshots",
        "DescribeSpotInstanceRequests",
        "DescribeVolumes",
    }
)
_READS: Final = ("Describe", "List", "Search", "Get")
_OWN: Final = {
    "CreateLaunchTemplateVersion": TokenBucket(capacity=100, per_second=5),
    "CreateTags": TokenBucket(capacity=100, per_second=10),
    "DeleteTags": TokenBucket(capacity=100, per_second=10),
    "DescribeSpotFleetInstances": TokenBucket(capacity=100, per_second=5),
    "DescribeSpotFleetRequestHistory": TokenBucket(capacity=100, per_second=5),
    "DescribeSpotFleetRequests": TokenBucket(capacity=50, per_second=3),
    "ModifyLaunchTemplate": TokenBucket(capacity=100, per_second=5),
    "RunInstances": TokenBucket(capacity=5, per_second=2),
    "StartInstances": TokenBucket(capacity=5, per_second=2),
    "TerminateInstances": TokenBucket(capacity=100, per_second=5),
}
_OF_INSTANCES: Final = {
    "RunInstances": TokenBucket(capacity=1000, per_second=2),
    "StartInstances": TokenBucket(capacity=1000, per_second=2),
    "StopInstances": TokenBucket(capacity=1000, per_second=20),
    "TerminateInstances": TokenBucket(capacity=1000, per_second=20),
}


def request_bucket(action: str, *, narrowed: bool = True) -> TokenBucket:
    """Return the bucket of an action's requests, one token each.

    Args:
        action: EC2's name, such as `ModifyFleet`.
        narrowed: Whether the call has a page size or a filter.
    """
    if action in _OWN:
        return _OWN[action]
    if action.startswith(_READS):
        return READING_ALL if action in _READING_ALL and not narrowed else READING
    return CHANGING


def auto_scaling_bucket(action: str) -> TokenBucket:
    """Return the bucket of an Auto Scaling action; AWS publishes none, these are half of EC2's.

    Args:
        action: Auto Scaling's name, such as `SetDesiredCapacity`.
    """
    return READING_ALL if action.startswith(_READS) else _AUTO_SCALING_CHANGES


def instance_bucket(action: str) -> TokenBucket | None:
    """Return the bucket of the instances that an action's requests name; None for most actions."""
    return _OF_INSTANCES.get(action)
