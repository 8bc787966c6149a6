"""How long an answer about instances may stand for the next one."""

from typing import Any

import pytest

from reconciler.adapters.aws.settled import AGE_SECONDS, SettledInstances
from reconciler.model.ids import Region

HOME = Region("us-west-2")


def fleet(target: int = 2, fulfilled: float = 2.0, **more: Any) -> dict[str, Any]:
    """One fleet as DescribeFleets answers it."""
    return {
        "FleetId": "fleet-1",
        "FleetState": "active",
        "FulfilledCapacity": fulfilled,
        "TargetCapacitySpecification": {"TotalTargetCapacity": target},
        **more,
    }


def reservations(*states: str) -> list[dict[str, Any]]:
    """One reservation of instances in these states."""
    return [{"Instances": [{"InstanceId": f"i-{s}", "State": {"Name": s}} for s in states]}]


class Time:
    """A clock that stands still until it is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Time:
    """The cache's clock."""
    return Time()


@pytest.fixture
def settled(clock: Time) -> SettledInstances:
    """A cache that holds two running instances of a fleet of two."""
    made = SettledInstances(clock)
    made.keep(HOME, [fleet()], reservations("running", "terminated"))
    return made


def test_unchanged_fleets_keep_the_answer(settled: SettledInstances) -> None:
    """Without it each pod that comes costs a second of waiting for EC2 in a large cluster."""
    assert settled.get(HOME, [fleet()]) == reservations("running", "terminated")
    assert settled.get(Region("us-east-1"), [fleet()]) is None


@pytest.mark.parametrize(
    "now",
    [
        [fleet(fulfilled=1.0)],
        [fleet(target=3)],
        [fleet(FleetState="modifying")],
        [fleet(ActivityStatus="error")],
        [fleet(), fleet(FleetId="fleet-2")],
        [],
    ],
)
def test_any_change_of_a_fleet_asks_again(
    settled: SettledInstances, now: list[dict[str, Any]]
) -> None:
    """An instance that came or went would be planned with as if it had not."""
    assert settled.get(HOME, now) is None


def test_old_answer_is_not_used(settled: SettledInstances, clock: Time) -> None:
    """A tag or a state that DescribeFleets does not show must be noticed at some time."""
    clock.now += AGE_SECONDS + 0.1
    assert settled.get(HOME, [fleet()]) is None


def test_own_change_forgets_the_answer(settled: SettledInstances) -> None:
    """The cycle after a termination would plan with the node that it has just ended."""
    settled.forget(HOME)
    assert settled.get(HOME, [fleet()]) is None


@pytest.mark.parametrize("state", ["pending", "shutting-down", "stopping"])
def test_answer_in_motion_is_not_kept(settled: SettledInstances, state: str) -> None:
    """What is on its way changes without a word of the fleet."""
    settled.keep(HOME, [fleet()], reservations("running", state))
    assert settled.get(HOME, [fleet()]) is None


def test_fleet_that_waits_for_instances_keeps_no_answer(settled: SettledInstances) -> None:
    """The next launch must be seen at once."""
    waiting = [fleet(target=3)]
    settled.keep(HOME, waiting, reservations("running", "running"))
    assert settled.get(HOME, waiting) is None
