"""The official client on a sandbox cluster: waiting by watching, and bodies to create."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPSConnection
from ssl import create_default_context
from typing import Any

import pytest
import yaml
from kubernetes import client, config, watch

from reconciler.sandbox.cluster.server import ClusterServer

DEADLINE_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer as the wire has it."""

    code: int
    headers: dict[str, str]
    body: Any


def _new_watch() -> Any:
    make: Any = watch.Watch
    return make()


class Kube:
    """The official client's APIs on one cluster, and the wire beneath them."""

    def __init__(self, server: ClusterServer) -> None:
        self.server = server
        make: Any = config.new_client_from_config
        self.api: Any = make(config_file=str(server.kubeconfig))
        self.core: Any = client.CoreV1Api(self.api)
        self.apps: Any = client.AppsV1Api(self.api)
        self.batch: Any = client.BatchV1Api(self.api)
        self.policy: Any = client.PolicyV1Api(self.api)
        self.coordination: Any = client.CoordinationV1Api(self.api)

    def close(self) -> None:
        """Give the connections back."""
        self.api.rest_client.pool_manager.clear()

    def until(self, list_call: Any, holds: Callable[[Any], bool], *args: Any, **kwargs: Any) -> Any:
        """Watch until an object satisfies `holds`; returns it, fails at the deadline."""
        stream = _new_watch()
        for event in stream.stream(list_call, *args, timeout_seconds=DEADLINE_SECONDS, **kwargs):
            if holds(event["object"]):
                stream.stop()
                return event["object"]
        pytest.fail(f"{list_call.__name__}: nothing satisfied the condition in time")

    def until_gone(self, list_call: Any, name: str, *args: Any, **kwargs: Any) -> None:
        """Watch until the named object is deleted, or find it gone already."""
        listed = list_call(*args, **kwargs)
        if name not in {item.metadata.name for item in listed.items}:
            return
        stream = _new_watch()
        kwargs["resource_version"] = listed.metadata.resource_version
        for event in stream.stream(list_call, *args, timeout_seconds=DEADLINE_SECONDS, **kwargs):
            if event["type"] == "DELETED" and event["object"].metadata.name == name:
                stream.stop()
                return
        pytest.fail(f"{name} is still there")

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        token: str | None = None,
    ) -> Answer:
        """One request on a connection of its own."""
        text = yaml.safe_load(self.server.kubeconfig.read_text())
        pem = text["clusters"][0]["cluster"]["certificate-authority-data"]
        context = create_default_context(cadata=base64.b64decode(pem).decode())
        connection = HTTPSConnection(self.server.url.removeprefix("https://"), context=context)
        headers = {"Content-Type": content_type}
        headers["Authorization"] = f"Bearer {self.server.token if token is None else token}"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            data = answer.read()
            kind = answer.headers.get("Content-Type", "")
            lines = [json.loads(line) for line in data.splitlines()] if "json" in kind else []
            return Answer(
                answer.status,
                dict(answer.headers),
                lines if "watch=" in path else (lines or [data.decode()])[0],
            )
        finally:
            connection.close()


def is_ready(body: Any) -> bool:
    """The Ready condition is True."""
    conditions = body.status.conditions or []
    return any(c.type == "Ready" and c.status == "True" for c in conditions)


def add_node(kube: Kube, name: str, cpu: str = "4", **labels: str) -> Any:
    """Create a node and wait until pods may be bound to it."""
    body = {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": {"cpu": cpu, "memory": "16Gi", "pods": "20"}},
    }
    kube.core.create_node(body)
    return kube.until(
        kube.core.list_node, lambda n: n.metadata.name == name and is_ready(n) and not n.spec.taints
    )


def available(kube: Kube, name: str, replicas: int) -> None:
    """Wait until so many replicas are available."""
    kube.until(
        kube.apps.list_namespaced_deployment,
        lambda d: d.metadata.name == name and d.status.available_replicas == replicas,
        "default",
    )


def pod_body(name: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    """A pod of one container."""
    container = {"name": "c", "image": "x:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }


def workload(name: str, replicas: int | None, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    """A Deployment, StatefulSet or DaemonSet body over a pod template."""
    template = pod_body(name, cpu)
    body: dict[str, Any] = {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": template["spec"]},
            **spec,
        },
    }
    if replicas is not None:
        body["spec"]["replicas"] = replicas
    return body
