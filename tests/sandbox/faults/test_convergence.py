"""The real program through each kind of fault: pods run to their end, and nothing stays behind."""

from typing import Any

import pytest

from reconciler.sandbox.stack import Sandbox
from tests.sandbox.capacity.world import Start, World
from tests.sandbox.faults.conftest import Put, unshown

pytestmark = pytest.mark.sandbox

OURS = {"user_agent": "fleet-reconciler"}
EC2_ERRORS: dict[str, Any] = {
    "seed": 1,
    "aws": {
        "calls": [
            {"fault": "error", "code": "RequestLimitExceeded", "probability": 0.2, **OURS},
            {"fault": "error", "code": "Unavailable", "actions": "ModifyFleet", "count": 2},
            {"fault": "error", "code": "InternalError", "actions": "ModifyFleet", "count": 2},
            {"fault": "error", "code": "InternalError", "actions": "DescribeInstances", "count": 3},
            {
                "fault": "error",
                "code": "InternalError",
                "actions": "TerminateInstances",
                "count": 1,
            },
        ]
    },
}
EC2_LOST: dict[str, Any] = {
    "aws": {
        "calls": [
            {"fault": "lost-reply", "actions": "ModifyFleet", "count": 1},
            {"fault": "no-answer", "actions": "ModifyFleet", "count": 1},
            {"fault": "no-answer", "actions": "TerminateInstances", "count": 1},
            {"fault": "lost-reply", "actions": "TerminateInstances", "count": 1},
            {"fault": "no-answer", "actions": ["DescribeFleets", "DescribeInstances"], "count": 4},
        ]
    }
}
EC2_BUSY: dict[str, Any] = {
    "aws": {
        "throttling": {
            "requests": {
                "ModifyFleet": {"capacity": 1, "per_second": 0.5},
                "TerminateInstances": {"capacity": 1, "per_second": 0.5},
            }
        },
        "modifying": [{"lasts": "3s", "refuse": True, "count": 2}],
        "calls": [
            {"fault": "stale", "actions": ["DescribeFleets", "DescribeInstances"], "age": "2s"},
        ],
    }
}
LAUNCHES: dict[str, Any] = {
    "seed": 4,
    "aws": {
        "launches": [
            {"joins": False, "count": 1},
            {"delay": {"min": 0.1, "max": 2}},
        ]
    },
}
KUBE_ERRORS: dict[str, Any] = {
    "seed": 2,
    "kubernetes": {
        "requests": [
            {"fault": "conflict", "verbs": "patch", "resources": "nodes", "count": 3, **OURS},
            {"fault": "too-many-requests", "verbs": ["list", "patch"], "count": 4, **OURS},
            {"fault": "internal-error", "verbs": ["list", "patch", "delete"], "count": 4, **OURS},
            {"fault": "lost-reply", "verbs": "patch", "resources": "nodes", "count": 2, **OURS},
            {"fault": "no-answer", "verbs": ["get", "patch"], "count": 2, **OURS},
            {"fault": "service-unavailable", "verbs": "watch", "count": 3, **OURS},
        ]
    },
}
KUBE_WATCHES: dict[str, Any] = {
    "seed": 3,
    "kubernetes": {
        "requests": [
            {"fault": "expired", "verbs": "watch", "count": 8, **OURS},
            {"fault": "dropped-watch", "resources": ["pods", "nodes"], "events": 3, "count": 6}
            | OURS,
            {"fault": "slow-watch", "delay": 0.3, **OURS},
        ]
    },
}


def together(*scripts: dict[str, Any]) -> dict[str, Any]:
    """Several scripts in force at once; no key of theirs may be the same."""
    aws: dict[str, Any] = {}
    kubernetes: dict[str, Any] = {}
    for script in scripts:
        assert not (aws.keys() & script.get("aws", {}).keys())
        aws |= script.get("aws", {})
        kubernetes |= script.get("kubernetes", {})
    seed = next(s["seed"] for s in scripts if "seed" in s)
    return {"seed": seed, "aws": aws, "kubernetes": kubernetes}


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(together(EC2_ERRORS, KUBE_ERRORS), id="errors", marks=pytest.mark.nightly),
        pytest.param(together(EC2_LOST, KUBE_WATCHES), id="lost-and-broken"),
        pytest.param(
            together(EC2_BUSY, LAUNCHES), id="busy-stale-and-slow", marks=pytest.mark.nightly
        ),
    ],
)
def test_program_converges_through_faults(
    program: Start, world: World, sandbox: Sandbox, put: Put, script: dict[str, Any]
) -> None:
    """Whatever the APIs do, pods must get their nodes, and the nodes must go again."""
    put(**script)
    running = program()
    running.until_ready()
    world.add_pods([f"job-{n}" for n in range(6)], cpu="1500m", seconds=2)
    world.until_pods(lambda phases: set(phases.values()) == {"Succeeded"})
    world.until_idle()
    assert unshown(sandbox) == []
    assert running.process.poll() is None
    assert running.events("reconciler_crashed") == []
