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
