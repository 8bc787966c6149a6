"""What a raised target says of itself: how many pods ask, and for how many of the nodes."""

from dataclasses import replace

from reconciler.model.actions import SetCapacity
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pods,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.interrupted_nodes import noticed
from tests.unit.planner.disruption.scale_in.scene import on
from tests.unit.planner.disruption.scale_in.scene import planned as on_cluster

FLEET = make_fleet_settings()


def only(made: Plan) -> SetCapacity:
    """The only raise."""
    (found,) = (action for action in made.actions if isinstance(action, SetCapacity))
    return found


def test_nodes_of_the_minimum_are_not_counted_to_the_pods() -> None:
    """One pod was said to need two nodes, and of the minimum nothing was said."""
    node = make_node("n", FLEET, unschedulable=True)
    fleet = replace(FLEET, min_capacity=2)
    pods = make_pods(2, cpu="3")
    raised = only(
        plan(
            make_snapshot(node, *pods, cloud=make_cloud(make_fleet(fleet, 1))), make_settings(fleet)
        )
    )
    assert (raised.from_capacity, raised.to_capacity, raised.policy) == (1, 3, "scale-up")
    assert raised.because == "1 pending pod needs 1 more node; min_capacity is 2"


def test_pods_of_interrupted_nodes_are_not_called_pending() -> None:
    """Where two pods waited, three were said to."""
    raised = only(on_cluster(FLEET, noticed("n"), on("n", cpu="3"), *make_pods(2, "more", cpu="3")))
    assert raised.because == ("2 pending pods and 1 pod of interrupted nodes need 3 more nodes")
