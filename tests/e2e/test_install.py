"""`reconciler manifest` on a real control plane: applied twice, and run with its account."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.kubernetes import Transport
from reconciler.sandbox.control_plane.plane import ControlPlane
from tests.e2e.installed import (
    CONFIG,
    NAMESPACE,
    apply,
    documents,
    manifest,
    remove,
    token_kubeconfig,
)
from tests.e2e.sandbox import OnRealCluster
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import Program, World
from tests.waiting import until

STATUS_403 = re.compile(r"(?<![\w.-])403(?![\w-])")
"""The status, not a part of a time, of an amount or of an id."""


@pytest.fixture
def objects(api: Transport, tmp_path: Path) -> Iterator[list[dict[str, Any]]]:
    """The install's objects, which go with the test."""
    found = documents(manifest(tmp_path))
    yield found
    remove(api, found)


def test_manifest_is_applied_twice_without_a_change(
    api: Transport, objects: list[dict[str, Any]]
) -> None:
    """GitOps tools apply it every few minutes; strict validation refuses unknown fields."""
    first = apply(api, objects)
    again = apply(api, objects)
    steady = {path for path in first if "/deployments/" not in path and "budgets/" not in path}
    assert {p: again[p] for p in steady} == {p: first[p] for p in steady}
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/fleet-reconciler"
    assert api.expect("GET", path).json()["metadata"]["generation"] == 1


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_applies_it_server_side_without_a_warning(
    plane: ControlPlane, objects: list[dict[str, Any]], tmp_path: Path
) -> None:
    """That is the command in the documentation."""
    command = ["kubectl", "--kubeconfig", str(plane.kubeconfig), "apply", "--server-side"]
    for _ in range(2):
        done = subprocess.run(
            [*command, "-f", str(tmp_path / "install.yaml")],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(tmp_path)},
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("serverside-applied") == len(objects)


def test_pods_of_the_install_are_admitted(api: Transport, objects: list[dict[str, Any]]) -> None:
    """Pod Security `restricted` and the priority admission refuse pods that promise too little."""
    apply(api, objects)
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    until("both pods are made", lambda: len(api.expect("GET", pods).json()["items"]) == 2)
    pod = api.expect("GET", pods).json()["items"][0]
    assert pod["spec"]["priority"] == 2_000_000_000
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True


def test_reconciler_does_its_main_job_with_the_accounts_token(
    plane: ControlPlane, api: Transport, objects: list[dict[str, Any]], tmp_path: Path
) -> None:
    """An administrator's kubeconfig in tests hides every right that is missing in production."""
    apply(api, [each for each in objects if each["kind"] != "Deployment"])
    (tmp_path / "run").mkdir()
    config = tmp_path / "run" / "sectors.yaml"
    config.write_text(CONFIG)
    account = token_kubeconfig(plane, api, tmp_path)
    with OnRealCluster(plane) as sandbox:
        world = World(sandbox)
        for size in ("small", "medium"):
            create_fleet(sandbox.aws_url, size)
        with Program(sandbox, config, "--kubeconfig", str(account)) as program:
            program.until_ready()
            world.add_pods([f"job-{n}" for n in range(4)], cpu="1500m")
            world.until_pods(lambda phases: set(phases.values()) == {"Running"})
            world.remove_pods()
            world.until_idle()
            refused = [line for line in program.log_text.splitlines() if STATUS_403.search(line)]
            assert refused == []
            assert program.end()[0] == 0
        world.close()
