"""Instances that go without being asked, and an API server that forgets everything."""

from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from reconciler.model.actions import UNNEEDED_TAINT
from reconciler.sandbox.stack import Sandbox
from tests.sandbox.capacity.world import Program, Start, World
from tests.sandbox.faults.conftest import CONFIG, Put, empty, scale
from tests.waiting import until

pytestmark = pytest.mark.sandbox

OURS = {"user_agent": "fleet-reconciler"}
REPLICAS = 3


def deploy(world: World, replicas: int) -> None:
    """Pods that come back wherever there is room."""
    make: Any = client.AppsV1Api
    container = {
        "name": "main",
        "image": "web:1",
        "resources": {"requests": {"cpu": "3", "memory": "1Gi"}},
    }
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template,
    }
    make(world.api).create_namespaced_deployment(
        "default", {"metadata": {"name": "web"}, "spec": spec}
    )


def undeploy(world: World) -> None:
    """End them."""
    make: Any = client.AppsV1Api
    make(world.api).delete_namespaced_deployment("web", "default")


def until_running(world: World, replicas: int) -> None:
    """Wait until so many pods run on nodes that are there."""

    def ready() -> Any:
        nodes = {node.metadata.name for node in world.nodes()}
        pods = world.core.list_namespaced_pod("default").items
        return (
            sum(p.status.phase == "Running" and p.spec.node_name in nodes for p in pods) == replicas
        )

    until(lambda: f"{len(world.nodes())} nodes, targets {world.targets()}", ready)


def living(sandbox: Sandbox) -> list[Any]:
    """Fleet instances that run."""
    return [each for each in sandbox.control.instances()[1] if each["state"] == "running"]


def noticed(sandbox: Sandbox) -> set[str]:
    """Fleet instances that were told of their interruption, whatever became of them."""
    return {
        each["instance_id"] for each in sandbox.control.instances()[1] if each["interrupted_at"]
    }


def test_interrupted_and_dead_instances_are_replaced(
    program: Start, world: World, sandbox: Sandbox, put: Put
) -> None:
    """Spot capacity goes every day: pods must run again, and no target may be left too low."""
    running = program()
    deploy(world, REPLICAS)
    until_running(world, REPLICAS)
    before = noticed(sandbox)
    put(aws={"interruptions": [{"count": 1, "notice": "1s"}]})
    taken = until("a notice of interruption", lambda: noticed(sandbox) - before)
    until(
        "the interrupted instance ends",
        lambda: not taken & {e["instance_id"] for e in living(sandbox)},
    )
    until_running(world, REPLICAS)
    victim = living(sandbox)[0]["instance_id"]
    gone = {"fault": "error", "code": "UnauthorizedOperation", "actions": "TerminateInstances"}
    put(aws={"calls": [{**gone, "vanished": True}]})
    sandbox.control.terminate([victim], "failure")
    until(
        "the dead instance is gone",
        lambda: victim not in {e["instance_id"] for e in living(sandbox)},
    )
    until_running(world, REPLICAS)
    undeploy(world)
    world.until_idle()
    assert running.events("reconciler_crashed") == []


def forget_once(resource: str) -> dict[str, Any]:
    """The list after the first one is empty: the watch breaks, and cannot go on."""
    about = {"resources": resource, **OURS}
    return {
        "requests": [
            {"fault": "dropped-watch", "lasts": "2s", "count": 1, **about},
            {"fault": "expired", "verbs": "watch", "count": 1, **about},
            {"fault": "empty-list", "after": 1, "count": 1, **about},
        ]
    }


def removed(running: Program) -> list[Any]:
    """What the program did to nodes, other than noting the time or asking pods to go elsewhere."""
    return [
        e
        for e in running.events("action_applied")
        if e["action"] != "annotate-node" and UNNEEDED_TAINT not in f"{e['before']} {e['after']}"
    ]


def test_empty_list_of_pods_removes_no_node(
    program: Start, world: World, sandbox: Sandbox, put: Put
) -> None:
    """An API server that answers with nothing must not cost a cluster its nodes."""
    deploy(world, 6)
    scale(world, "small", 6)
    until_running(world, 6)
    nodes = {node.metadata.name for node in world.nodes()}
    put(kubernetes=forget_once("pods"))
    running = program()
    running.until_event("node_held", lambda e: e["code"] == "safety-stop")
    seen = {"verb": "list", "resource": "pods", **OURS}
    until(
        "a second list",
        lambda: len(sandbox.kube_control.calls(**seen)) >= 3,
        process=running.process,
    )
    until_running(world, 6)
    assert {node.metadata.name for node in world.nodes()} == nodes
    assert sandbox.control.calls(action="TerminateInstances") == []
    assert removed(running) == []
    undeploy(world)
    running.end()
    empty(world)


@pytest.mark.nightly
def test_empty_list_of_nodes_ends_no_instance_and_buys_none(
    program: Start, world: World, sandbox: Sandbox, put: Put, config_file: Path
) -> None:
    """Instances whose nodes are not listed look as if they had never joined."""
    config_file.write_text(CONFIG.replace("instance_init_time: 8", "instance_init_time: 2"))
    deploy(world, 6)
    scale(world, "small", 6)
    until_running(world, 6)
    put(kubernetes=forget_once("nodes"))
    running = program()
    blind = running.until_event("cycle_ended", lambda e: e["nodes_joined"] == 0)
    running.until_event("cycle_ended", lambda e: e["cycle"] >= blind["cycle"] + 6)
    assert sandbox.control.calls(action="TerminateInstances") == []
    assert removed(running) == []
    assert len(world.nodes()) == 6
    undeploy(world)
    running.end()
    empty(world)
