"""An API server that says what a test wants, and the real Cluster adapter in front of it."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reconciler.adapters.kubernetes import KubernetesCluster, connect
from reconciler.adapters.kubernetes.confirmation import CONFIRM_SECONDS
from reconciler.model.snapshot import ClusterState
from tests import waiting
from tests.contract.scripted import Answer, Request, Script, json_answer, scripted_server

LONG_SECONDS = 60.0
"""What no test waits for, however slow the machine."""


def kubeconfig(folder: Path, url: str) -> str:
    """A kubeconfig for a server without TLS."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return str(path)


class ApiScript:
    """Lists and watches of all kinds, pods as the test wants them."""

    def __init__(self) -> None:
        self.pods: list[dict[str, Any]] = []
        self.events: list[tuple[bytes, ...]] = []
        """What successive watches of pods say."""
        self.lists = 0
        self.watches = 0
        self.asked: list[str] = []
        self.hold = threading.Event()

    def __call__(self, request: Request) -> Answer:
        """Answer one request."""
        is_pods = request.path.startswith("/api/v1/pods")
        if "watch=1" not in request.path:
            self.lists += is_pods
            items = self.pods if is_pods else []
            return json_answer({"metadata": {"resourceVersion": "7"}, "items": items})
        lines: tuple[bytes, ...] = ()
        if is_pods:
            self.watches += 1
            self.asked.append(request.path)
            lines = self.events.pop(0) if self.events else ()
            if lines and self.events:
                return Answer(lines=lines)
        return Answer(lines=lines, hold=self.hold)


def pod_json(version: str = "1", **status: Any) -> dict[str, Any]:
    """A pod bound to n1."""
    return {
        "metadata": {"name": "p", "namespace": "web", "uid": "u", "resourceVersion": version},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", **status},
    }


def event(kind: str, found: Any) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": found}).encode()


@contextmanager
def watching(
    folder: Path,
    script: Script,
    *,
    sync_seconds: float = 60,
    confirm_seconds: float = CONFIRM_SECONDS,
    awake_seconds: Callable[[], float] = time.monotonic,
) -> Iterator[KubernetesCluster]:
    """A cluster that watches a scripted server."""
    with scripted_server(script) as url:
        cluster = KubernetesCluster(
            connect(kubeconfig(folder, url)),
            sync_seconds=sync_seconds,
            confirm_seconds=confirm_seconds,
            awake_seconds=awake_seconds,
        )
        try:
            yield cluster
        finally:
            if isinstance(script, ApiScript):
                script.hold.set()
            cluster.close()


def until(cluster: KubernetesCluster, holds: Callable[[ClusterState], bool]) -> ClusterState:
    """Observe at each change until something holds."""
    seen: list[ClusterState] = []

    def look() -> ClusterState | None:
        seen[:] = [cluster.observe()]
        return seen[0] if holds(seen[0]) else None

    return waiting.until(
        lambda: f"an observation that holds\n{seen}",
        look,
        seconds=LONG_SECONDS,
        pause=cluster.wait_for_change,
    )
