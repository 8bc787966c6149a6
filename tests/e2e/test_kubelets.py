"""How KWOK plays kubelets: the annotations that the simulated cluster's pods and nodes know too."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reconciler.adapters.kubernetes import Transport
from reconciler.sandbox.cluster.settings import (
    DURATION,
    EXIT_CODE,
    KUBELET,
    KUBELET_STOPPED,
    TERMINATION,
)
from tests.waiting import until

_NODE = "kubelet-node"
_PODS = "/api/v1/namespaces/default/pods"
_SLOW_SECONDS = 2
_MERGE = "application/merge-patch+json"


@pytest.fixture
def node(api: Transport) -> Iterator[str]:
    """A Ready node; gone with its pods afterwards."""
    resources = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    body = {"metadata": {"name": _NODE}, "status": {"capacity": resources}}
    body["status"]["allocatable"] = resources  # type: ignore[index] # a dict of dicts
    api.expect("POST", "/api/v1/nodes", body=body)
    until("the node is Ready", lambda: _ready(api) == "True")
    yield _NODE
    api.request("DELETE", _PODS, query={"gracePeriodSeconds": 0})
    api.request("DELETE", f"/api/v1/nodes/{_NODE}")
    until("no pods are left", lambda: not api.expect("GET", _PODS).json()["items"])


def _ready(api: Transport) -> str:
    status = api.expect("GET", f"/api/v1/nodes/{_NODE}").json().get("status", {})
    found = {condition["type"]: condition["status"] for condition in status.get("conditions", ())}
    return str(found.get("Ready", ""))


def _pod(api: Transport, name: str, annotations: dict[str, str]) -> Callable[[], Any]:
    """Create a pod on the node; returns how to look at it."""
    container = {"name": "main", "image": "registry/app:1"}
    spec = {"nodeName": _NODE, "restartPolicy": "Never", "containers": [container]}
    body = {"metadata": {"name": name, "annotations": annotations}, "spec": spec}
    api.expect("POST", _PODS, body=body)

    def look() -> Any:
        reply = api.request("GET", f"{_PODS}/{name}")
        return reply.json() if reply.status == 200 else None

    return look


def test_pods_end_when_and_how_their_annotations_say(api: Transport, node: str) -> None:
    """Workloads written for the sandbox would behave differently on its real control plane."""
    fine = _pod(api, "fine", {DURATION: "0.5"})
    broken = _pod(api, "broken", {DURATION: "0.5", EXIT_CODE: "3"})
    stays = _pod(api, "stays", {})
    until("one succeeds", lambda: fine()["status"]["phase"] == "Succeeded")
    until("one fails", lambda: broken()["status"]["phase"] == "Failed")
    until("one runs on", lambda: stays()["status"]["phase"] == "Running")


def test_slow_pod_stays_until_it_has_ended(api: Transport, node: str) -> None:
    """A drain that never meets a slow pod in tests would meet the first one in production."""
    look = _pod(api, "slow", {TERMINATION: str(_SLOW_SECONDS)})
    until("it runs", lambda: look()["status"]["phase"] == "Running")
    began = time.monotonic()
    left = api.expect("DELETE", f"{_PODS}/slow").json()
    assert left["metadata"]["deletionTimestamp"]
    until("it is gone", lambda: look() is None)
    assert time.monotonic() - began >= _SLOW_SECONDS


def test_silent_kubelet_turns_its_node_unknown_and_back(api: Transport, node: str) -> None:
    """A node that never falls silent in tests is one whose loss nobody has seen handled."""
    path = f"/api/v1/nodes/{node}"
    for value, ready in ((KUBELET_STOPPED, "Unknown"), (None, "True")):
        body = {"metadata": {"annotations": {KUBELET: value}}}
        api.expect("PATCH", path, body=body, content_type=_MERGE)
        until(f"Ready is {ready}", lambda ready=ready: _ready(api) == ready)  # type: ignore[misc]
