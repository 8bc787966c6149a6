"""Where demand goes when fleets fail: cool-off, fallback, regions (docs/failures.md)."""

from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.actions import DeleteNode, TaintNode
from reconciler.model.cluster import Node
from reconciler.model.fleet import FleetEvent
from reconciler.model.ids import FleetId
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.snapshot import CloudState
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    AWAY,
    HOME,
    ago,
    capacity_error,
    idle,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_option,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.placed import places, raises


@pytest.mark.parametrize(
    ("errors", "closed"),
    [
        ((60,), True),
        ((299,), True),
        ((301,), False),
        ((301, 900), True),
        ((599, 1200), True),
        ((601, 1200), False),
        ((60, 90, 100), True),
        ((301, 310, 320), False),
    ],
)
def test_cool_off_after_capacity_errors_doubles_from_five_minutes(
    errors: tuple[float, ...], closed: bool
) -> None:
    """Launch storms against a pool without capacity, or minutes of needless waiting."""
    fleet = make_fleet_settings()
    events = tuple(sorted(capacity_error(seconds) for seconds in errors))
    cloud = make_cloud(make_fleet(fleet, launch_errors=events))
    made = plan(make_snapshot(make_pod(), cloud=cloud), make_settings(fleet))
    assert bool(made.unplaceable) == closed


@pytest.mark.parametrize(("ahead_seconds", "closed"), [(1, True), (119, True), (121, False)])
def test_errors_of_the_future_close_a_fleet_only_within_what_clocks_may_differ_by(
    ahead_seconds: float, closed: bool
) -> None:
    """With a clock that is a minute behind, a pool that is empty would be asked for that long.

    A clock that jumps back would close every fleet.
    """
    fleet = make_fleet_settings()
    cloud = make_cloud(make_fleet(fleet, launch_errors=(capacity_error(-ahead_seconds),)))
    made = plan(make_snapshot(make_pod(), cloud=cloud), make_settings(fleet))
    assert bool(made.unplaceable) == closed


def test_remembered_cool_off_survives_a_restart() -> None:
    """A restarted leader would storm the pool that failed a minute ago."""
    fleet = make_fleet_settings()
    saved = SavedFleetState(fleet=fleet.name, region=HOME, unavailable_until=ago(-60), failures=1)
    snapshot = make_snapshot(make_pod(), cloud=make_cloud(make_fleet(fleet)), fleet_states=(saved,))
    assert (
        plan(snapshot, make_settings(fleet)).unplaceable[0].reasons[0].code == "fleet-unavailable"
    )


def test_launching_capacity_of_a_failing_fleet_no_longer_counts() -> None:
    """Pods would wait for nodes that EC2 cannot launch."""
    failing = make_fleet_settings("small", cpu=4)
    other = make_fleet_settings("medium", cpu=8, memory="32Gi", price="0.2")
    cloud = make_cloud(make_fleet(failing, 2, launch_errors=(capacity_error(),)), make_fleet(other))
    made = plan(make_snapshot(make_pod(), cloud=cloud), make_settings(failing, other))
    assert places(made) == {"pod": ("primary-medium", None, 0)}


@pytest.mark.parametrize(("fallback", "moves"), [(True, True), (False, False)])
def test_demand_moves_to_on_demand_only_with_a_fallback(fallback: bool, moves: bool) -> None:
    """A bill in on-demand prices nobody agreed to; or an outage that a setting should prevent."""
    spot = make_fleet_settings("small", spot=True, spot_fallback=fallback)
    od = make_fleet_settings("small", name="primary-small-od", spot=False, price="0.3")
    cloud = make_cloud(make_fleet(spot, launch_errors=(capacity_error(),)), make_fleet(od))
    made = plan(make_snapshot(make_pod(), cloud=cloud), make_settings(spot, od))
    assert bool(made.placements) == moves
    if not moves:
        assert {r.code for r in made.unplaceable[0].reasons} == {"fleet-unavailable"}


def test_demand_moves_to_another_size_before_another_region() -> None:
    """Pods would be moved across regions while the home region has room."""
    small = make_fleet_settings("small", regions=(HOME, AWAY))
    large = make_fleet_settings("large", cpu=16, memory="64Gi", price="0.5", regions=(HOME, AWAY))
    failing = make_fleet(small, launch_errors=(capacity_error(),))
    others = [make_fleet(large), make_fleet(small, region=AWAY), make_fleet(large, region=AWAY)]
    settings = make_settings(small, large, regions=(HOME, AWAY))
    made = plan(make_snapshot(make_pod(), cloud=make_cloud(failing, *others)), settings)
    assert raises(made) == {("primary-large", HOME): 1}


