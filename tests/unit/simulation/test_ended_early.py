"""Pods that run to completion and lose their node before: their work is lost."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.cluster import Owner
from reconciler.model.demand import DemandLine, FaultDemand, PodDemand
from reconciler.records.demand import folded
from reconciler.simulation.chances import Chances
from reconciler.simulation.report import report
from reconciler.simulation.simulation import Options, Simulation
from tests.builders import make_fleet_settings, make_settings, make_spec

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPEC = make_spec("1", "2Gi")


def after(seconds: float) -> datetime:
    """So long after the first line."""
    return AT + timedelta(seconds=seconds)


def ended_early(lines: Sequence[DemandLine]) -> int:
    """What the report of an hour on a spot fleet says."""
    settings = make_settings(make_fleet_settings(), search_budget_seconds=0.0)
    options = Options(days=1 / 24, chances=Chances(interruptions_per_hour=0))
    found = report([("a", Simulation(folded(lines), settings, options).run())])
    number: int = found["runs"][0]["jobs_ended_early"]
    return number


def test_pod_of_a_job_that_its_owner_deletes_did_not_end_early() -> None:
    """Only what evictions and lost nodes cost Jobs is what a config is judged by."""
    owner = Owner(kind="Job", name="build")
    pod = PodDemand(at=AT, id="build", spec=SPEC, controller=owner, until=after(600))
    assert ended_early([pod]) == 0
    fault = FaultDemand(at=after(300), fault="interruption")
    assert ended_early([pod, fault]) == 1


@pytest.mark.parametrize(("until", "early"), [(None, 1), (after(200), 0)])
def test_pod_without_a_controller_that_loses_its_node_ended_early(
    until: datetime | None, early: int
) -> None:
    """Its work is lost, and a config that loses it costs less: nothing else shows it."""
    ran = None if until else 3600.0
    pod = PodDemand(at=AT, id="bare", spec=SPEC, ran_seconds=ran, until=until)
    fault = FaultDemand(at=after(300), fault="interruption")
    assert ended_early([pod, fault]) == early
