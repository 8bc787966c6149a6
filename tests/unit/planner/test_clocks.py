"""What a clock that is wrong may lead to: nothing that cannot be taken back."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.model.actions import (
    DRAIN_STARTED,
    DeleteNode,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
)
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.ports.clock import RemoteClock
from tests.builders import (
    NOW,
    ago,
    kept_proof,
    make_cloud,
    make_fleet,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import FLEET, drained, full, instance, unneeded

HOUR = timedelta(hours=1)
ENDINGS = (TerminateInstance, DeleteNode, EvictPod, TaintNode)


def with_clocks(
    ec2: timedelta | None, kubernetes: timedelta | None = None, *, age: float = 60, **changed: Any
) -> Plan:
    """The plan when the servers' clocks differ from ours by so much.

    `age` is that of the instance that is no node, by EC2's clock.
    """
    theirs = NOW + (ec2 or timedelta(0))
    live = make_fleet(FLEET, 4)
    nodes = [
        make_node("full", FLEET, created_at=ago(90_000)),
        unneeded("idle", FLEET),
        drained("going", FLEET),
        make_node("silent", FLEET, ready=False, ready_changed_at=ago(9000)),
    ]
    launched = theirs - timedelta(seconds=age)
    new = replace(instance(live, "i-new", 0), launched_at=launched)
    cloud = make_cloud(
        live,
        instances=[new, *(make_instance(n, live, launched_at=ago(90_000)) for n in nodes)],
        server_time=None if ec2 is None else theirs,
    )
    snapshot = make_snapshot(
        *nodes,
        full("full"),
        *changed.pop("objects", ()),
        cloud=cloud,
        server_time=None if kubernetes is None else NOW + kubernetes,
        **kept_proof(live),
    )
    return plan(snapshot, make_settings(FLEET))


def endings(made: Plan) -> list[str]:
    """What the plan ends, drains or deletes."""
    return [type(a).__name__ for a in made.actions if isinstance(a, ENDINGS)]


def test_clock_ahead_of_the_others_ends_nothing() -> None:
    """An instance of one minute counts as stuck when our clock is an hour ahead."""
    made = with_clocks(-HOUR)
    assert endings(made) == []
    assert [(h.instance, h.code) for h in made.held] == [("i-new", "clock-skew")]
    assert made.clock_skew_seconds == 3600
    assert {k.code for k in made.kept} == {"clock-skew"}
    assert DRAIN_STARTED not in {getattr(a, "key", "") for a in made.actions}
    assert [m.stuck_in_a_row for m in made.fleet_states] == [0]


def test_clock_behind_the_others_ends_nothing() -> None:
    """Our timers on nodes and the dates of the API server would not go together."""
    made = with_clocks(HOUR)
    assert (endings(made), made.clock_skew_seconds) == ([], -3600)


def test_clock_of_the_api_server_counts_as_well() -> None:
    """EC2 may be wrong with us: both run in one zone, or one of them is in a sandbox."""
    made = with_clocks(timedelta(0), -HOUR)
    assert (endings(made), made.clock_skew_seconds) == ([], 3600)


def test_launch_in_our_future_shows_that_we_are_behind() -> None:
    """Answers without a date, and files, would hide it."""
    made = with_clocks(None, age=-3600)
    assert (endings(made), made.clock_skew_seconds) == ([], -3600)


def test_clocks_that_agree_end_what_is_due() -> None:
    """The tests of this file would show nothing."""
    made = with_clocks(timedelta(0), timedelta(0))
    assert made.held == ()
    assert {"TerminateInstance", "TaintNode"} <= set(endings(made))


@pytest.mark.parametrize(("age", "ends"), [(870, False), (930, True)])
def test_small_difference_counts_ages_by_the_earlier_clock(age: float, ends: bool) -> None:
    """A minute ahead would take a minute from every boot."""
    made = with_clocks(timedelta(seconds=-60), age=age)
    found = [a.instance for a in made.actions if isinstance(a, TerminateInstance)]
    assert ("i-new" in found) is ends


def test_wrong_clock_holds_up_no_purchase() -> None:
    """Pods would wait until somebody sets the clock."""
    waiting = make_pod(cpu="3500m", node_selector={"size": FLEET.size})
    more = [make_pod(f"w{n}", spec=waiting.spec) for n in range(4)]
    made = with_clocks(-HOUR, objects=more)
    assert any(isinstance(a, SetCapacity) for a in made.actions)


def test_remote_clock_goes_on_between_answers() -> None:
    """A clock that jumps after the last answer would be believed until the next one."""
    seconds = [100.0]
    clock = RemoteClock(lambda: seconds[0])
    assert clock.now() is None
    clock.tell(datetime(2026, 1, 31, 12, 0, tzinfo=NOW.tzinfo))
    seconds[0] += 90
    assert clock.now() == NOW + timedelta(seconds=90)