def two_regions(**home: Any) -> Plan:
    """One fleet in two regions, four pods of a node each."""
    changed = {k: home.pop(k) for k in ("max_capacity", "min_capacity") if k in home}
    fleet = make_fleet_settings(cpu=4, regions=(HOME, AWAY), **changed)
    cloud = make_cloud(make_fleet(fleet, **home), make_fleet(fleet, region=AWAY))
    return plan(
        make_snapshot(*make_pods(4, cpu=4), cloud=cloud), make_settings(fleet, regions=(HOME, AWAY))
    )


def test_demand_of_a_failing_fleet_moves_to_the_next_region() -> None:
    """An outage of one region's spot pool would stop the sector."""
    made = two_regions(launch_errors=(capacity_error(),))
    assert raises(made) == {("primary-small", AWAY): 4}
    assert {p.region for p in made.placements} == {AWAY}
    assert [(a.policy, a.because) for a in made.actions] == [
        ("overflow", f"4 pending pods need 4 more nodes, which {HOME} cannot give now")
    ]


@pytest.mark.parametrize("errors", [(), (capacity_error(),)])
def test_pod_that_can_run_in_the_next_region_alone_is_served_there(
    errors: tuple[FleetEvent, ...],
) -> None:
    """A StatefulSet's pod whose volume was made there would wait for ever."""
    fleet = make_fleet_settings(regions=(HOME, AWAY))
    homes = make_fleet(fleet, launch_errors=errors)
    bound = make_pod(node_selector={"topology.kubernetes.io/region": AWAY})
    snapshot = make_snapshot(bound, cloud=make_cloud(homes, make_fleet(fleet, region=AWAY)))
    made = plan(snapshot, make_settings(fleet, regions=(HOME, AWAY)))
    assert raises(made) == {("primary-small", AWAY): 1}


def test_full_fleet_does_not_overflow_into_the_next_region() -> None:
    """max_capacity would limit nothing."""
    made = two_regions(max_capacity=2)
    assert raises(made) == {("primary-small", HOME): 2}
    assert {u.reasons[0].code for u in made.unplaceable} == {"max-capacity"}


def test_minimum_is_kept_in_the_home_region_only() -> None:
    """Every region would keep idle minima."""
    fleet = make_fleet_settings(min_capacity=2, regions=(HOME, AWAY))
    cloud = make_cloud(make_fleet(fleet), make_fleet(fleet, region=AWAY))
    made = plan(make_snapshot(cloud=cloud), make_settings(fleet, regions=(HOME, AWAY)))
    assert raises(made) == {("primary-small", HOME): 2}


def test_recovered_fleet_is_preferred_again_without_moving_anything_back() -> None:
    """Clusters would stay in the more expensive region after the shortage is over."""
    fleet = make_fleet_settings(cpu=4, regions=(HOME, AWAY))
    away = make_node("away", fleet, region=AWAY)
    cloud = make_cloud(
        make_fleet(fleet, launch_errors=(capacity_error(3600),)),
        make_fleet(fleet, 1, region=AWAY),
    )
    runs, waits = make_pod("runs", node="away", cpu=4), make_pod("waits", cpu=4)
    made = plan(
        make_snapshot(away, runs, waits, cloud=cloud), make_settings(fleet, regions=(HOME, AWAY))
    )
    assert raises(made) == {("primary-small", HOME): 1}


def test_region_that_did_not_answer_is_unknown_not_missing() -> None:
    """A throttled region's fleets would be reported as deleted."""
    fleet = make_fleet_settings(regions=(HOME, AWAY))
    cloud = make_cloud(make_fleet(fleet), regions=frozenset({HOME}))
    made = plan(make_snapshot(cloud=cloud), make_settings(fleet, regions=(HOME, AWAY)))
    assert [f.region for f in made.fleets] == [HOME]


@pytest.mark.parametrize("state", ["active", "modifying", "submitted"])
def test_fleet_being_modified_is_planned_like_any_other(state: str) -> None:
    """Two raises within seconds would wait for each other."""
    fleet = make_fleet_settings()
    cloud = make_cloud(make_fleet(fleet, state=state))
    made = plan(make_snapshot(make_pod(), cloud=cloud), make_settings(fleet))
    assert raises(made) == {("primary-small", HOME): 1}
    assert made.fleets[0].state == state


