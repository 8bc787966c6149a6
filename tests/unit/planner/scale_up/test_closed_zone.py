"""Nodes whose zone EC2 chose, in a zone that a spread closes to the pods that wait for them."""

from dataclasses import replace

import pytest

from reconciler.model.cluster import Node
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedDemandState
from reconciler.planner.planner import plan
from tests.builders import (
    ZONE,
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pods,
    make_settings,
    make_snapshot,
    spread,
)
from tests.unit.planner.placed import bought

CLOSED, OPEN = "us-west-2a", "us-west-2b"
FLEET = make_fleet_settings(zones=(CLOSED, OPEN))
OLD = [
    make_node(f"old-{n}", FLEET, zone=zone, created_at=ago(7200))
    for n, zone in enumerate((CLOSED, CLOSED, OPEN))
]
*REPLICAS, WAITING = make_pods(
    4, "s", sector="primary", labels={"app": "s"}, cpu="3", topology_spread=(spread(ZONE, app="s"),)
)
RUNNING = [
    replace(pod, node_name=node.name, phase="Running", ready=True)
    for pod, node in zip(REPLICAS, OLD, strict=True)
]


def planned(*joined: Node, demands: tuple[SavedDemandState, ...] = ()) -> Plan:
    """The plan for the replica that waits, with these further nodes."""
    nodes = [*OLD, *joined]
    snapshot = make_snapshot(
        *nodes, *RUNNING, WAITING, cloud=make_cloud(make_fleet(FLEET, len(nodes))), demands=demands
    )
    return plan(snapshot, make_settings(FLEET))


def joined(name: str, zone: str, seconds: float) -> Node:
    """A node that was bought for the replica and has been Ready for so long."""
    return make_node(
        name, FLEET, zone=zone, created_at=ago(seconds + 30), ready_changed_at=ago(seconds)
    )


def purchase(strikes: int = 0) -> SavedDemandState:
    """The purchase for the replica, two minutes ago."""
    (state,) = planned().demands
    return replace(state, bought_at=ago(120), strikes=strikes)


def test_another_node_is_asked_for_at_once() -> None:
    """Kube-scheduler was given half a minute to bind a pod that its spread keeps off the node."""
    made = planned(joined("new", CLOSED, 2), demands=(purchase(),))
    assert (bought(made), [state.strikes for state in made.demands]) == (1, [1])


def test_node_in_the_open_zone_takes_the_replica() -> None:
    """Nothing more is bought."""
    made = planned(joined("new", OPEN, 2), demands=(purchase(),))
    assert bought(made) == 0
    assert [placement.node for placement in made.placements] == ["new"]


@pytest.mark.parametrize(("strikes", "count"), [(4, 1), (5, 0)])
def test_six_nodes_in_a_closed_zone_are_enough(strikes: int, count: int) -> None:
    """Of three equally likely zones one of six nodes is in the right one nine times out of ten."""
    made = planned(joined("new", CLOSED, 2), demands=(purchase(strikes),))
    assert bought(made) == count
