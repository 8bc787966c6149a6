"""Series over time: what each of their points says."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.demand import PodDemand
from reconciler.records.demand import folded
from reconciler.simulation.chances import Chances
from reconciler.simulation.history import POINTS
from reconciler.simulation.report import report
from reconciler.simulation.simulation import Options, Simulation
from tests.builders import make_fleet_settings, make_settings, make_spec

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
OPTIONS = Options(chances=Chances(interruptions_per_hour=0, capacity_errors_per_day=0))


@pytest.mark.parametrize("hours", [1, 12])
@pytest.mark.parametrize("sleep_seconds", [60, 600])
def test_pods_that_wait_are_in_every_point_of_their_wait(hours: int, sleep_seconds: float) -> None:
    """A value for each plan left most points of short demands, or long pauses, without pods."""
    half = timedelta(hours=hours / 2)
    pods = [PodDemand(at=AT + n * half, id=f"huge-{n}", spec=make_spec("900")) for n in range(2)]
    options = replace(OPTIONS, days=hours / 24, sleep_seconds=sleep_seconds)
    settings = make_settings(make_fleet_settings(), search_budget_seconds=0.0)
    run = report([("a", Simulation(folded(pods), settings, options).run())])["runs"][0]
    waiting = run["series"]["pods_waiting"]
    assert len(waiting) == POINTS
    begin, change = 10, POINTS // 2
    assert set(waiting[begin : change - 10]) == {1}
    assert set(waiting[change + 10 :]) == {2}


def test_pods_that_find_their_node_at_once_wait_in_no_point() -> None:
    """They have no node at the moment of their creation, which lasts no time."""
    pods = [PodDemand(at=AT + timedelta(minutes=30), id=f"x-{n}", spec=make_spec("100m"))
            for n in range(9)]  # fmt: skip
    settings = make_settings(make_fleet_settings(min_capacity=1), search_budget_seconds=0.0)
    begin = PodDemand(at=AT, id="first", spec=make_spec("100m"))
    made = Simulation(folded([begin, *pods]), settings, replace(OPTIONS, days=1 / 24))
    waiting = report([("a", made.run())])["runs"][0]["series"]["pods_waiting"]
    assert max(waiting) == 1
    assert not any(waiting[POINTS // 4 :])


def test_demand_of_whole_days_has_as_many_days_in_the_report() -> None:
    """The second before the first line made an empty last day in the plot of a week."""
    ends = PodDemand(at=AT + timedelta(days=2), id="end", spec=make_spec("1"))
    settings = make_settings(make_fleet_settings(min_capacity=1), search_budget_seconds=0.0)
    lines = [PodDemand(at=AT, id="first", spec=make_spec("1")), ends]
    rare = replace(OPTIONS, sleep_seconds=3600.0)
    whole, told = (
        report([("a", Simulation(folded(lines), settings, replace(rare, days=days)).run())])[
            "runs"
        ][0]
        for days in (None, 2.0)
    )
    assert whole["days"] == 2
    assert [each["day"] for each in whole["cost"]["by_day"]] == [1, 2]
    assert whole["cost"] == told["cost"]


def test_last_moment_of_a_demand_belongs_to_it() -> None:
    """Pods that their owner deletes then have not waited until after the end."""
    pod = PodDemand(at=AT, id="huge", spec=make_spec("900"), until=AT + timedelta(minutes=10))
    settings = make_settings(make_fleet_settings(), search_budget_seconds=0.0)
    history = Simulation(folded([pod]), settings, OPTIONS).run().history
    assert (history.deleted_waiting, history.waiting) == (1, 0)
