"""Faults of a simulation: which launches they hit, and for how long when they overlap."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.demand import DemandLine, FaultDemand, PodDemand
from reconciler.model.frozen import FrozenMap
from reconciler.records.demand import folded
from reconciler.simulation.chances import Chances
from reconciler.simulation.simulation import Options, Result, Simulation
from tests.builders import idle, make_fleet_settings, make_settings, make_spec

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
CALM = Chances(interruptions_per_hour=0, capacity_errors_per_day=0)
SETTINGS = make_settings(
    make_fleet_settings(scale_in=idle(600)),
    make_fleet_settings(sector="steady", spot=False, scale_in=idle(600)),
    search_budget_seconds=0.0,
)
"""A spot and an on-demand fleet of one instance type, each in a sector of its own."""


def pod(name: str, sector: str = "primary", at: float = 0) -> PodDemand:
    """A pod that has a node to itself."""
    spec = replace(make_spec("3", "2Gi"), node_selector=FrozenMap({"sector": sector}))
    return PodDemand(at=AT + timedelta(seconds=at), id=name, spec=spec)


def fault(at: float = 0, until: float | None = None, **told: str | float) -> FaultDemand:
    """A fault from and to so many seconds after the begin."""
    end = None if until is None else AT + timedelta(seconds=until)
    return FaultDemand(at=AT + timedelta(seconds=at), until=end, **told)  # type: ignore[arg-type] # by name


def played(lines: Iterable[DemandLine], chances: Chances = CALM) -> Result:
    """The lines, played for forty minutes."""
    return Simulation(folded(lines), SETTINGS, Options(days=1 / 36, chances=chances)).run()


def longest_wait(lines: Iterable[DemandLine], chances: Chances = CALM) -> float:
    """Seconds, of one pod's way to its node."""
    (wait,) = played(lines, chances).history.waits
    return wait


def test_shortages_that_are_drawn_are_of_spot_pools_alone() -> None:
    """On-demand fleets of the same types waited with them, which the page does not say."""
    short = replace(CALM, capacity_errors_per_day=10_000, capacity_error_mean_seconds=1e6)
    begin = fault(fault="interruption")  # of nothing
    assert longest_wait([begin, pod("a", "steady", at=60)], short) < 120
    assert list(played([begin, pod("a", at=60)], short).history.waits) == []


@pytest.mark.parametrize("sector", ["primary", "steady"])
@pytest.mark.parametrize("inner", [{"zone": "us-west-2a"}, {"instance_type": "small.type"}, {}])
def test_pool_without_capacity_has_it_again_when_the_last_fault_ends(
    sector: str, inner: dict[str, str]
) -> None:
    """The first of two faults that ended took the other one with it."""
    outer = fault(until=900, fault="capacity", instance_type="small.type")
    both = [outer, fault(60, 300, fault="capacity", **inner)]
    assert longest_wait([*both, pod("a", sector)]) == longest_wait([outer, pod("a", sector)]) > 900


def test_shortage_by_chance_does_not_end_a_fault() -> None:
    """A recorded afternoon without capacity is the same whatever is drawn beside it."""
    outer = fault(until=900, fault="capacity")
    often = replace(CALM, capacity_errors_per_day=2000, capacity_error_mean_seconds=1)
    assert longest_wait([outer, pod("a")], often) > 900


@pytest.mark.parametrize("kind", ["capacity", "never-join", "slow-launch"])
def test_fault_of_a_fleet_lasts_until_its_own_end(kind: str) -> None:
    """Faults of all fleets and of one are often stated for the same hour."""
    outer = fault(until=900, fault=kind, fleet="primary-small", seconds=1200)
    inner = fault(1, 5, fault=kind, seconds=300)
    waits = played([outer, inner, pod("a", at=6)]).history.waits
    assert all(wait > 890 for wait in waits)  # none at all where no instance became a node


def test_instance_under_notice_is_not_taken_back_again() -> None:
    """Two faults within the two minutes of a notice are two instances, and both are counted."""
    lines: list[DemandLine] = [
        pod("a"),
        pod("b"),
        fault(600, fault="interruption"),
        fault(630, fault="interruption"),
        fault(640, fault="interruption", instances=9, zone="elsewhere"),
    ]
    found = played(lines)
    assert found.interruptions == 2
    early = [launch for launch in found.launches if launch.begin < 300]
    assert sorted(launch.end for launch in early) == pytest.approx([721, 751], abs=1)


def test_interruptions_that_are_drawn_count_an_instance_once() -> None:
    """A notice by chance for an instance that a fault takes back already is no second one."""
    often = replace(CALM, interruptions_per_hour=60)
    found = played([pod("a"), fault(120, fault="interruption")], often)
    spot = sum(launch.spot for launch in found.launches)
    assert 0 < found.interruptions <= spot


@pytest.mark.parametrize("kind", ["never-join", "slow-launch"])
@pytest.mark.parametrize("other", [{"instance_type": "other.type"}, {"zone": "us-west-2z"}])
def test_fault_of_another_type_or_zone_hits_no_instance_and_is_counted(
    kind: str, other: dict[str, str]
) -> None:
    """An image that does not boot on one type was played as one that boots on none."""
    found = played([fault(0, None, fault=kind, seconds=1200, **other), pod("a")])
    assert found.faults_of_nothing == 1
    (wait,) = found.history.waits
    assert wait < 120


@pytest.mark.parametrize("kind", ["never-join", "slow-launch"])
@pytest.mark.parametrize("own", [{"instance_type": "small.type"}, {"zone": "us-west-2a"}])
def test_fault_of_a_type_or_zone_hits_the_instances_launched_there(
    kind: str, own: dict[str, str]
) -> None:
    """The first node of a fleet is launched in its first zone."""
    found = played([fault(0, None, fault=kind, seconds=9000, **own), pod("a")])
    assert found.faults_of_nothing == 0
    assert found.launches
    assert not found.history.waits


@pytest.mark.parametrize("instance_type", ["", "small.type"])
@pytest.mark.parametrize("zone", ["", "us-west-2a"])
def test_capacity_fault_that_names_a_fleet_hits_no_other_one(instance_type: str, zone: str) -> None:
    """With a type or a zone beside the fleet all fleets of that type had no capacity.

    One within another of the same fleet ends alone; the fleet's other zones have capacity.
    """
    outer, inner = (
        fault(begin, end, fault="capacity", fleet="primary-small", instance_type=instance_type,
              zone=zone)
        for begin, end in ((0, 900), (60, 300))
    )  # fmt: skip
    assert longest_wait([outer, inner, pod("a", "steady")]) < 120
    waited = longest_wait([outer, inner, pod("a")])
    assert waited < 120 if zone else waited > 900


def test_first_instance_that_does_not_join_is_replaced_as_any_other() -> None:
    """The loop took the cluster for one of other fleets: the pod waited until the end."""
    lines: list[DemandLine] = [fault(until=600, fault="never-join"), pod("a")]
    first, second = played(lines).launches
    assert first.end - first.begin > 900
    assert second.begin == first.end
    assert 900 < longest_wait(lines) < 1100