def test_broken_sector_does_not_hold_up_another() -> None:
    """One sector's missing fleet would stop all scaling."""
    broken, healthy = (
        make_fleet_settings("small", "broken"),
        make_fleet_settings("small", "healthy"),
    )
    pods = [make_pod("a", sector="broken"), make_pod("b", sector="healthy")]
    made = plan(
        make_snapshot(*pods, cloud=make_cloud(make_fleet(healthy))), make_settings(broken, healthy)
    )
    assert raises(made) == {("healthy-small", HOME): 1}
    assert [u.pod.name for u in made.unplaceable] == ["a"]


def test_without_ec2s_answers_every_fleet_has_what_its_nodes_show() -> None:
    """`reconciler plan` without --aws would plan nothing, or everything anew."""
    fleet = make_fleet_settings(cpu=4)
    made = plan(make_snapshot(make_node("n", fleet), *make_pods(2, cpu=4)), make_settings(fleet))
    (listed,) = made.fleets
    assert (listed.current, listed.joined, listed.target, listed.state) == (1, 1, 2, "active")


def test_accelerators_go_to_the_fleet_that_has_them() -> None:
    """Pods that ask for a GPU would be sent to nodes without one."""
    plain = make_fleet_settings("plain", price="0.05")
    gpu = make_fleet_settings(
        "gpu",
        options=(make_option("g5.xlarge", price="1.0", **{"nvidia.com/gpu": 1}),),
    )
    pod = make_pod(requests={"nvidia.com/gpu": 1})
    assert raises(plan(make_snapshot(pod), make_settings(plain, gpu))) == {("primary-gpu", HOME): 1}


def test_cost_limit_counts_the_nodes_of_a_region_that_is_silent() -> None:
    """One lost answer, and the other sectors would spend the whole limit once more."""
    home = make_fleet_settings("a")
    away = make_fleet_settings("b", "second", regions=(AWAY,))
    nodes = [make_node(f"n{i}", home) for i in range(4)]
    pods = [make_pod(f"p{i}", node=node.name, cpu=3) for i, node in enumerate(nodes)]
    settings = make_settings(home, away, regions=(HOME, AWAY), usd_per_hour_max=Decimal("0.4"))
    waits = make_pod("w", cpu=3, sector="second")
    cloud = make_cloud(
        make_fleet(away, region=AWAY), silent=frozenset({HOME}), regions=frozenset({AWAY})
    )
    made = plan(make_snapshot(*nodes, *pods, waits, cloud=cloud), settings)
    assert raises(made) == {}


GROUP: Any = {"provider": "asg", "auto_scaling_group": "a-group"}


def test_silent_auto_scaling_leaves_ec2_fleets_at_work() -> None:
    """A missing right to groups would leave every pod without a node."""
    group, fleet = make_fleet_settings("a", "grouped", **GROUP), make_fleet_settings("b", "second")
    cloud = _without_groups(fleet)
    waits = [make_pod("w", sector="second"), make_pod("x", sector="grouped")]
    made = plan(make_snapshot(*waits, cloud=cloud), make_settings(group, fleet))
    assert raises(made) == {("second-b", HOME): 1}
    assert [(f.fleet, f.state) for f in made.fleets] == [
        ("grouped-a", "unknown"),
        ("second-b", "active"),
    ]


def test_nodes_of_a_silent_provider_are_left_alone() -> None:
    """Auto Scaling that is away for an hour would empty its groups: idle, unready, unseen nodes."""
    group, fleet = make_fleet_settings("a", "grouped", **GROUP), make_fleet_settings("b", "second")
    nodes = [make_node(f"n{i}", group, ready=i > 0) for i in range(3)]
    own = make_node("own", fleet)
    pods = [make_pod("p", node="own", sector="second")]
    cloud = _without_groups(fleet, own)
    made = plan(make_snapshot(*nodes, own, *pods, cloud=cloud), make_settings(group, fleet))
    assert made.actions == ()
    assert made.orphans == 0
    assert [(f.fleet, f.state, f.joined) for f in made.fleets] == [
        ("grouped-a", "unknown", 3),
        ("second-b", "active", 1),
    ]


