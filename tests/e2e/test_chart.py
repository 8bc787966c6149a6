"""The chart on a real control plane, with Helm alone: from the install to nothing left."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.kubernetes import Transport
from reconciler.sandbox.control_plane.plane import ControlPlane
from tests.e2e.installed import CONFIG, NAMESPACE, token_kubeconfig
from tests.e2e.sandbox import OnRealCluster
from tests.project import go_tools
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import Program, World
from tests.waiting import until

CHART = Path(__file__).parents[2] / "charts/fleet-reconciler"
RELEASE = "fleet"
VALUES = {
    "cluster": "analytics",
    "config": CONFIG,
    "image": {"repository": "registry.example/fleet-reconciler", "tag": "1"},
}
HOME = f"/api/v1/namespaces/{NAMESPACE}"
KINDS = (
    f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    f"/api/v1/namespaces/{NAMESPACE}/services",
    f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    f"/api/v1/namespaces/{NAMESPACE}/secrets",
    f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "/apis/apps/v1/daemonsets",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/networking.k8s.io/v1/networkpolicies",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
)
"""Where objects of the chart are."""


class Helm:
    """The program, for one release."""

    def __init__(self, program: str, plane: ControlPlane, folder: Path) -> None:
        self._program = program
        self._plane = plane
        self._folder = folder

    def __call__(self, *arguments: str, **values: Any) -> str:
        """Run one command; keywords are values of the chart."""
        command = [self._program, *arguments, "--namespace", NAMESPACE]
        command += ["--kubeconfig", str(self._plane.kubeconfig)]
        if values:
            file = self._folder / "values.json"
            file.write_text(json.dumps(values))
            command += ["--values", str(file)]
        home = {name: str(self._folder) for name in ("HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME")}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=False, env=home
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def helm(plane: ControlPlane, tmp_path: Path) -> Helm:
    """Helm, whose namespace goes with the test."""
    return Helm(go_tools.helm(), plane, tmp_path)


def owned(api: Transport) -> set[str]:
    """Kinds and names of all objects that Helm manages."""
    found = set()
    for kind in KINDS:
        for item in api.expect("GET", kind).json()["items"]:
            labels = item["metadata"].get("labels") or {}
            if "Helm" in labels.get("app.kubernetes.io/managed-by", "") or labels.get("owner") == (
                "helm"
            ):
                found.add(f"{kind.rpartition('/')[2]}/{item['metadata']['name']}")
    return found


def config_in_cluster(api: Transport) -> str:
    """The sector config that the Deployment mounts."""
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    maps = api.expect("GET", path).json()["items"]
    (text,) = [m["data"]["sectors.yaml"] for m in maps if "sectors.yaml" in m.get("data", {})]
    return str(text)


def test_chart_is_installed_scales_is_upgraded_rolled_back_and_leaves_nothing(
    helm: Helm, plane: ControlPlane, api: Transport, tmp_path: Path
) -> None:
    """What a person with Helm alone does, from the first minute to the last."""
    said = helm("install", RELEASE, str(CHART), "--create-namespace", **VALUES)
    assert "STATUS: deployed" in said
    installed = owned(api)
    assert "deployments/fleet-reconciler" in installed
    account = token_kubeconfig(plane, api, tmp_path)
    (tmp_path / "run").mkdir()
    config = tmp_path / "run" / "sectors.yaml"
    config.write_text(config_in_cluster(api))
    with OnRealCluster(plane) as sandbox:
        world = World(sandbox)
        for size in ("small", "medium"):
            create_fleet(sandbox.aws_url, size)
        with Program(sandbox, config, "--kubeconfig", str(account)) as program:
            program.until_ready()
            world.add_pods(["first"], cpu="1500m")
            world.until_pods(lambda phases: set(phases.values()) == {"Running"})
            assert program.end()[0] == 0
        _upgrade_and_roll_back(helm, api)
        helm("uninstall", RELEASE)
        until("what Helm made is gone", lambda: not owned(api) or None)
        api.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
        until("the namespace is gone", lambda: api.request("GET", HOME).status == 404)
        # The replicas ran on the node: with them it was in use.
        world.remove_pods()
        with Program(sandbox, config, "--no-leader-elect") as program:
            world.until_idle()
            assert program.end()[0] == 0
        world.close()


def _upgrade_and_roll_back(helm: Helm, api: Transport) -> None:
    changed = {**VALUES, "config": CONFIG.replace("max_capacity: 20", "max_capacity: 30")}
    helm("upgrade", RELEASE, str(CHART), **changed)
    assert "max_capacity: 30" in config_in_cluster(api)
    helm("rollback", RELEASE, "1")
    assert config_in_cluster(api) == CONFIG
    deployment = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/fleet-reconciler"
    assert api.expect("GET", deployment).json()["metadata"]["generation"] == 3
