"""Nodes between Ready and open to pods: their start-up taints must not buy a second node."""

import pytest

from reconciler.model.actions import SetCapacity
from reconciler.model.cluster import Taint
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)


def planned(*keys: str, age: float = 40) -> Plan:
    """One pod, and one node of that age with these taints, which the fleet's target asked for."""
    fleet = make_fleet_settings()
    taints = tuple(Taint(key=key, effect="NoSchedule") for key in keys)
    node = make_node("n", fleet, taints=taints, created_at=ago(age), ready_changed_at=ago(age - 30))
    cloud = make_cloud(make_fleet(fleet, 1))
    return plan(make_snapshot(node, make_pod(), cloud=cloud), make_settings(fleet))


@pytest.mark.parametrize(
    "key",
    [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/network-unavailable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "ebs.csi.aws.com/agent-not-ready",
        "node.cilium.io/agent-not-ready",
    ],
)
def test_ready_node_whose_start_up_taint_is_still_there_is_on_its_way(key: str) -> None:
    """Every scale-up would buy twice: the taint outlives Ready by a second or more."""
    made = planned(key)
    assert not [a for a in made.actions if isinstance(a, SetCapacity)]
    assert (made.fleets[0].joined, made.fleets[0].launching, made.fleets[0].target) == (0, 1, 1)
    assert made.placements[0].launching == 0


@pytest.mark.parametrize(
    ("keys", "age"),
    [(("node.kubernetes.io/not-ready",), 3600), (("dedicated",), 40)],
)
def test_other_taints_and_old_nodes_leave_the_pod_to_a_new_node(
    keys: tuple[str, ...], age: float
) -> None:
    """A taint that stays would keep its pods waiting for a node that never opens."""
    made = planned(*keys, age=age)
    assert made.fleets[0].target == 2
