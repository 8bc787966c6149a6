"""Auto Scaling groups as Cluster Autoscaler's users know them, planned with fleets or alone."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.actions import (
    INTERRUPTION,
    TaintNode,
    TerminateInstance,
)
from reconciler.model.cluster import Node
from reconciler.model.fleet import Fleet
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import InstanceId
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import rfc3339
from reconciler.planner.planner import plan
from tests.builders import (
    NOW,
    ago,
    capacity_error,
    idle,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.placed import raised

SMALL = make_fleet_settings(provider="asg", auto_scaling_group="workers", scale_in=idle(60))
OTHER = make_fleet_settings(
    "large", cpu=4, provider="asg", auto_scaling_group="more", price="0.11", scale_in=idle(60)
)
FLEET = make_fleet_settings("medium", price="0.12", scale_in=idle(60))
SETTINGS = make_settings(SMALL, OTHER, FLEET)


def group(target: int = 0, **changed: Any) -> Fleet:
    """The cheapest group, as AWS shows it."""
    return replace(make_fleet(SMALL, target, id="workers"), name="workers", **changed)


def more(target: int = 0, **changed: Any) -> Fleet:
    """The other group."""
    return replace(make_fleet(OTHER, target, id="more"), name="more", **changed)


def ended(made: Plan) -> list[tuple[str | None, bool]]:
    """Nodes that end, and whether the desired capacity goes down with them."""
    found = [a for a in made.actions if isinstance(a, TerminateInstance)]
    return [(a.node, a.decrement) for a in found]


def waiting(*groups: Fleet) -> Snapshot:
    """A pod waits, and every fleet is empty."""
    return make_snapshot(make_pod(), cloud=make_cloud(*groups, make_fleet(FLEET)))


@pytest.mark.parametrize(
    ("first", "second", "bought"),
    [
        ({}, {}, "primary-small"),
        ({"launches_halted": "its process Launch is suspended"}, {}, "primary-large"),
        ({"launch_errors": (capacity_error(),)}, {}, "primary-large"),
        ({"max_size": 0}, {}, "primary-large"),
        (
            {"launch_errors": (capacity_error(),)},
            {"launches_halted": "its process Launch is suspended"},
            "primary-medium",
        ),
    ],
    ids=["cheapest", "suspended", "no-capacity", "at-its-maximum", "to-a-fleet"],
)
def test_demand_goes_to_the_cheapest_group_that_can_launch(
    first: dict[str, Any], second: dict[str, Any], bought: str
) -> None:
    """A pod would wait for capacity that does not come."""
    assert raised(plan(waiting(group(**first), more(**second)), SETTINGS)) == [(bought, 0, 1)]


@pytest.mark.parametrize("halted", ["", "its process Launch is suspended"])
def test_minimum_is_not_asked_of_a_group_that_launches_nothing(halted: str) -> None:
    """Somebody suspended it for a reason, and would find it full when the process is resumed."""
    settings = make_settings(replace(SMALL, min_capacity=2))
    made = plan(make_snapshot(cloud=make_cloud(group(launches_halted=halted))), settings)
    assert raised(made) == ([] if halted else [("primary-small", 0, 2)])


def test_minimum_above_the_size_of_the_group_asks_for_that_size() -> None:
    """AWS takes no desired capacity above MaxSize, and would be asked with every plan."""
    settings = make_settings(replace(SMALL, min_capacity=4))
    made = plan(make_snapshot(cloud=make_cloud(group(max_size=2))), settings)
    assert raised(made) == [("primary-small", 0, 2)]
    assert made.actions[0].because == "min_capacity is 4, and the group's MaxSize 2"


def drained(*names: str) -> list[Node]:
    """Nodes of the group that were emptied before."""
    return [make_node(name, SMALL, draining=True) for name in names]


def seen(nodes: list[Node], live: Fleet, **changes: dict[str, Any]) -> Snapshot:
    """Nodes of one group; `changes` are those of the instances behind them, by node."""
    instances = [make_instance(n, live, **changes.get(n.name, {})) for n in nodes]
    cloud = make_cloud(live, more(), make_fleet(FLEET), instances=instances)
    return make_snapshot(*nodes, cloud=cloud)


def test_empty_node_ends_together_with_a_unit_of_the_desired_capacity() -> None:
    """Lowered by itself, the group would end an instance of its own choice."""
    made = plan(seen([*drained("a"), make_node("b", SMALL)], group(2)), SETTINGS)
    assert ended(made) == [("a", True)]
    assert raised(made) == []


def test_protected_instance_stays() -> None:
    """Auto Scaling keeps it from scale-in because somebody said so."""
    made = plan(seen(drained("a", "b"), group(2), a={"protected": True}), SETTINGS)
    assert ended(made) == [("b", True)]


def test_group_at_its_minimum_keeps_its_nodes() -> None:
    """Auto Scaling would refuse, in each cycle."""
    assert ended(plan(seen(drained("a", "b"), group(2, min_size=1)), SETTINGS)) == [("a", True)]


def test_nothing_ends_while_an_instance_refresh_is_under_way() -> None:
    """Both would take nodes away, and neither would count the other's."""
    busy = group(2, removals_halted="an instance refresh of its group is under way")
    made = plan(seen([*drained("a"), make_node("b", SMALL)], busy), SETTINGS)
    assert ended(made) == []
    assert [a for a in made.actions if isinstance(a, TaintNode)] == []
    assert {each.code for each in made.kept if each.node == "b"} <= {"fleet-busy", "timer"}


