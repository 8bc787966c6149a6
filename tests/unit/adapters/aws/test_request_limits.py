"""Client-side token buckets: how fast calls to EC2 may follow each other."""

import pytest

from reconciler.adapters.aws.request_limits import RequestLimits
from reconciler.model.errors import Throttled
from reconciler.model.ids import Region

HOME, AWAY = Region("us-west-2"), Region("us-east-1")


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def hand() -> Hand:
    """At 0 s."""
    return Hand()


def request_limits(hand: Hand) -> RequestLimits:
    """One that waits for nobody: what would wait is refused."""
    return RequestLimits(hand, patience_seconds=0.0)


def burst(paced: RequestLimits, action: str, body: bytes = b"") -> int:
    """How many calls go through at one moment."""
    for sent in range(2000):
        try:
            paced.admit(HOME, action, body)
        except Throttled:
            return sent
    return 2000


@pytest.mark.parametrize(
    ("action", "body", "calls"),
    [
        ("ModifyFleet", b"", 40),
        ("TerminateInstances", b"InstanceId.1=i-1", 80),
        ("DescribeInstances", b"Filter.1.Name=tag-key", 80),
        ("DescribeInstances", b"", 40),
        ("DescribeFleets", b"", 80),
    ],
)
def test_burst_stays_four_fifths_of_ec2s_own_bucket(
    hand: Hand, action: str, body: bytes, calls: int
) -> None:
    """What others in the account ask for at the same time would be throttled because of us."""
    assert burst(request_limits(hand), action, body) == calls


def test_tokens_come_back_with_time(hand: Hand) -> None:
    """A bucket that stays empty would stop scaling for good."""
    paced = request_limits(hand)
    burst(paced, "ModifyFleet")
    hand.seconds = 1.0
    assert burst(paced, "ModifyFleet") == 4


def test_instances_are_counted_beside_requests(hand: Hand) -> None:
    """1,000 terminated instances empty EC2's bucket in ten calls."""
    many = b"&".join(b"InstanceId.%d=i-%d" % (n, n) for n in range(1, 101))
    assert burst(request_limits(hand), "TerminateInstances", many) == 8


def test_regions_have_buckets_of_their_own(hand: Hand) -> None:
    """A busy region must not slow down the one that takes its overflow."""
    paced = request_limits(hand)
    burst(paced, "ModifyFleet")
    paced.admit(AWAY, "ModifyFleet", b"")


def test_refused_call_says_when_its_turn_comes(hand: Hand) -> None:
    """Without a time the loop would come back at once, again and again."""
    paced = RequestLimits(hand, patience_seconds=0.1)
    burst(paced, "ModifyFleet")
    with pytest.raises(Throttled, match="ModifyFleet us-west-2: not sent") as caught:
        paced.admit(HOME, "ModifyFleet", b"")
    assert caught.value.retry_after_seconds == pytest.approx(0.25)


def test_stop_ends_waits(hand: Hand) -> None:
    """A process that is asked to end must not wait for its turn."""
    paced = RequestLimits(hand, patience_seconds=3600.0)
    paced.stop()
    assert burst(paced, "ModifyFleet") == 2000
