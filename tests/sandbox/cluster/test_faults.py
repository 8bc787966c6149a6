"""Faults of the API server over HTTP: what a client meets, and what is counted."""

import base64
import json
import socket
import ssl
import time
from collections.abc import Iterator
from http.client import HTTPException, HTTPSConnection
from typing import Any

import pytest
import yaml

from reconciler.model.errors import InputError
from reconciler.sandbox.cluster.front.control_client import KubeControlClient
from reconciler.sandbox.faults.kubernetes import KubernetesFaults
from tests.sandbox.cluster.kube import Kube, pod_body

NODE = "/api/v1/nodes/a"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def control(cluster: Kube) -> KubeControlClient:
    """The control API as another process reaches it."""
    return KubeControlClient(cluster.server.kubeconfig)


def put(control: KubeControlClient, **fault: Any) -> None:
    """Put one fault in force, in the words of a script."""
    control.put_faults(KubernetesFaults.model_validate({"requests": [fault]}))


def label(kube: Kube) -> int:
    """Patch a node; the status of the answer."""
    body = {"metadata": {"labels": {"tier": "x"}}}
    return kube.ask("PATCH", NODE, body, content_type="application/merge-patch+json").code


@pytest.mark.parametrize(
    ("fault", "code", "reason"),
    [
        ("conflict", 409, "Conflict"),
        ("internal-error", 500, "InternalError"),
        ("service-unavailable", 503, "ServiceUnavailable"),
        ("gateway-timeout", 504, "Timeout"),
    ],
)
def test_refusal_is_a_status_object_and_changes_nothing(
    cluster: Kube, control: KubeControlClient, fault: str, code: int, reason: str
) -> None:
    """Clients decide by code and reason: both must be the API server's."""
    put(control, fault=fault, verbs="patch", resources="nodes", name="a", count=1)
    body = {"metadata": {"labels": {"tier": "x"}}}
    answer = cluster.ask("PATCH", NODE, body, content_type="application/merge-patch+json")
    assert (answer.code, answer.body["reason"], answer.body["kind"]) == (code, reason, "Status")
    assert "tier" not in cluster.ask("GET", NODE).body["metadata"]["labels"]
    assert label(cluster) == 200


def test_too_many_requests_names_the_pause(cluster: Kube, control: KubeControlClient) -> None:
    """A client that is not told how long to wait comes back at once."""
    put(control, fault="too-many-requests", resources="pods", retry_after=7, count=1)
    answer = cluster.ask("GET", PODS)
    assert (answer.code, answer.headers["Retry-After"]) == (429, "7")
    assert cluster.ask("GET", PODS).code == 200


def test_lost_reply_is_carried_out_and_no_answer_is_not(
    cluster: Kube, control: KubeControlClient
) -> None:
    """A write without an answer may have been made: the fault must show both halves."""
    put(control, fault="lost-reply", verbs="create", resources="pods", count=1)
    with pytest.raises((OSError, HTTPException)):
        cluster.ask("POST", PODS, pod_body("lost"))
    assert cluster.ask("GET", f"{PODS}/lost").code == 200
    put(control, fault="no-answer", verbs="create", resources="pods", count=1)
    with pytest.raises((OSError, HTTPException)):
        cluster.ask("POST", PODS, pod_body("unsent"))
    assert cluster.ask("GET", f"{PODS}/unsent").code == 404


def test_empty_list_is_valid_and_of_the_present_version(
    cluster: Kube, control: KubeControlClient
) -> None:
    """An API server behind a broken cache answers so; a client cannot see that it is wrong."""
    real = cluster.ask("GET", "/api/v1/nodes?limit=1").body
    put(control, fault="empty-list", resources="nodes", count=1)
    empty = cluster.ask("GET", "/api/v1/nodes?limit=1").body
    assert (empty["kind"], empty["items"]) == ("NodeList", [])
    assert int(empty["metadata"]["resourceVersion"]) >= int(real["metadata"]["resourceVersion"])
    assert "continue" not in empty["metadata"]
    assert len(cluster.ask("GET", "/api/v1/nodes").body["items"]) == 2


def test_expired_shows_on_continue_tokens_and_watches_only(
    cluster: Kube, control: KubeControlClient
) -> None:
    """410 for a fresh list would be a fault that no API server has."""
    put(control, fault="expired", resources="nodes", count=2)
    page = cluster.ask("GET", "/api/v1/nodes?limit=1").body
    token = page["metadata"]["continue"]
    assert cluster.ask("GET", f"/api/v1/nodes?limit=1&continue={token}").code == 410
    version = page["metadata"]["resourceVersion"]
    answer = cluster.ask("GET", f"/api/v1/nodes?watch=1&resourceVersion={version}")
    assert answer.code == 200
    assert [(e["type"], e["object"]["code"]) for e in answer.body] == [("ERROR", 410)]


