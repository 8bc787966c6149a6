"""install.yaml on a control plane, and the ServiceAccount's own kubeconfig."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from reconciler.adapters.kubernetes import Transport
from reconciler.sandbox.control_plane.plane import ControlPlane
from tests.waiting import until

NAMESPACE = "fleet-reconciler"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:fleet-reconciler"
CONFIG = """\
cluster: analytics
regions: [us-west-2]
sleep_interval: 1
default_sector: primary
max_logging_interval: 5
listen: 127.0.0.1:0
leader_election: {namespace: fleet-reconciler}
scale_in: {idle_threshold: 2s}
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small, min_capacity: 0, max_capacity: 20}
    - {size: medium, min_capacity: 0, max_capacity: 20}
"""
_APPLY = "application/apply-patch+yaml"
_GROUPS = {
    "Namespace": "/api/v1",
    "ServiceAccount": "/api/v1",
    "ConfigMap": "/api/v1",
    "Service": "/api/v1",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1",
    "Role": "/apis/rbac.authorization.k8s.io/v1",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1",
    "Deployment": "/apis/apps/v1",
    "DaemonSet": "/apis/apps/v1",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1",
    "NetworkPolicy": "/apis/networking.k8s.io/v1",
    "PodDisruptionBudget": "/apis/policy/v1",
}

_IMAGE = ("--image", "registry.example/fleet-reconciler:test")


def manifest(folder: Path, *arguments: str, config: str = CONFIG) -> Path:
    """What `reconciler manifest` prints, as a file."""
    (folder / "sectors.yaml").write_text(config)
    argv = [sys.executable, "-m", "reconciler", "manifest", *_IMAGE, *arguments]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    file = folder / "install.yaml"
    file.write_text(done.stdout)
    return file


def documents(file: Path) -> list[dict[str, Any]]:
    """The objects in the file."""
    return [each for each in yaml.safe_load_all(file.read_text()) if each]


def path_of(document: dict[str, Any]) -> str:
    """Where the API server has an object."""
    metadata, kind = document["metadata"], document["kind"]
    namespace = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    plural = f"{kind[:-1].lower()}ies" if kind.endswith("y") else f"{kind.lower()}s"
    return f"{_GROUPS[kind]}{namespace}/{plural}/{metadata['name']}"


def apply(api: Transport, objects: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Server-side apply, as kubectl does it; the objects' versions by path."""
    versions = {}
    for each in objects:
        query = {"fieldManager": "kubectl", "fieldValidation": "Strict"}
        reply = api.expect("PATCH", path_of(each), query=query, body=each, content_type=_APPLY)
        versions[path_of(each)] = reply.json()["metadata"]["resourceVersion"]
    return versions


def remove(api: Transport, objects: Sequence[dict[str, Any]]) -> None:
    """Delete what was applied; returns when a namespace among it is gone with all that is in it."""
    for each in reversed(objects):
        api.request("DELETE", path_of(each))
    namespaces = [path_of(each) for each in objects if each["kind"] == "Namespace"]
    until(
        f"{namespaces} are gone",
        lambda: all(api.request("GET", path).status == 404 for path in namespaces),
    )


def token_kubeconfig(plane: ControlPlane, api: Transport, folder: Path, name: str = "") -> Path:
    """A kubeconfig with a new token of the ServiceAccount, and nothing of the administrator's."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/fleet-reconciler"
    until("the ServiceAccount is there", lambda: api.request("GET", path).status == 200)
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    }
    token = api.expect("POST", f"{path}/token", body=request).json()["status"]["token"]
    body = json.loads(plane.kubeconfig.read_text())
    body["users"] = [{"name": "account", "user": {"token": token}}]
    body["contexts"][0]["context"]["user"] = "account"
    file = folder / f"account{name}.kubeconfig"
    file.touch(mode=0o600)
    file.write_text(json.dumps(body))
    return file
