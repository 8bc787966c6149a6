"""Token buckets: bursts pass, storms do not, and a server's word closes the bucket."""

from contextlib import suppress
from itertools import pairwise

import pytest

from reconciler.executor.rate_limited_ports import rate_limited
from reconciler.executor.rate_limiter import RATES, Api, RateLimiter
from reconciler.model.errors import Throttled
from reconciler.model.throttling import TokenBucket


class Clock:
    """Seconds that tests move."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


CALL: Api = "nodes"


def passing(limiter: RateLimiter, calls: int, place: str = "us-west-2") -> int:
    """How many of so many calls go out."""
    passed = 0
    for _ in range(calls):
        try:
            limiter.enter(CALL, place)
        except Throttled:
            continue
        passed += 1
    return passed


def test_burst_passes_and_a_storm_does_not() -> None:
    """A plan over hundreds of fleets would use up what all programs of the account share."""
    clock = Clock()
    limiter = RateLimiter(clock, {CALL: TokenBucket(capacity=5, per_second=2.0)})
    assert passing(limiter, 50) == 5
    clock.now += 1.0
    assert passing(limiter, 50) == 2
    clock.now += 1000.0
    assert passing(limiter, 50) == 5


def test_each_region_has_its_own_bucket() -> None:
    """A busy region would hold the others up."""
    limiter = RateLimiter(Clock(), {CALL: TokenBucket(capacity=1, per_second=1.0)})
    assert (passing(limiter, 3), passing(limiter, 3, "us-east-1")) == (1, 1)


def test_refusal_says_when_to_come_back() -> None:
    """Whoever waits must know how long."""
    clock = Clock()
    limiter = RateLimiter(clock, {CALL: TokenBucket(capacity=1, per_second=0.5)})
    limiter.enter(CALL, "us-west-2")
    with pytest.raises(Throttled) as refused:
        limiter.enter(CALL, "us-west-2")
    assert refused.value.retry_after_seconds == 2.0


@pytest.mark.parametrize(("said", "closed"), [(7.0, 7.0), (None, 1.0), (86_400.0, 60.0)])
def test_server_that_throttles_is_left_alone_for_as_long_as_it_says(
    said: float | None, closed: float
) -> None:
    """Calls that a throttled server must refuse keep it throttled; a wrong answer ends all."""
    clock = Clock()
    limiter = RateLimiter(clock, {CALL: TokenBucket(capacity=5, per_second=2.0)})
    limiter.refused(CALL, "us-west-2", Throttled("x", "y", said))
    clock.now += closed - 0.01
    assert passing(limiter, 9) == 0
    clock.now += 0.02
    assert passing(limiter, 9) == 5


def test_server_that_goes_on_throttling_is_left_alone_for_longer_and_longer() -> None:
    """Every event of a busy cluster plans anew: EC2 would be asked once a second for hours."""
    clock = Clock()
    limiter = RateLimiter(clock)
    sent: list[float] = []

    def call() -> None:
        sent.append(clock.now)
        raise Throttled("x", "y")

    for _ in range(10_000):
        clock.now += 0.1
        with suppress(Throttled), rate_limited(limiter, "us-west-2", CALL):
            call()
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    assert gaps[:6] == pytest.approx([1, 2, 4, 8, 16, 32], abs=0.2)
    assert gaps[6:] == pytest.approx([60] * len(gaps[6:]), abs=0.2)
    clock.now += 60
    with rate_limited(limiter, "us-west-2", CALL):
        pass
    limiter.refused(CALL, "us-west-2", Throttled("x", "y"))
    clock.now += 1.0
    assert passing(limiter, 1) == 1


def test_call_that_is_held_back_tells_what_the_server_said() -> None:
    """Nobody finds who uses up an account's limits behind "our own limit"."""
    clock = Clock()
    limiter = RateLimiter(clock)
    limiter.refused("ModifyFleet", "us-west-2", Throttled("x", "RequestLimitExceeded"))
    with pytest.raises(Throttled, match="before it was throttled: RequestLimitExceeded"):
        limiter.enter("ModifyFleet", "us-west-2")


def test_clock_that_stands_still_gives_nothing_for_nothing() -> None:
    """A bucket that fills without time is none."""
    limiter = RateLimiter(Clock(), RATES)
    assert passing(limiter, 1000) == RATES[CALL].capacity


def test_ec2s_calls_are_only_held_back_when_ec2_says_so() -> None:
    """Its adapter spreads them by EC2's own figures: two brakes would be one too many."""
    clock = Clock()
    limiter = RateLimiter(clock)
    for _ in range(1000):
        limiter.enter("ModifyFleet", "us-west-2")
    limiter.refused("ModifyFleet", "us-west-2", Throttled("x", "y"))
    with pytest.raises(Throttled):
        limiter.enter("ModifyFleet", "us-west-2")
    limiter.enter("ModifyFleet", "us-east-1")
    clock.now += 1.0
    limiter.enter("ModifyFleet", "us-west-2")
