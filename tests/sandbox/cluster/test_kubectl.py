"""kubectl on the sandbox: what people will type first."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.sandbox.cluster.kube import Kube, available, workload

pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="needs kubectl; it is not on the PATH"
)
DEADLINE_SECONDS = 120


def kubectl(kube: Kube, home: Path, *words: str, code: int = 0) -> str:
    """Run kubectl with a HOME of its own; returns stdout."""
    environment = {
        "PATH": os.environ["PATH"],  # noqa: TID251 - the program is found there
        "HOME": str(home),
        "KUBECONFIG": str(kube.server.kubeconfig),
    }
    done = subprocess.run(
        ["kubectl", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def test_apply_is_repeatable_in_both_kinds(cluster: Kube, tmp_path: Path) -> None:
    """The README's first commands would fail."""
    manifest = tmp_path / "web.yaml"
    body = {"apiVersion": "apps/v1", "kind": "Deployment", **workload("web", 1)}
    manifest.write_text(yaml.safe_dump(body))
    assert "created" in kubectl(cluster, tmp_path, "apply", "-f", str(manifest))
    assert "unchanged" in kubectl(cluster, tmp_path, "apply", "-f", str(manifest))
    body["spec"]["replicas"] = 2
    manifest.write_text(yaml.safe_dump(body))
    assert "configured" in kubectl(cluster, tmp_path, "apply", "-f", str(manifest))
    kubectl(cluster, tmp_path, "apply", "--server-side", "--force-conflicts", "-f", str(manifest))
    assert "successfully rolled out" in kubectl(
        cluster, tmp_path, "rollout", "status", "deployment/web", "--timeout=100s"
    )


def test_list_is_applied_item_by_item(cluster: Kube, tmp_path: Path) -> None:
    """What `kubectl get -o yaml` printed, or a chart's output, is a List."""
    manifest = tmp_path / "list.yaml"
    items = [
        {"apiVersion": "apps/v1", "kind": "Deployment", **workload("web", 1)},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own"}, "data": {"a": "b"}},
    ]
    manifest.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    said = kubectl(cluster, tmp_path, "apply", "-f", str(manifest)).splitlines()
    assert said == ["deployment.apps/web created", "configmap/own created"]


def test_drain_moves_pods_within_their_budget(cluster: Kube, tmp_path: Path) -> None:
    """People drain by hand what the reconciler must not touch meanwhile."""
    cluster.apps.create_namespaced_deployment("default", workload("web", 4))
    available(cluster, "web", 4)
    budget = {
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    cluster.policy.create_namespaced_pod_disruption_budget("default", budget)
    assert "drained" in kubectl(cluster, tmp_path, "drain", "a", "--timeout=100s")
    available(cluster, "web", 4)
    pods = cluster.core.list_namespaced_pod("default").items
    assert {pod.spec.node_name for pod in pods} == {"b"}


def test_get_prints_columns_and_describe_prints_events(cluster: Kube, tmp_path: Path) -> None:
    """Names and ages alone tell nobody what goes on."""
    nodes = kubectl(cluster, tmp_path, "get", "nodes")
    assert nodes.splitlines()[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    cluster.apps.create_namespaced_deployment("default", workload("web", 1))
    available(cluster, "web", 1)
    wide = kubectl(cluster, tmp_path, "get", "pods", "-o", "wide")
    assert wide.splitlines()[0].split()[:7] == [
        "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE",
    ]  # fmt: skip
    (pod,) = cluster.core.list_namespaced_pod("default").items
    assert "Scheduled" in kubectl(cluster, tmp_path, "describe", "pod", pod.metadata.name)
    kubectl(cluster, tmp_path, "wait", "--for=condition=Ready", f"pod/{pod.metadata.name}")
    kubectl(cluster, tmp_path, "delete", "deployment", "web", "--timeout=100s")
    assert "NotFound" not in kubectl(cluster, tmp_path, "get", "pods")
