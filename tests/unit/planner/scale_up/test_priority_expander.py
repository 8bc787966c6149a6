"""The expander `priority`: which fleets are bought from when several have the same priority."""

from dataclasses import replace

from reconciler.model.actions import SetCapacity
from reconciler.model.cluster import Pod
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, PlannerSettings
from tests.builders import make_fleet_settings, make_pod, make_settings, make_snapshot


def _settings(*fleets: FleetSettings) -> PlannerSettings:
    made = make_settings(*fleets)
    return replace(made, sectors=tuple(replace(s, expander="priority") for s in made.sectors))


def _bought(settings: PlannerSettings, *pods: Pod) -> dict[str, int]:
    actions = plan(make_snapshot(*pods), settings).actions
    raised = [a for a in actions if isinstance(a, SetCapacity)]
    return {a.fleet.removeprefix("primary-"): a.to_capacity for a in raised}


def _pods(count: int, cpu: str = "1") -> list[Pod]:
    return [make_pod(f"p{number:02}", cpu=cpu, memory="1Gi") for number in range(count)]


def test_fleets_of_equal_priority_are_bought_from_at_least_cost() -> None:
    """Many small nodes would be bought because one of them is cheaper than one large node."""
    settings = _settings(
        make_fleet_settings("small", cpu=2, memory="8Gi", price="0.10", priority=10),
        make_fleet_settings("large", cpu=16, memory="64Gi", price="0.70", priority=10),
        make_fleet_settings("cheap", cpu=16, memory="64Gi", price="0.10", priority=1),
    )
    assert _bought(settings, *_pods(16)) == {"large": 1}


def test_fleet_of_lower_priority_serves_only_what_higher_ones_cannot() -> None:
    """Demand beyond a fleet's maximum would wait, or the preferred fleet would stay unused."""
    settings = _settings(
        make_fleet_settings(
            "first", cpu=4, memory="16Gi", price="0.40", priority=10, max_capacity=2
        ),
        make_fleet_settings("second", cpu=4, memory="16Gi", price="0.10", priority=1),
    )
    assert _bought(settings, *_pods(12)) == {"first": 2, "second": 1}


def test_room_on_nodes_of_a_higher_priority_is_used_before_lower_ones_are_bought() -> None:
    """A node would be bought for pods that fit on what was bought already."""
    settings = _settings(
        make_fleet_settings("first", cpu=4, memory="16Gi", price="0.40", priority=10),
        make_fleet_settings("second", cpu=16, memory="64Gi", price="0.10", priority=1),
    )
    pods = [*_pods(3), make_pod("large", cpu="10", memory="1Gi")]
    assert _bought(settings, *pods) == {"first": 1, "second": 1}
