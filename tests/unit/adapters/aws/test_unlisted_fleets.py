"""Fleets that are read by their ids: which are asked about, how often, and what errors mean."""

from collections.abc import Sequence

import pytest

from reconciler.adapters.aws.unlisted_fleets import AT_ONCE, KEPT_SECONDS, UnlistedFleets
from reconciler.model.errors import NotFound, PortError, Throttled, Unavailable
from reconciler.model.ids import Region

HOME = Region("us-west-2")


class Ec2:
    """Knows some fleets, counts calls, and may be out of order."""

    def __init__(self, *ids: str) -> None:
        self.ids = ids
        self.calls: list[tuple[str, ...]] = []
        self.error: PortError | None = None

    def ask(self, ids: Sequence[str]) -> list[dict[str, str]]:
        """Answer as DescribeFleets does."""
        self.calls.append(tuple(ids))
        if self.error is not None:
            raise self.error
        if not set(ids) <= set(self.ids):
            raise NotFound("fleets", "InvalidFleetId.NotFound")
        return [{"FleetId": each} for each in ids]


class Time:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def read(fleets: UnlistedFleets, ec2: Ec2, *ids: str) -> list[str]:
    """The ids of the fleets that are known."""
    return [each["FleetId"] for each in fleets.read(HOME, ids, ec2.ask)]


def test_every_fleet_is_asked_about_however_many_there_are() -> None:
    """Those that were not asked about would count as gone."""
    ids = [f"fleet-{number:03}" for number in range(2 * AT_ONCE + 1)]
    ec2 = Ec2(*ids)
    assert read(UnlistedFleets(Time()), ec2, *ids) == ids
    assert [len(call) for call in ec2.calls] == [AT_ONCE, AT_ONCE, 1]


def test_answers_are_kept_for_a_while_also_that_a_fleet_is_unknown() -> None:
    """One fleet that is gone would cost a call for each fleet in every cycle."""
    time, ec2 = Time(), Ec2("fleet-a")
    fleets = UnlistedFleets(time)
    assert read(fleets, ec2, "fleet-a", "fleet-gone") == ["fleet-a"]
    calls = len(ec2.calls)
    time.now = KEPT_SECONDS
    assert read(fleets, ec2, "fleet-a", "fleet-gone") == ["fleet-a"]
    assert len(ec2.calls) == calls
    time.now += 1
    assert read(fleets, ec2, "fleet-a") == ["fleet-a"]
    assert ec2.calls[calls:] == [("fleet-a",)]


@pytest.mark.parametrize("error", [Throttled("EC2", "slow down"), Unavailable("EC2", "away")])
def test_older_answer_counts_while_ec2_does_not_answer(error: PortError) -> None:
    """The whole region would be silent, and nothing be bought there, for a question aside."""
    time, ec2 = Time(), Ec2("fleet-a")
    fleets = UnlistedFleets(time)
    ec2.error = error
    with pytest.raises(type(error)):
        read(fleets, ec2, "fleet-a")
    ec2.error = None
    assert read(fleets, ec2, "fleet-a") == ["fleet-a"]
    ec2.error, time.now = error, 2 * KEPT_SECONDS
    assert read(fleets, ec2, "fleet-a") == ["fleet-a"]
