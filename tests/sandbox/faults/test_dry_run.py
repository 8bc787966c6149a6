"""`--dry-run` through the same scenarios: not one changing call reaches either API server."""

from typing import Any

import pytest

from reconciler.sandbox.stack import Sandbox
from tests.sandbox.capacity.world import Start, World
from tests.sandbox.faults.conftest import Put, empty, scale, unshown

pytestmark = pytest.mark.sandbox

OURS = "fleet-reconciler"
ENDING = {"taint-node", "terminate-instance"}
FAULTS: dict[str, Any] = {
    "seed": 9,
    "aws": {
        "calls": [
            {"fault": "error", "code": "RequestLimitExceeded", "probability": 0.2},
            {"fault": "no-answer", "actions": "DescribeFleets", "after": 2, "count": 1},
        ],
    },
    "kubernetes": {
        "requests": [
            {"fault": "dropped-watch", "resources": "pods", "events": 2, "count": 2},
            {"fault": "internal-error", "verbs": "list", "count": 1, "user_agent": OURS},
        ]
    },
}


def changing(sandbox: Sandbox) -> list[Any]:
    """Changing calls of the program that were counted at the wire, at both servers."""
    return [
        *sandbox.control.calls(mutating="true", user_agent=OURS),
        *sandbox.kube_control.calls(mutating="true", user_agent=OURS),
    ]


def test_dry_run_sends_no_changing_call_through_a_whole_life_of_nodes(
    program: Start, world: World, sandbox: Sandbox, put: Put
) -> None:
    """Whoever tries it on a live cluster must lose nothing, whatever that cluster goes through."""
    put(**FAULTS)
    growing = program("--dry-run")
    world.add_pods([f"wish-{n}" for n in range(4)], cpu="1500m", seconds=1)
    growing.until_event("action_planned", lambda e: e["action"] == "set-capacity")
    growing.until_event("cycle_ended", lambda e: e["cycle"] >= 6)
    growing.end()
    assert changing(sandbox) == []
    assert unshown(sandbox) == []
    sandbox.control.clear_faults()
    sandbox.kube_control.clear_faults()
    scale(world, "medium", 3)
    world.until_pods(lambda phases: set(phases.values()) == {"Succeeded"})
    shrinking = program("--dry-run")
    shrinking.until_event("action_planned", lambda e: e["action"] in ENDING)
    shrinking.until_event("cycle_ended", lambda e: e["cycle"] >= 3)
    shrinking.end()
    assert changing(sandbox) == []
    read = sandbox.kube_control.call_counts(user_agent=OURS)
    assert sandbox.control.calls(user_agent=OURS)
    assert {name.split()[0] for name in read} <= {"list", "watch", "get"}
    assert len(world.nodes()) == 3
    empty(world)
