"""Asks kube-scheduler for the whole set of nodes that its filters leave to a pod.

A second kube-scheduler runs with an extender: it gets the names of the feasible nodes of each
pod, writes them down and refuses them all. So nothing is ever bound, pods under test never
disturb each other, and the whole set is seen where a binding would show one node of it.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from reconciler.sandbox.control_plane.plane import ControlPlane

SCHEDULER_NAME = "observing-scheduler"
_TIMEOUT = "30s"


class _Server(ThreadingHTTPServer):
    """The extender's; a scheduler that ends leaves broken connections, which are no news."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a broken connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type] # typed too narrowly


class ObservingScheduler:
    """The scheduler and its extender; pods name it as their `schedulerName`."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.feasible: dict[str, list[frozenset[str]]] = {}
        """By pod uid, each answer of the filters that left any node at all."""
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        """Start both."""
        self._thread.start()
        extender = {
            "urlPrefix": f"http://127.0.0.1:{self._server.server_port}",
            "filterVerb": "filter",
            "nodeCacheCapable": True,
            "httpTimeout": _TIMEOUT,
        }
        configuration = {
            "percentageOfNodesToScore": 100,
            "profiles": [{"schedulerName": SCHEDULER_NAME}],
            "extenders": [extender],
        }
        self._plane.start_scheduler(SCHEDULER_NAME, configuration)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop both."""
        self._plane.stop_process(SCHEDULER_NAME)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        feasible = self.feasible

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                arguments: dict[str, Any] = {
                    key.lower(): value for key, value in json.loads(body).items()
                }
                names = arguments["nodenames"]
                feasible.setdefault(arguments["pod"]["metadata"]["uid"], []).append(
                    frozenset(names)
                )
                answer = json.dumps(
                    {"NodeNames": [], "FailedNodes": dict.fromkeys(names, "only observed")}
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - overridden
                """Say nothing."""

        return Handler
