"""The program with the config and the AWS account of one cluster and the kubeconfig of another."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.sandbox.stack import Sandbox
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import CONFIG, DEADLINE_SECONDS, Program, World
from tests.waiting import until

pytestmark = pytest.mark.sandbox


def test_wrong_kubeconfig_is_reported_and_nothing_is_ended(
    program: Callable[..., Program], world: World, sandbox: Sandbox, config_file: Path
) -> None:
    """A wrong kube-context would end every instance of the fleets."""
    config_file.write_text("instance_init_time: 1\n" + CONFIG + "    - {size: large}\n")
    create_fleet(sandbox.aws_url, "large", target=2)
    until(lambda: f"{len(world.nodes())} nodes", lambda: len(world.nodes()) == 2)
    with Sandbox() as other:
        wrong = ("--kubeconfig", str(other.kubeconfig))
        running = program(*wrong)
        told = running.until_event("cluster_binding", lambda e: e["verdict"] == "unproven")
        assert told["level"] == "error"
        running.until_event("node_held", lambda e: e["code"] == "unproven-cluster")
        assert "unproven: NOT PROVEN" in running.get("/")[1].partition("<table>")[0]
        assert json.loads(running.get("/api/status")[1])["binding"]["verdict"] == "unproven"
        metric = 'fleet_reconciler_cluster_bound{verdict="unproven"} 1.0'
        assert metric in running.get("/metrics")[1]
        assert running.end()[0] == 0
        assert running.events("action_applied") == []
        once = program(*wrong, "--once")
        assert once.process.wait(DEADLINE_SECONDS) == 1
        assert "error: cluster: unproven" in once.log_text
    assert world.instance_states().count("running") == 2
