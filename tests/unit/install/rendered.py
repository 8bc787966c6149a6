"""Installs as the manifest renders them, and their pods as the planner sees them."""

from typing import Any

import yaml

from reconciler.install.manifest import render_manifest
from reconciler.install.settings import InstallSettings
from reconciler.planner.rules import Ruling, Subject, Terms, rule_on
from tests.unit.install.command import CONFIG
from tests.unit.records.kubernetes.kube import decode_pod

REPOSITORY = "https://git.example/fleets.git"


def settings(**overrides: Any) -> InstallSettings:
    """An install of two replicas."""
    plain: dict[str, Any] = {"cluster": "analytics", "config": CONFIG, "image": "reconciler:1"}
    return InstallSettings(**(plain | overrides))


def objects(made: InstallSettings) -> dict[str, Any]:
    """The rendered objects by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all(render_manifest(made, "1.2.3"))}


def pod_of(made: InstallSettings) -> Any:
    """The Deployment's pod template."""
    return objects(made)["Deployment"]["spec"]["template"]


def ruled(template: Any) -> Ruling:
    """The ruling on a pod of this template, which a ReplicaSet owns and one budget covers."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u"}
    metadata = {
        **template["metadata"],
        "namespace": "fleet-reconciler",
        "ownerReferences": [{**owner, "controller": True}],
    }
    pod = decode_pod(metadata=metadata, nodeName="n", **template["spec"])
    return rule_on(Subject(pod=pod, budgets=1), Terms())
