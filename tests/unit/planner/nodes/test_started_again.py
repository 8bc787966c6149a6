"""Nodes whose instance was stopped and starts again: they are on their way, not broken."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import TerminateInstance
from reconciler.model.cluster import Taint
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pods,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.placed import places, raised

FLEET = make_fleet_settings(cpu=4)
UNREACHABLE = Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule")
STOPPED = make_node(
    "back",
    FLEET,
    ready=False,
    taints=(UNREACHABLE,),
    created_at=ago(7 * 3600),
    ready_changed_at=ago(6 * 3600),
)
"""It joined seven hours ago, and its instance was stopped an hour later."""


def planned(started_seconds_ago: float, *, waiting: int = 1, **changed: Any) -> Plan:
    """The plan while the node's instance runs since then, beside a full node of the fleet."""
    live = make_fleet(FLEET, 2)
    other = make_node("other", FLEET)
    started = make_instance(STOPPED, live, launched_at=ago(started_seconds_ago), **changed)
    cloud = make_cloud(live, instances=(make_instance(other, live), started))
    full, *waits = make_pods(waiting + 1, cpu=4)
    runs = replace(full, node_name=other.name, phase="Running")
    nodes = (other, STOPPED)
    snapshot = make_snapshot(*nodes, runs, *waits, cloud=cloud, relists=2)
    return plan(snapshot, make_settings(FLEET))


def ends(made: Plan) -> list[str]:
    """Why instances are ended."""
    return [action.because for action in made.actions if isinstance(action, TerminateInstance)]


@pytest.mark.parametrize("state", ["pending", "running"])
def test_node_of_an_instance_that_starts_again_is_on_its_way(state: str) -> None:
    """Out of a warm pool, or after a spot stop: it was ended in the second in which it started."""
    made = planned(30, state=state)
    assert ends(made) == []
    assert [(f.joined, f.launching) for f in made.fleets] == [(1, 1)]
    assert raised(made) == []
    assert places(made)["pod-1"] == ("primary-small", 0, None)


def test_node_that_does_not_come_back_is_replaced_and_its_time_counts_from_the_start() -> None:
    """It would hold its part of the target for ever."""
    (why,) = ends(planned(20 * 60))
    assert why.startswith("not Ready since its start 20m ago while its instance is running")
