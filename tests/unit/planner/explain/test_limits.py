"""`--explain` for pods that a fleet would take: what keeps it from a node, and what ends that."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.snapshot import Snapshot
from reconciler.planner.explain.answers import FleetExplanation, PodExplanation
from reconciler.planner.explain.explain import explain
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings, RaiseLimits
from tests.builders import (
    AWAY,
    HOME,
    ago,
    capacity_error,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)

FLEET = make_fleet_settings(price="0.25")
LARGE = make_fleet_settings("large", price="0.30")
STEADY = make_fleet_settings("steady", spot=False, price="0.50")


def of_pod(snapshot: Snapshot, settings: PlannerSettings) -> PodExplanation:
    """The explanation of the pod."""
    made = plan(snapshot, settings)
    return explain(snapshot, settings, made, pods=["ns/pod"]).pods[0]


def of_fleet(snapshot: Snapshot, settings: PlannerSettings) -> FleetExplanation:
    """The explanation of the fleet."""
    made = plan(snapshot, settings)
    return explain(snapshot, settings, made, fleets=[FLEET.name]).fleets[0]


def saved(**changed: Any) -> SavedFleetState:
    """The fleet's cool-off, which goes on for four minutes."""
    return SavedFleetState(fleet=FLEET.name, region=HOME, unavailable_until=ago(-240), **changed)


@pytest.mark.parametrize(
    ("live", "state", "change"),
    [
        (
            {"launches_halted": "its target counts units"},
            (),
            "set primary-small up to be scaled: its target counts units",
        ),
        (
            {},
            (saved(stuck_in_a_row=3),),
            "find out why instances of primary-small become no usable nodes: 3 instances in",
        ),
        (
            {},
            (saved(failure="denied", reason="AccessDenied: no"),),
            "make EC2 accept raises of primary-small again: AccessDenied: no; cooling off until",
        ),
    ],
    ids=["units", "never-joined", "denied"],
)
def test_waiting_is_not_advised_where_it_ends_nothing(
    live: dict[str, Any], state: tuple[SavedFleetState, ...], change: str
) -> None:
    """The pod would wait for ever."""
    cloud = make_cloud(make_fleet(FLEET, **live))
    snapshot = make_snapshot(make_pod(), cloud=cloud, fleet_states=state)
    (found,) = of_pod(snapshot, make_settings(FLEET)).change
    assert found.startswith(change)


def test_fallback_of_every_spot_fleet_that_keeps_the_pod_off_is_named() -> None:
    """With that of the first alone the pod still waited, now for the second."""
    errors: dict[str, Any] = {"launch_errors": (capacity_error(),)}
    cloud = make_cloud(make_fleet(FLEET, **errors), make_fleet(LARGE, **errors), make_fleet(STEADY))
    snapshot = make_snapshot(make_pod(), cloud=cloud)
    found = of_pod(snapshot, make_settings(FLEET, LARGE, STEADY))
    (answer,) = (fleet for fleet in found.fleets if fleet.fleet == STEADY.name)
    assert answer.ways == (
        (
            "set `spot_fallback: on-demand` on primary-small",
            "set `spot_fallback: on-demand` on primary-large",
        ),
    )
    changed = [replace(each, spot_fallback=True) for each in (FLEET, LARGE)]
    assert plan(snapshot, make_settings(changed[0], LARGE, STEADY)).unplaceable
    assert not plan(snapshot, make_settings(*changed, STEADY)).unplaceable


def test_no_max_capacity_is_named_for_a_fleet_that_is_replaced() -> None:
    """Whatever the config says, it gets no node before the new fleet is there."""
    live = make_fleet(FLEET, tags=FrozenMap({"Spot": "false"}))
    settings = make_settings(
        replace(FLEET, max_capacity=200), allow_destroy=frozenset({FLEET.name})
    )
    found = of_pod(make_snapshot(make_pod(), cloud=make_cloud(live)), settings)
    assert found.fleets[0].code == "max-capacity"
    assert found.change == (
        "wait until primary-small is drained and the plan that replaces it is applied",
    )


def test_fleet_that_is_removed_takes_no_pod_and_nothing_is_tried() -> None:
    """Whoever raised a limit of it would wait for nodes that its removal never allows."""
    moved = replace(FLEET, regions=(AWAY,))
    settings = make_settings(
        moved, STEADY, regions=(HOME, AWAY), allow_destroy=frozenset({FLEET.name})
    )
    cloud = make_cloud(make_fleet(FLEET), make_fleet(FLEET, region=AWAY), make_fleet(STEADY))
    found = of_pod(make_snapshot(make_pod(), cloud=cloud), settings)
    (answer,) = (f for f in found.fleets if (f.fleet, f.region) == (FLEET.name, HOME))
    assert (answer.code, answer.ways) == ("max-capacity", ())
    assert answer.detail == "the fleet is to be removed (allow_destroy) and gets no more nodes"
    full = replace(settings, usd_per_hour_max=Decimal("0.1"))
    found = of_pod(make_snapshot(make_pod(), cloud=cloud), full)
    assert found.change == ("raise max_hourly_usd to 0.2500",)


def test_raise_limit_below_the_price_of_a_node_is_not_waited_for() -> None:
    """The next plan may spend no more than this one."""
    limits = RaiseLimits(hourly_usd_per_cycle=Decimal("0.1"))
    found = of_pod(make_snapshot(make_pod()), make_settings(FLEET, raise_limits=limits))
    assert found.change == ("raise raise_limits.hourly_usd_per_cycle to 0.2500",)


def test_nominated_pod_is_reported_that_it_preempts() -> None:
    """The node's free room is too small for it, and it was said to take the pod by every filter."""
    node = make_node("n", FLEET)
    taken = make_pod("low", node="n", cpu="3", priority=0)
    pod = make_pod(cpu="3", priority=10, nominated_node_name=NodeName("n"))
    found = of_pod(make_snapshot(node, taken, pod), make_settings(FLEET))
    assert found.because.startswith(
        "kube-scheduler has nominated n for it, and ends pods of lower priority there"
    )
    assert "takes it by every filter" not in found.because


def test_fleet_that_refuses_pods_is_not_said_to_be_needed_by_none() -> None:
    """Two lines below stands how many pods it does not take."""
    settings = make_settings(FLEET, usd_per_hour_max=Decimal("0.1"))
    found = of_fleet(make_snapshot(make_pod()), settings)
    assert dict(found.refused) == {"max-cost": 1}
    assert found.because.startswith("no pending pod can use more of its nodes")
    assert "no pending pod needs more of it" in of_fleet(make_snapshot(), settings).because


def test_fleet_above_its_maximum_is_not_at_it() -> None:
    """Three nodes are not a maximum of two."""
    nodes = [make_node(f"n{i}", FLEET) for i in range(3)]
    pods = [make_pod(f"p{i}", node=f"n{i}", cpu="3") for i in range(3)]
    cloud = make_cloud(make_fleet(FLEET, 3))
    settings = make_settings(replace(FLEET, max_capacity=2))
    found = of_fleet(make_snapshot(*nodes, *pods, cloud=cloud), settings)
    assert found.because == "it is above its max_capacity of 2"
