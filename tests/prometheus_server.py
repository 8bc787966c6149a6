"""An HTTP API as a Prometheus server has it, on loopback, that answers from stated pods."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

TOKEN = "the-token"


@dataclass(frozen=True, kw_only=True)
class ToldPod:
    """One pod as kube-state-metrics would tell of it; times in seconds since 1970."""

    uid: str
    created: float
    gone: float
    """When it was reported for the last time."""
    cpu: float = 1.0
    memory: float = float(2**30)
    completed: float | None = None
    owner: tuple[str, str] = ("ReplicaSet", "web")
    selector: Mapping[str, str] = field(default_factory=dict)


class Prometheus(ThreadingHTTPServer):
    """Answers instant queries about its pods, or all of them with `status`."""

    def __init__(self, pods: list[ToldPod]) -> None:
        self.pods = pods
        self.keeps_from = 0.0
        """Since when it has kept samples; in seconds since 1970."""
        self.status = 200
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def series(self, query: str, at: float) -> list[tuple[dict[str, str], float]]:
        """Labels and values of an expression that `reconciler record` asks for."""
        metric = re.search(r"kube_pod\w+", query)
        seconds = re.search(r"\[(\d+)s", query)
        assert metric, query
        assert seconds, query
        begin = at - int(seconds[1])
        found: list[tuple[dict[str, str], float]] = []
        for pod in self.pods if at > self.keeps_from else ():
            if pod.created <= at and pod.gone > begin:
                seen = min(at, pod.gone) if "timestamp(" in query else None
                found += self._of(pod, metric[0], seen)
        return found

    def _of(
        self, pod: ToldPod, metric: str, seen: float | None
    ) -> list[tuple[dict[str, str], float]]:
        own = {"namespace": "team", "pod": f"web-{pod.uid}", "uid": pod.uid}
        kind, name = pod.owner
        table: dict[str, list[tuple[dict[str, str], float]]] = {
            "kube_pod_created": [({}, seen if seen is not None else pod.created)],
            "kube_pod_start_time": [({}, pod.created + 10)],
            "kube_pod_completion_time": [({}, pod.completed)] if pod.completed else [],
            "kube_pod_status_phase": [({}, float(pod.completed is not None))],
            "kube_pod_owner": [({"owner_kind": kind, "owner_name": name}, 1)],
            "kube_pod_container_resource_requests": [
                ({"container": "main", "resource": "cpu"}, pod.cpu),
                ({"container": "main", "resource": "memory"}, pod.memory),
            ],
            "kube_pod_nodeselectors": [
                ({f"nodeselector_{k}": v for k, v in pod.selector.items()}, 1)
            ],
        }
        return [({**own, **labels}, value) for labels, value in table.get(metric, [])]


class _Handler(BaseHTTPRequestHandler):
    server: Prometheus

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        asked = {key: values[0] for key, values in parse_qs(body).items()}
        self.server.asked.append(asked.get("query", ""))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, {"status": "error", "error": "no token"})
        elif self.path != "/api/v1/query":
            self._answer(404, {})
        elif self.server.status != 200:
            said = f"query processing would load too many samples ({TOKEN})"
            self._answer(self.server.status, {"status": "error", "error": said})
        else:
            at = float(asked["time"])
            result = [
                {"metric": labels, "value": [at, str(value)]}
                for labels, value in self.server.series(asked["query"], at)
            ]
            self._answer(
                200, {"status": "success", "data": {"resultType": "vector", "result": result}}
            )

    def _answer(self, status: int, document: Mapping[str, object]) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_args: object) -> None:
        pass


@contextmanager
def prometheus_server(pods: list[ToldPod]) -> Iterator[Prometheus]:
    """Serve until the end of the block."""
    with Prometheus(pods) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
