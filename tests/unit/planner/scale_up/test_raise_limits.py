"""How far pods and headroom may raise targets in one plan and an hour (docs/failures.md)."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from reconciler.loops.lease.saved_state import with_raises
from reconciler.model.actions import SetCapacity
from reconciler.model.cluster import Pod
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedRaise
from reconciler.planner.explain.explain import explain
from reconciler.planner.planner import plan
from reconciler.planner.raise_limits import recent_raises, with_raise
from reconciler.planner.settings import Headroom, RaiseLimits
from tests.builders import (
    HOSTNAME,
    NOW,
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pods,
    make_settings,
    make_snapshot,
    near,
)
from tests.unit.planner.disruption.interrupted_nodes import noticed
from tests.unit.planner.disruption.scale_in.scene import on
from tests.unit.planner.disruption.scale_in.scene import planned as on_cluster
from tests.unit.planner.placed import raises

FLEET = make_fleet_settings(min_capacity=0)


def alone(count: int, name: str = "alone", **changed: Any) -> tuple[Pod, ...]:
    """Pods that need a node each."""
    return make_pods(count, name, cpu="3", **changed)


def planned(pods: int, running: int = 0, *raised: SavedRaise, **limits: Any) -> Plan:
    """The plan for pods that ask for a node each, beside full nodes."""
    nodes = [make_node(f"n{i}", FLEET, unschedulable=True) for i in range(running)]
    waiting = alone(pods)
    cloud = make_cloud(make_fleet(FLEET, running))
    snapshot = make_snapshot(*nodes, *waiting, cloud=cloud, raises=raised)
    return plan(snapshot, make_settings(FLEET, raise_limits=RaiseLimits(**limits)))


def asked(made: Plan) -> int:
    """Nodes that pods and headroom add."""
    return sum(new.nodes for new in made.new_nodes)


def codes(made: Plan) -> set[str]:
    """Why pods wait."""
    return {reason.code for pod in made.unplaceable for reason in pod.reasons}


@pytest.mark.parametrize(("running", "nodes"), [(50, 1000), (150, 1500), (0, 5000)])
def test_one_plan_raises_targets_within_what_runs_unless_the_config_says_more(
    running: int, nodes: int
) -> None:
    """5,000 replicas by mistake would be 5,000 nodes before anybody has looked."""
    made = planned(5500, running)
    assert (asked(made), codes(made)) == (nodes, {"raise-limit"})
    assert len(made.unplaceable) == 5500 - nodes
    assert asked(planned(5500, running, nodes_per_cycle=6000, nodes_per_hour=6000)) == 5500


def test_ordinary_burst_is_not_held_back() -> None:
    """Batch work would wait for an hour because of a limit that nobody has set."""
    assert codes(planned(900, 3)) == set()


def test_limit_is_the_reason_of_pods_that_may_not_share_a_node_too() -> None:
    """Their rule would be blamed for what a limit holds back."""
    pods = make_pods(4, labels={"app": "a"}, pod_anti_affinity=(near(HOSTNAME, app="a"),))
    settings = make_settings(FLEET, raise_limits=RaiseLimits(nodes_per_cycle=3))
    made = plan(make_snapshot(*pods, cloud=make_cloud(make_fleet(FLEET))), settings)
    assert (asked(made), codes(made)) == (3, {"raise-limit"})


def raised_before(nodes: int, seconds: float = 600, **changed: Any) -> SavedRaise:
    """A raise some time ago, by nodes at 0.10 USD per hour."""
    cost = nodes * 10**8
    return SavedRaise(at=ago(seconds), nodes=nodes, nano_usd_per_hour=cost, **changed)


def test_what_was_raised_within_the_hour_counts() -> None:
    """A loop that asks again every 20 s would raise targets without an end."""
    made = planned(10, 8, raised_before(5), nodes_per_hour=8)
    assert (asked(made), codes(made)) == (3, {"raise-limit"})
    assert asked(planned(10, 8, raised_before(5, 3899), nodes_per_hour=8)) == 3
    assert asked(planned(10, 8, raised_before(5, 3901), nodes_per_hour=8)) == 8


def test_raises_do_not_widen_the_limit_of_those_that_follow() -> None:
    """Ten times what runs, plan after plan, would be no limit at all."""
    before = raised_before(1000, nodes_before=50)
    assert asked(planned(3000, 1050, before)) == 1000
    assert asked(planned(3000, 2050, replace(before, nodes=2000))) == 0


def test_cost_is_limited_beside_nodes() -> None:
    """A few nodes with devices cost as much as a thousand others."""
    assert asked(planned(10, 1, hourly_usd_per_cycle=Decimal("0.35"))) == 3
    spent = raised_before(5)
    made = planned(10, 6, spent, hourly_usd_per_hour=Decimal("0.65"))
    assert (asked(made), codes(made)) == (1, {"raise-limit"})


def test_highest_priorities_are_served_first_in_all_sectors() -> None:
    """One tenant's mistake would use up what another one's important pods need."""
    fleets = make_fleet_settings(sector="a"), make_fleet_settings(sector="b")
    flood = alone(50, "flood", sector="a")
    urgent = make_pods(3, "urgent", priority=9, sector="b", cpu="3")
    cloud = make_cloud(*(make_fleet(fleet) for fleet in fleets))
    settings = make_settings(*fleets, raise_limits=RaiseLimits(nodes_per_cycle=10))
    made = plan(make_snapshot(*flood, *urgent, cloud=cloud), settings)
    assert {new.fleet: new.nodes for new in made.new_nodes} == {"a-small": 7, "b-small": 3}
    assert {u.pod.name.partition("-")[0] for u in made.unplaceable} == {"flood"}


def test_minimum_is_raised_whatever_the_limit_and_does_not_count() -> None:
    """What the config itself asks for would come in portions."""
    fleet = replace(FLEET, min_capacity=5)
    settings = make_settings(fleet, raise_limits=RaiseLimits(nodes_per_cycle=2))
    pods = alone(7)
    made = plan(make_snapshot(*pods, cloud=make_cloud(make_fleet(fleet))), settings)
    assert raises(made) == {("primary-small", "us-west-2"): 7}
    assert asked(made) == 2


def with_headroom(
    *nodes: int, pods: int = 0, raised: tuple[SavedRaise, ...] = (), **limits: Any
) -> Plan:
    """The plan for items of headroom, each of so many nodes, beside pods that wait."""
    items = tuple(Headroom(sector="primary", nodes=count) for count in nodes)
    settings = make_settings(FLEET, headroom=items, raise_limits=RaiseLimits(**limits))
    cloud = make_cloud(make_fleet(FLEET))
    return plan(make_snapshot(*alone(pods), cloud=cloud, raises=raised), settings)


def test_items_of_headroom_share_the_limit_of_one_plan() -> None:
    """Each would have the whole of it, and ten items ten times as many nodes."""
    made = with_headroom(3, 3, nodes_per_cycle=4)
    assert (asked(made), raises(made)) == (4, {("primary-small", "us-west-2"): 4})
    assert [headroom_plan.missing for headroom_plan in made.headroom] == [0, 2]
    assert "raise_limits" in made.headroom[1].because
    assert asked(with_headroom(3, 3, hourly_usd_per_cycle=Decimal("0.45"))) == 4


def test_headroom_counts_within_the_hour_as_pods_do() -> None:
    """Plan after plan would buy as much as one may, without an end."""
    limits: dict[str, Any] = {"nodes_per_hour": 6, "nodes_per_cycle": 4}
    first = with_headroom(10, **limits)
    assert (asked(first), first.raise_nodes_left) == (4, 0)
    second = with_headroom(
        10, raised=with_raises(first, outcome(first, "applied")).raises, **limits
    )
    assert (asked(second), second.raise_nodes_left) == (2, 0)
    kept = with_raises(second, outcome(second, "applied")).raises
    assert [(r.nodes, r.nano_usd_per_hour) for r in kept] == [(6, 6 * 10**8)]
    assert asked(with_headroom(10, raised=kept, **limits)) == 0
    assert codes(with_headroom(10, pods=1, raised=kept, **limits)) == {"raise-limit"}


def test_pods_come_before_headroom_within_one_limit() -> None:
    """Room for pods to come would keep those that are there waiting."""
    made = with_headroom(5, pods=3, nodes_per_hour=4)
    assert (asked(made), codes(made)) == (4, set())
    assert [headroom_plan.missing for headroom_plan in made.headroom] == [4]


def test_headroom_changes_nothing_about_what_pods_must_cost_at_least() -> None:
    """No pod asked for its nodes: they would count as money that a better purchase saves."""
    assert with_headroom(5, pods=3).cost.gap == with_headroom(pods=3).cost.gap == 0
    assert with_headroom(5).cost.gap == 0


def test_what_pods_of_an_interrupted_node_need_counts() -> None:
    """They wait as other pods do once EC2 has taken the node."""
    objects = noticed("n", fleet=FLEET), on("n", cpu="3")
    some, none = (make_settings(FLEET, raise_limits=RaiseLimits(nodes_per_hour=n)) for n in (1, 0))
    assert [asked(on_cluster(each, *objects)) for each in (some, none)] == [1, 0]


def test_reason_names_the_limit_and_the_change_that_would_do() -> None:
    """Nobody would know which of the limits to raise, or when it allows more."""
    nodes = [make_node(f"n{i}", FLEET, unschedulable=True) for i in range(8)]
    before = raised_before(5)
    cloud = make_cloud(make_fleet(FLEET, 8))
    snapshot = make_snapshot(*nodes, *alone(2), cloud=cloud, raises=(before,))
    settings = make_settings(FLEET, raise_limits=RaiseLimits(nodes_per_hour=6))
    made = plan(snapshot, settings)
    (refused,) = made.unplaceable
    detail = refused.reasons[0].detail
    assert "raise_limits.nodes_per_hour" in detail
    assert "2026-01-31T12:55:00Z" in detail
    (found,) = explain(snapshot, settings, made, pods=[str(refused.pod)]).pods
    assert found.fleets[0].code == "raise-limit"
    assert any("raise raise_limits.nodes_per_hour to 7" in change for change in found.change)


def outcome(made: Plan, kind: Any) -> list[Outcome]:
    """What became of the plan's targets."""
    targets = [a for a in made.actions if isinstance(a, SetCapacity)]
    return [Outcome(action=a, kind=kind) for a in targets]


