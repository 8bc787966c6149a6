"""Pods in, nodes out: the main job of the program, and its restart in the middle."""

import signal
from collections.abc import Callable

import pytest

from reconciler.model.actions import DRAINING_TAINT
from tests.sandbox.capacity.world import Program, World

pytestmark = pytest.mark.sandbox


def test_pending_pods_become_nodes_and_idle_nodes_go_again(
    interpreted: Callable[..., Program], world: World
) -> None:
    """If any link of the chain broke, pods would wait for ever or nodes would cost for ever."""
    running = interpreted()
    running.until_ready()
    world.add_pods([f"job-{n}" for n in range(6)], cpu="1500m", seconds=3)
    world.until_pods(lambda phases: set(phases.values()) == {"Succeeded"})
    raised = running.until_event(
        "action_applied", lambda e: e["action"] == "set-capacity" and e["policy"] == "scale-up"
    )
    assert raised["before"] == 0
    assert raised["reason"]
    world.until_idle()
    kinds = [event["action"] for event in running.events("action_applied")]
    assert kinds.index("taint-node") < kinds.index("terminate-instance")
    status, text = running.get("/metrics")
    assert status == 200
    assert 'policy="scale-in"' in text
    assert "fleet_reconciler_reaction_seconds_count 6.0" in text
    assert running.end()[0] == 0


def test_killed_in_the_middle_converges_after_restart(
    program: Callable[..., Program], world: World
) -> None:
    """State that lived only in the process would strand capacity when its node goes."""
    first = program()
    first.until_ready()
    world.add_pods([f"late-{n}" for n in range(4)], cpu="1500m", seconds=3)
    first.until_event("action_applied", lambda e: e["action"] == "set-capacity")
    first.end(signal.SIGKILL)
    second = program()
    world.until_pods(lambda phases: set(phases.values()) == {"Succeeded"})
    second.until_event(
        "action_applied",
        lambda e: e["action"] == "taint-node" and DRAINING_TAINT in e["after"],
    )
    second.end(signal.SIGKILL)
    third = program()
    world.until_idle()
    assert third.end()[0] == 0