class Wire:
    """One raw watch over TLS, read as it comes."""

    def __init__(self, kube: Kube, path: str) -> None:
        config = yaml.safe_load(kube.server.kubeconfig.read_text())
        pem = config["clusters"][0]["cluster"]["certificate-authority-data"]
        context = ssl.create_default_context(cadata=base64.b64decode(pem).decode())
        host = kube.server.url.removeprefix("https://")
        self.connection = HTTPSConnection(host, context=context, timeout=60)
        self.connection.request(
            "GET", path, headers={"Authorization": f"Bearer {kube.server.token}"}
        )
        self.answer = self.connection.getresponse()

    def event(self) -> Any:
        """The next event."""
        return json.loads(self.answer.readline())

    def close(self) -> None:
        """Give the connection back."""
        self.connection.close()


def watch_pods(kube: Kube) -> Iterator[Wire]:
    """A watch from now on."""
    version = kube.ask("GET", PODS).body["metadata"]["resourceVersion"]
    wire = Wire(kube, f"{PODS}?watch=1&resourceVersion={version}&timeoutSeconds=60")
    yield wire
    wire.close()


def test_dropped_watch_breaks_after_its_events_without_an_end(
    cluster: Kube, control: KubeControlClient
) -> None:
    """A load balancer that recycles connections ends watches so: no last chunk, no error."""
    put(control, fault="dropped-watch", resources="pods", events=1, count=1)
    for wire in watch_pods(cluster):
        cluster.ask("POST", PODS, pod_body("seen"))
        assert wire.event()["object"]["metadata"]["name"] == "seen"
        with pytest.raises((OSError, HTTPException, ValueError)):
            wire.event()


def test_slow_watch_holds_its_events_back(cluster: Kube, control: KubeControlClient) -> None:
    """An API server under load tells late what has happened."""
    put(control, fault="slow-watch", resources="pods", delay=1, count=1)
    for wire in watch_pods(cluster):
        began = time.monotonic()
        cluster.ask("POST", PODS, pod_body("late"))
        assert wire.event()["object"]["metadata"]["name"] == "late"
        assert time.monotonic() - began >= 1


def test_requests_are_counted_by_verb_and_client(cluster: Kube, control: KubeControlClient) -> None:
    """Zero mutating calls can be claimed only of what was counted where it arrived."""
    control.forget_calls()
    cluster.ask("GET", PODS)
    cluster.ask("GET", NODE)
    label(cluster)
    cluster.ask("POST", PODS, pod_body("counted"))
    cluster.ask("POST", PODS + "?dryRun=All", pod_body("wish"))
    cluster.ask("DELETE", f"{PODS}/counted")
    cluster.ask("GET", "/version")
    assert control.call_counts() == {
        "create pods": 2,
        "delete pods": 1,
        "get /version": 1,
        "get nodes": 1,
        "list pods": 1,
        "patch nodes": 1,
    }
    changing = [(c["verb"], c["name"], c["status"]) for c in control.calls(mutating="true")]
    assert changing == [("patch", "a", 200), ("create", "", 201), ("delete", "counted", 200)]
    assert control.calls(user_agent="fleet-reconciler") == []


def test_faults_are_for_the_client_they_name(cluster: Kube, control: KubeControlClient) -> None:
    """A fault that hits the test's own client as well would test the test."""
    put(control, fault="internal-error", user_agent="fleet-reconciler")
    assert cluster.ask("GET", PODS).code == 200
    assert [fault["shown"] for fault in control.faults()] == [0]
    control.clear_faults()
    assert control.faults() == []


def test_control_needs_the_token_and_refuses_nonsense(
    cluster: Kube, control: KubeControlClient
) -> None:
    """A misspelt fault that is silently ignored makes a test pass that should not."""
    assert cluster.ask("GET", "/_sandbox/calls", token="wrong").code == 401
    assert cluster.ask("GET", "/_sandbox/nothing").code == 404
    with pytest.raises(InputError, match="colour"):
        control._api.ask("POST", "faults", body={"colour": []})
    refused = cluster.ask("POST", "/_sandbox/faults", {"requests": [{"fault": "delay"}]})
    assert (refused.code, "`delay` needs `delay`" in refused.body["error"]) == (400, True)


def test_delay_ends_with_the_server(cluster: Kube, control: KubeControlClient) -> None:
    """A sandbox that cannot be stopped while a fault holds an answer back would hang its tests."""
    put(control, fault="delay", delay="10m", resources="configmaps")
    config = yaml.safe_load(cluster.server.kubeconfig.read_text())
    pem = config["clusters"][0]["cluster"]["certificate-authority-data"]
    context = ssl.create_default_context(cadata=base64.b64decode(pem).decode())
    host = cluster.server.url.removeprefix("https://")
    waiting = HTTPSConnection(host, context=context, timeout=60)
    headers = {"Authorization": f"Bearer {cluster.server.token}"}
    waiting.request("GET", "/api/v1/configmaps", headers=headers)
    waiting.sock.settimeout(0.3)
    with pytest.raises(socket.timeout):
        waiting.getresponse()
    waiting.close()
    began = time.monotonic()
    cluster.server.stop()
    assert time.monotonic() - began < 300
