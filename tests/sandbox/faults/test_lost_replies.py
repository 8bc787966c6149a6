"""Replies lost during scale-in: a target that was lowered already is not lowered again."""

import pytest

from reconciler.sandbox.stack import Sandbox
from tests.sandbox.capacity.world import Start, World
from tests.sandbox.faults.conftest import Put, unshown
from tests.waiting import until

pytestmark = pytest.mark.sandbox

LOST = [
    {"fault": "lost-reply", "actions": "ModifyFleet", "count": 2},
    {"fault": "no-answer", "actions": "TerminateInstances", "count": 1},
    {"fault": "lost-reply", "actions": "TerminateInstances", "count": 1},
]


def asked_targets(sandbox: Sandbox) -> dict[str, list[int]]:
    """The targets that EC2 was asked for, by fleet, in order."""
    asked: dict[str, list[int]] = {}
    for call in sandbox.control.calls(action="ModifyFleet"):
        parameters = call["parameters"]
        total = int(parameters["TargetCapacitySpecification.TotalTargetCapacity"])
        asked.setdefault(parameters["FleetId"], []).append(total)
    return asked


def test_target_never_falls_below_the_nodes_in_use(
    program: Start, world: World, sandbox: Sandbox, put: Put
) -> None:
    """Lowered twice for one node, a fleet would not replace the next one that it loses."""
    running = program()
    world.add_pods(["keep-1", "keep-2"], cpu="3")
    short = [f"short-{n}" for n in range(5)]
    world.add_pods(short, cpu="3")
    world.until_pods(lambda phases: list(phases.values()).count("Running") == 7)
    sandbox.control.forget_calls()
    put(aws={"calls": LOST})
    for name in short:
        world.core.delete_namespaced_pod(name, "default", grace_period_seconds=0)

    def in_use() -> set[str]:
        pods = world.core.list_namespaced_pod("default").items
        return {pod.spec.node_name for pod in pods if pod.status.phase == "Running"}

    def settled() -> bool:
        nodes = {node.metadata.name for node in world.nodes()}
        return nodes == in_use() and sum(world.targets().values()) == len(nodes)

    until(
        lambda: f"{world.targets()}, {len(world.nodes())} nodes", settled, process=running.process
    )
    final = {
        fleet["FleetId"]: fleet["TargetCapacitySpecification"]["TotalTargetCapacity"]
        for fleet in world.ec2.describe_fleets()["Fleets"]
    }
    below = {f: t for f, t in asked_targets(sandbox).items() if min(t) < final[f]}
    assert below == {}, final
    assert unshown(sandbox) == []
    world.remove_pods()
    world.until_idle()
