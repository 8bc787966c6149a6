"""Token buckets: bursts pass, storms do not, and a server's word closes the bucket."""

from contextlib import suppress
from itertools import pairwise

import pytest

from reconciler.executor.pacing import paced
from reconciler.executor.tokens import RATES, Api, Pace
from reconciler.model.errors import Throttled
from reconciler.model.throttling import TokenBucket


class Clock:
    """Seconds that tests move."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


CALL: Api = "nodes"


def passing(pace: Pace, calls: int, place: str = "us-west-2") -> int:
    """How many of so many calls go out."""
    passed = 0
    for _ in range(calls):
        try:
            pace.enter(CALL, place)
        except Throttled:
            continue
        passed += 1
    return passed


def test_burst_passes_and_a_storm_does_not() -> None:
    """A plan over hundreds of fleets would use up what all programs of the account share."""
    clock = Clock()
    pace = Pace(clock, {CALL: TokenBucket(capacity=5, per_second=2.0)})
    assert passing(pace, 50) == 5
    clock.now += 1.0
    assert passing(pace, 50) == 2
    clock.now += 1000.0
    assert passing(pace, 50) == 5


def test_each_region_has_its_own_bucket() -> None:
    """A busy region would hold the others up."""
    pace = Pace(Clock(), {CALL: TokenBucket(capacity=1, per_second=1.0)})
    assert (passing(pace, 3), passing(pace, 3, "us-east-1")) == (1, 1)


def test_refusal_says_when_to_come_back() -> None:
    """Whoever waits must know how long."""
    clock = Clock()
    pace = Pace(clock, {CALL: TokenBucket(capacity=1, per_second=0.5)})
    pace.enter(CALL, "us-west-2")
    with pytest.raises(Throttled) as refused:
        pace.enter(CALL, "us-west-2")
    assert refused.value.retry_after_seconds == 2.0


@pytest.mark.parametrize(("said", "closed"), [(7.0, 7.0), (None, 1.0), (86_400.0, 60.0)])
def test_server_that_throttles_is_left_alone_for_as_long_as_it_says(
    said: float | None, closed: float
) -> None:
    """Calls that a throttled server must refuse keep it throttled; a wrong answer ends all."""
    clock = Clock()
    pace = Pace(clock, {CALL: TokenBucket(capacity=5, per_second=2.0)})
    pace.refused(CALL, "us-west-2", Throttled("x", "y", said))
    clock.now += closed - 0.01
    assert passing(pace, 9) == 0
    clock.now += 0.02
    assert passing(pace, 9) == 5


def test_server_that_goes_on_throttling_is_left_alone_for_longer_and_longer() -> None:
    """Every event of a busy cluster plans anew: EC2 would be asked once a second for hours."""
    clock = Clock()
    pace = Pace(clock)
    sent: list[float] = []

    def call() -> None:
        sent.append(clock.now)
        raise Throttled("x", "y")

    for _ in range(10_000):
        clock.now += 0.1
        with suppress(Throttled), paced(pace, "us-west-2", CALL):
            call()
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    assert gaps[:6] == pytest.approx([1, 2, 4, 8, 16, 32], abs=0.2)
    assert gaps[6:] == pytest.approx([60] * len(gaps[6:]), abs=0.2)
    clock.now += 60
    with paced(pace, "us-west-2", CALL):
        pass
    pace.refused(CALL, "us-west-2", Throttled("x", "y"))
    clock.now += 1.0
    assert passing(pace, 1) == 1


def test_call_that_is_held_back_tells_what_the_server_said() -> None:
    """Nobody finds who uses up an account's limits behind "our own limit"."""
    clock = Clock()
    pace = Pace(clock)
    pace.refused("ModifyFleet", "us-west-2", Throttled("x", "RequestLimitExceeded"))
    with pytest.raises(Throttled, match="before it was throttled: RequestLimitExceeded"):
        pace.enter("ModifyFleet", "us-west-2")


def test_clock_that_stands_still_gives_nothing_for_nothing() -> None:
    """A bucket that fills without time is none."""
    pace = Pace(Clock(), RATES)
    assert passing(pace, 1000) == RATES[CALL].capacity


def test_ec2s_calls_are_only_held_back_when_ec2_says_so() -> None:
    """Its adapter spreads them by EC2's own figures: two brakes would be one too many."""
    clock = Clock()
    pace = Pace(clock)
    for _ in range(1000):
        pace.enter("ModifyFleet", "us-west-2")
    pace.refused("ModifyFleet", "us-west-2", Throttled("x", "y"))
    with pytest.raises(Throttled):
        pace.enter("ModifyFleet", "us-west-2")
    pace.enter("ModifyFleet", "us-east-1")
    clock.now += 1.0
    pace.enter("ModifyFleet", "us-west-2")