@pytest.mark.parametrize("halted", ["", "an instance refresh of its group is under way"])
def test_dead_instances_are_left_to_an_instance_refresh(halted: str) -> None:
    """Each end would be refused in each cycle, and use up the limit of all other fleets."""
    dead = make_node("dead", SMALL, ready=False, ready_changed_at=ago(3000))
    nodes = [make_node("a", SMALL), make_node("b", SMALL), make_node("c", SMALL), dead]
    snapshot = seen(nodes, group(5, removals_halted=halted))
    assert snapshot.cloud is not None
    stuck = replace(
        snapshot.cloud.instances[0], id=InstanceId("i-stuck"), launched_at=NOW - timedelta(hours=2)
    )
    cloud = replace(snapshot.cloud, instances=(*snapshot.cloud.instances, stuck))
    made = plan(
        replace(snapshot, cloud=cloud, cluster=replace(snapshot.cluster, relists=2)), SETTINGS
    )
    ends = [a.instance for a in made.actions if isinstance(a, TerminateInstance)]
    assert sorted(ends) == ([] if halted else ["i-dead", "i-stuck"])
    assert len(made.stuck_ends) == (0 if halted else 1)
    codes = {each.code for each in made.kept if each.node == "dead"}
    assert codes == ({"fleet-busy"} if halted else codes - {"fleet-busy"})


def test_pods_do_not_wait_for_dead_instances_that_an_instance_refresh_keeps() -> None:
    """Nobody ends them meanwhile: they would be room to come for as long as it lasts, or longer."""
    nodes = [make_node(name, SMALL) for name in ("a", "b", "c")]
    pods = [make_pod(f"full-{node.name}", node=node.name, cpu="3500m") for node in nodes]
    for halted, bought in (("", []), ("an instance refresh is under way", [(4, 5)])):
        live = group(4, removals_halted=halted)
        instances = [make_instance(node, live) for node in nodes]
        launched = NOW - timedelta(hours=2)
        instances.append(replace(instances[0], id=InstanceId("i-stuck"), launched_at=launched))
        cloud = make_cloud(live, instances=instances)
        waits = make_pod(cpu="3")
        made = plan(make_snapshot(*nodes, *pods, waits, cloud=cloud, relists=2), SETTINGS)
        assert [(old, new) for _, old, new in raised(made)] == bought


def test_target_above_the_maximum_is_not_taken_back() -> None:
    """What the group launches instead goes when it is idle."""
    settings = make_settings(replace(SMALL, max_capacity=1))
    assert raised(plan(make_snapshot(cloud=make_cloud(group(3))), settings)) == []


def test_node_that_its_group_replaces_by_itself_raises_no_target() -> None:
    """The group has launched its new node beyond the target: another would come in addition."""
    recommended = {INTERRUPTION: f"rebalance-recommendation/{rfc3339(ago(300))}"}
    nodes = [make_node("old", SMALL, annotations=FrozenMap(recommended)), make_node("new", SMALL)]
    pods = [make_pod(f"on-{node.name}", node=node.name, cpu="3500m") for node in nodes]
    live = replace(group(1), rebalances_capacity=True)
    cloud = make_cloud(live, instances=[make_instance(node, live) for node in nodes])
    made = plan(make_snapshot(*nodes, *pods, cloud=cloud), make_settings(SMALL))
    assert raised(made) == []
