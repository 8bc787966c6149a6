"""Instances that will never be usable nodes are no capacity to wait for."""

from typing import Any

import pytest

from reconciler.model.actions import SetCapacity
from reconciler.model.cluster import Taint, Toleration
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedFleetState
from reconciler.planner.disruption_settings import DisruptionBudget
from reconciler.planner.planner import plan
from tests.builders import (
    HOME,
    ago,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import drained, full, on

FLEET = make_fleet_settings()
AGENT = Taint(key="node.cilium.io/agent-not-ready", value="", effect="NoSchedule")


def of_stuck_agent(fleet: Any = FLEET, *, draining: bool = False, **settings: Any) -> Plan:
    """One pod that waits, a full node, and one whose agent never took its start-up taint off.

    EC2 holds both instances that the target asks for: nothing is launching.
    """
    made = drained if draining else make_node
    stuck = made("b", fleet, taints=(AGENT,), created_at=ago(3600), ready_changed_at=ago(3580))
    used = make_node("a", fleet)
    cloud = make_cloud_of([used, stuck], make_fleet(fleet, 2))
    snapshot = make_snapshot(used, full("a"), stuck, make_pod(cpu=2), cloud=cloud, relists=2)
    return plan(snapshot, make_settings(fleet, **settings))


def raised(made: Plan) -> list[tuple[int, int]]:
    """How far targets are raised."""
    sets = [a for a in made.actions if isinstance(a, SetCapacity)]
    return [(a.from_capacity, a.to_capacity) for a in sets]


def test_pod_does_not_wait_for_a_node_whose_agent_never_starts() -> None:
    """EC2 owes nothing and replaces nothing, yet the plan calls the node launching capacity."""
    made = of_stuck_agent()
    assert [p.launching for p in made.placements] == [None], made.placements
    assert raised(made) == [(2, 3)]


@pytest.mark.parametrize(
    ("fleet", "settings"),
    [
        (make_fleet_settings(min_capacity=2), {}),
        (FLEET, {"disruption_budgets": (DisruptionBudget(nodes=0),)}),
    ],
    ids=["minimum", "budget"],
)
def test_pod_gets_a_node_where_something_keeps_such_a_node(
    fleet: Any, settings: dict[str, Any]
) -> None:
    """Nothing ends the node then, so nothing is ever launched in its place."""
    assert raised(of_stuck_agent(fleet, **settings)) == [(2, 3)]


def test_plan_places_no_pod_on_capacity_that_it_gives_up() -> None:
    """The same plan lowers the target with the node, and says that the pod's node is launching."""
    made = of_stuck_agent(draining=True)
    (fleet,) = made.fleets
    on_launching = [p for p in made.placements if p.launching is not None]
    assert len(on_launching) <= fleet.target - fleet.joined


def test_pod_does_not_wait_for_a_dead_node_that_a_pod_keeps() -> None:
    """A protected pod that tolerates everything was bound to a node that was never Ready."""
    dead = make_node("b", FLEET, ready=False, created_at=ago(3600), ready_changed_at=ago(3600))
    protected = on(
        "b",
        tolerations=(Toleration(operator="Exists"),),
        annotations=FrozenMap({"fleet-reconciler.io/do-not-disrupt": "true"}),
    )
    used = make_node("a", FLEET)
    cloud = make_cloud_of([used, dead], make_fleet(FLEET, 2))
    snapshot = make_snapshot(
        used, full("a"), dead, protected, make_pod(cpu=2), cloud=cloud, relists=2
    )
    made = plan(snapshot, make_settings(FLEET))
    assert [each.code for each in made.kept if each.node == "b"] == ["may-still-run"]
    assert raised(made) == [(2, 3)]


def test_target_of_a_failing_fleet_does_not_fall_below_a_node_that_a_person_keeps() -> None:
    """It was lowered by one plan and raised by the next, for as long as the node stayed."""
    kept = make_node(
        "b",
        FLEET,
        ready=False,
        created_at=ago(3600),
        ready_changed_at=ago(3600),
        annotations={"fleet-reconciler.io/do-not-disrupt": "true"},
    )
    state = SavedFleetState(
        fleet=FLEET.name,
        region=HOME,
        unavailable_until=ago(-600),
        failures=1,
        stuck_in_a_row=4,
        last_stuck_launched_at=ago(3600),
    )
    cloud = make_cloud_of([kept], make_fleet(FLEET, 1))
    snapshot = make_snapshot(kept, cloud=cloud, relists=2, fleet_states=(state,))
    made = plan(snapshot, make_settings(FLEET))
    assert [fleet.unavailable_kind for fleet in made.fleets] == ["never-joined"]
    assert raised(made) == []