def test_fleet_of_the_same_sector_waits_before_it_stands_in_for_a_silent_one() -> None:
    """One lost answer would buy again what the group is launching."""
    group, fleet = make_fleet_settings("a", **GROUP), make_fleet_settings("b")
    cloud = _without_groups(fleet)
    waits, settings = make_pod("w"), make_settings(group, fleet)
    made = plan(make_snapshot(waits, cloud=cloud), settings)
    assert raises(made) == {}
    (unplaced,) = made.unplaceable
    assert [(r.fleet, r.code, r.detail) for r in unplaced.reasons] == [
        ("primary-a", "fleet-unavailable", "EC2 does not answer in its region"),
        (
            "primary-b",
            "fleet-unavailable",
            "the preferred fleets do not answer; demand moves to this fleet if that lasts",
        ),
    ]
    since = SavedFleetState(fleet="primary-a", region=HOME, silent_since=ago(3600))
    later = plan(make_snapshot(waits, cloud=cloud, fleet_states=(since,)), settings)
    assert raises(later) == {("primary-b", HOME): 1}


def test_node_that_nobody_shows_is_no_member_by_its_label_while_a_provider_is_silent() -> None:
    """A node somebody launched himself would be ended, and another one of the fleet launched."""
    group = make_fleet_settings("a", "grouped", scale_in=idle(600), **GROUP)
    fleet = make_fleet_settings("b", "second", scale_in=idle(600))
    own, stray = make_node("own", fleet), make_node("stray", fleet)
    lost = make_node("lost", fleet, ready=False)
    pods = [make_pod("p", node="own", sector="second", cpu=4)]
    waits = make_pod("w", sector="second", cpu=3)
    cloud = _without_groups(fleet, own)
    made = plan(
        make_snapshot(own, stray, lost, *pods, waits, cloud=cloud), make_settings(group, fleet)
    )
    assert [(f.fleet, f.joined) for f in made.fleets] == [("grouped-a", 0), ("second-b", 1)]
    assert not {
        action.node for action in made.actions if isinstance(action, TaintNode | DeleteNode)
    }


def test_nodes_in_standby_are_not_counted_while_ec2_fleets_are_silent() -> None:
    """The group would be asked for as many more as stand by."""
    group, fleet = make_fleet_settings("a", "grouped", **GROUP), make_fleet_settings("b", "second")
    live = make_fleet(group, 1, id=FleetId("a-group"))
    nodes = [make_node(f"n{i}", group) for i in range(3)]
    cloud = make_cloud(
        live,
        instances=[make_instance(node, live, set_aside=node is not nodes[0]) for node in nodes],
        regions=frozenset(),
        silent=frozenset({HOME}),
        answered_in_part=frozenset({("asg", HOME)}),
        instances_asked=True,
    )
    pods = [make_pod(f"p{i}", node=f"n{i}", sector="grouped", cpu=4) for i in range(3)]
    waits = make_pod("w", sector="grouped", cpu=3)
    made = plan(make_snapshot(*nodes, *pods, waits, cloud=cloud), make_settings(group, fleet))
    assert raises(made) == {("grouped-a", HOME): 2}


def test_fleet_away_from_home_waits_too_before_it_stands_in_for_a_silent_one() -> None:
    """A group there that has launched its first nodes would be bought again as another fleet's."""
    group = make_fleet_settings("a", regions=(AWAY,), **GROUP)
    fleet = make_fleet_settings("b", regions=(AWAY,))
    cloud = make_cloud(
        make_fleet(fleet, region=AWAY),
        regions=frozenset({HOME}),
        silent=frozenset({AWAY}),
        answered_in_part=frozenset({("ec2-fleet", AWAY)}),
        instances_asked=True,
    )
    settings = make_settings(group, fleet, regions=(HOME, AWAY))
    made = plan(make_snapshot(make_pod(), cloud=cloud), settings)
    assert raises(made) == {}
    assert [(f.fleet, f.state) for f in made.fleets] == [
        ("primary-a", "unknown"),
        ("primary-b", "active"),
    ]


def _without_groups(settings: FleetSettings, *nodes: Node) -> CloudState:
    """EC2 answers for its fleet, Auto Scaling is silent."""
    fleet = make_fleet(settings, len(nodes))
    return make_cloud(
        fleet,
        instances=[make_instance(node, fleet) for node in nodes],
        regions=frozenset(),
        silent=frozenset({HOME}),
        answered_in_part=frozenset({("ec2-fleet", HOME)}),
        instances_asked=True,
    )