def test_only_raises_that_ec2_took_count() -> None:
    """Refused again and again, a raise would use up the hour without a single node."""
    made = planned(3, 2)
    kept = with_raises(made, outcome(made, "applied")).raises
    assert [(r.at, r.nodes, r.nodes_before) for r in kept] == [(NOW, 3, 2)]
    assert with_raises(made, outcome(made, "failed")).raises == ()


def test_raise_whose_answer_was_lost_counts() -> None:
    """A limit on spending would not hold as long as calls time out after EC2 has taken them."""
    made = planned(3, 2)
    assert [r.nodes for r in with_raises(made, outcome(made, "unknown")).raises] == [3]


def test_raises_of_a_few_minutes_are_kept_as_one_from_the_first_on() -> None:
    """The Lease would grow with every plan, or the hour never end."""
    kept: tuple[SavedRaise, ...] = ()
    for minute in range(120):
        at = NOW + timedelta(minutes=minute)
        kept = with_raise(recent_raises(kept, at), replace(raised_before(1), at=at))
    assert (len(kept), sum(r.nodes for r in kept)) == (13, 65)
    assert recent_raises(kept, NOW + timedelta(hours=4)) == ()


def test_raise_noted_in_the_future_counts_as_now() -> None:
    """A clock that was ahead would forbid raises until it is caught up."""
    (kept,) = recent_raises([raised_before(5, -9000)], NOW)
    assert kept.at == NOW
