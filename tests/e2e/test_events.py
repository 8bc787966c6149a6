"""Kubernetes Events on a real API server, as `kubectl describe` shows them."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.kubernetes import Transport
from reconciler.records.kubernetes import LEASE_NAME
from reconciler.sandbox.control_plane.plane import ControlPlane
from tests.e2e.sandbox import OnRealCluster
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import CONFIG, Program, World
from tests.waiting import until

EVENTS = "/api/v1/events"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE_NAME}"


@pytest.fixture
def world(plane: ControlPlane, api: Transport) -> Iterator[World]:
    """Two empty fleets, and no Events of earlier tests."""
    api.expect("DELETE", "/api/v1/namespaces/default/events")
    with OnRealCluster(plane) as sandbox:
        for size in ("small", "medium"):
            create_fleet(sandbox.aws_url, size)
        seen = World(sandbox)
        yield seen
        seen.remove_pods()
        api.request("DELETE", LEASE)
        seen.close()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The sector config of the tests."""
    file = tmp_path / "sectors.yaml"
    file.write_text(CONFIG)
    return file


def ours(api: Transport) -> list[dict[str, Any]]:
    """Every Event of the reconciler."""
    items = api.expect("GET", EVENTS).json()["items"]
    return [e for e in items if e["source"].get("component") == "fleet-reconciler"]


def reasons(api: Transport, kind: str) -> set[str]:
    """The reasons of all Events on objects of a kind."""
    return {e["reason"] for e in ours(api) if e["involvedObject"]["kind"] == kind}


def describe(plane: ControlPlane, kind: str, name: str, home: Path) -> str:
    """`kubectl describe`."""
    done = subprocess.run(
        ["kubectl", "--kubeconfig", str(plane.kubeconfig), "describe", kind, name],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(home)},
    )
    return done.stdout


def test_pods_and_nodes_tell_their_story(
    world: World, api: Transport, plane: ControlPlane, config: Path, tmp_path: Path
) -> None:
    """`kubectl describe` is where people ask why a pod waits and why a node goes."""
    with Program(world.sandbox, config) as program:
        program.until_ready()
        world.add_pods(["fits"], cpu="1500m")
        world.add_pods(["huge"], cpu="500")
        world.until_pods(lambda phases: phases.get("fits") == "Running")
        until(
            "pods are told",
            lambda: {"TriggeredScaleUp", "NotTriggerScaleUp"} <= reasons(api, "Pod"),
        )
        if shutil.which("kubectl"):
            shown = describe(plane, "pod", "huge", tmp_path)
            assert "NotTriggerScaleUp" in shown
            assert "insufficient-cpu" in shown
            assert "fleet-reconciler" in shown
        world.remove_pods()
        until("nodes are told", lambda: {"Draining", "Terminating"} <= reasons(api, "Node"))
        world.until_idle()
        assert program.end()[0] == 0
    (told,) = [e for e in ours(api) if e["involvedObject"].get("name") == "huge"]
    assert told["type"] == "Warning"
    assert told["involvedObject"]["uid"]


def test_node_events_show_under_kubectl_describe_node(
    world: World, api: Transport, plane: ControlPlane, config: Path, tmp_path: Path
) -> None:
    """Events of nodes have no namespace of their own; in a wrong one they are never found."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    config.write_text(
        CONFIG.replace(
            "idle_threshold: 2s", "idle_threshold: 2s, unneeded_time: 1s, settle_time: 0s"
        )
    )
    with Program(world.sandbox, config) as program:
        program.until_ready()
        # A bare pod may not be moved: its little used node stays, and says why.
        world.add_pods(["bare"], cpu="100m")
        world.until_pods(lambda phases: phases.get("bare") == "Running")
        until("the node is told", lambda: "NodeKept" in reasons(api, "Node"))
        (event,) = [e for e in ours(api) if e["reason"] == "NodeKept"]
        shown = describe(plane, "node", event["involvedObject"]["name"], tmp_path)
        assert "NodeKept" in shown
        assert "no-controller" in shown
        world.remove_pods()
        world.until_idle()
        program.end()


@pytest.mark.nightly
def test_dry_run_writes_no_events(world: World, api: Transport, config: Path) -> None:
    """A trial on a laptop must not tell a cluster's users of nodes that never come."""
    with Program(world.sandbox, config, "--dry-run") as program:
        world.add_pods(["fits"], cpu="1500m")
        program.until_event("action_planned", lambda e: e["action"] == "set-capacity")
        program.until_event("cycle_ended", lambda e: e["cycle"] >= 3)
        assert program.end()[0] == 0
    assert ours(api) == []
