"""Instances that end by themselves before they are nodes (docs/failures.md)."""

from typing import Any

import pytest

from reconciler.model.actions import SetCapacity
from reconciler.model.fleet import Instance
from reconciler.model.plan import Plan
from reconciler.planner.disruption_settings import RollingUpdate
from reconciler.planner.planner import plan
from tests.builders import (
    ago,
    kept_proof,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import FLEET, full, instance
from tests.unit.planner.placed import raised

NO_KEY = "Client.InternalError: Client error on launch"
LARGE = make_fleet_settings("large", price="0.30")


def ended(seconds: float, because: str = NO_KEY, **changed: Any) -> Instance:
    """An instance that EC2 ended some time after it was launched so many seconds ago."""
    changed = {"state": "terminated", "ended_because": because} | changed
    return instance(make_fleet(FLEET), f"i-{seconds:.0f}", seconds, **changed)


def made_of(*instances: Instance, waiting: int = 1, **changed: Any) -> Plan:
    """The plan of a fleet that owes a node, and of an empty one beside it."""
    live = make_fleet(FLEET, 1)
    pods = [make_pod(f"p{number}") for number in range(waiting)]
    cloud = make_cloud(live, make_fleet(LARGE), instances=instances)
    return plan(make_snapshot(*pods, cloud=cloud, **changed), make_settings(FLEET, LARGE))


def row(made: Plan) -> int:
    """How many instances of the fleet in a row never became usable nodes."""
    return next((s.stuck_in_a_row for s in made.fleet_states if s.fleet == FLEET.name), 0)


def test_three_in_a_row_move_the_demand() -> None:
    """EC2 launched 722 an hour, no other fleet was asked, and the pods waited for ever."""
    made = made_of(ended(30), ended(20), ended(10))
    assert row(made) == 3
    assert (LARGE.name, 0, 1) in raised(made)
    (state,) = made.fleet_states
    assert state.stuck_because == f"i-10 ended before it was a node ({NO_KEY})"


def test_target_is_lowered_where_nothing_asks_for_the_fleet_any_more() -> None:
    """EC2 would launch, and lose, one after the other; there is none that could be ended."""
    live = make_fleet(FLEET)
    one_more = instance(live, "i-next", 2)
    made = made_of(ended(30), ended(20), ended(10), one_more, **kept_proof(live))
    (action,) = [a for a in made.actions if isinstance(a, SetCapacity) and a.fleet == FLEET.name]
    assert (action.to_capacity, action.policy) == (0, "stuck-instance")
    assert action.because.startswith("nothing asks for 1 node of it; 3 instances in a row never")


@pytest.mark.parametrize(
    "because",
    [
        "Client.UserInitiatedShutdown: User initiated shutdown",
        "Server.SpotInstanceTermination: Instance terminated due to spot capacity",
        "",
    ],
    ids=["somebody", "interruption", "unknown"],
)
def test_instance_that_was_taken_away_does_not_count(because: str) -> None:
    """Scale-in and interruptions would close the fleet."""
    assert row(made_of(ended(30, because))) == 0


@pytest.mark.parametrize(
    "changed",
    [{"state": "running"}, {"state": "stopped"}, {"leaving": True}],
    ids=["runs", "stopped", "its group ends it"],
)
def test_instance_that_did_not_end_by_itself_does_not_count(changed: dict[str, Any]) -> None:
    """A reason that EC2 has shown since an earlier stop says nothing."""
    assert row(made_of(ended(30, **changed))) == 0


def test_instance_that_may_have_been_a_node_does_not_count() -> None:
    """A machine that shut down after a month would be taken for one that failed at its launch."""
    assert row(made_of(ended(3601))) == 0
    failed = ended(30)
    node = make_node("n", FLEET, instance_id=failed.id, ready=False, ready_changed_at=ago(5))
    live = make_fleet(FLEET, 1)
    snapshot = make_snapshot(node, cloud=make_cloud(live, instances=[failed]))
    assert row(plan(snapshot, make_settings(FLEET))) == 0


def test_rolling_update_halts() -> None:
    """It was in `canary` for 45 minutes and 49 launches."""
    live = make_fleet(FLEET, 2, launch_template_version="8")
    old = make_node("old", FLEET)
    running = make_instance(old, live, launch_template_version="7")
    failed = ended(30, launch_template_version="8")
    cloud = make_cloud(live, instances=[running, failed])
    settings = make_settings(FLEET, rolling_update=RollingUpdate())
    made = plan(make_snapshot(old, full("old"), cloud=cloud), settings)
    (update,) = made.updates
    assert update.state == "halted"
    assert update.because == f"instance i-30 ended before it was a node ({NO_KEY})"
