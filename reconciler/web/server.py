"""The HTTP server: a thread per connection, each short-lived, none left behind."""

import socket
import socketserver
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

import structlog

from reconciler.model.errors import ReconcilerError, UsageError
from reconciler.telemetry import events
from reconciler.web.address import host_and_port
from reconciler.web.routes import Answer, Routes

SILENCE_SECONDS: Final = 5.0
"""Longest pause of a client within its request."""
CONNECTION_SECONDS: Final = 15.0
"""A connection is over after this long, however busy its client keeps it."""
CONNECTIONS_MAX: Final = 64
"""Beyond it the oldest connection ends, so that a health check always gets in."""
POLL_SECONDS: Final = 0.1


class WebServer:
    """Serves the routes from `start` to `stop`; also a context manager.

    Args:
        listen: `HOST:PORT`, `[IPV6]:PORT`; port 0 takes a free one.
        routes: What is served.
    """

    def __init__(self, listen: str, routes: Routes) -> None:
        self._listen = listen
        self._routes = routes
        self._http: _HttpServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """`HOST:PORT` as it is listened on."""
        if self._http is None:
            raise UsageError(self._listen, "is not listened on")
        host, port = self._http.server_address[:2]
        name = host.decode() if isinstance(host, bytes | bytearray) else str(host)
        return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"

    def start(self) -> Self:
        """Listen and serve.

        Raises:
            UsageError: `listen` is no address.
            ReconcilerError: The port is taken or not allowed.
        """
        host, port = host_and_port(self._listen)
        try:
            self._http = _server_for(host)((host, port), self._routes)
        except OSError as error:
            what = error.strerror or str(error)
            raise ReconcilerError(
                self._listen, f"cannot listen there: {what}", "choose another with --listen"
            ) from error
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(POLL_SECONDS,), name="http", daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop; no thread, connection or port stays."""
        http, self._http = self._http, None
        thread, self._thread = self._thread, None
        if http is None or thread is None:
            return
        http.shutdown()
        http.end_connections(older_than_seconds=0.0)
        http.server_close()
        thread.join()

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop, whatever happened."""
        self.stop()


class _HttpServer(ThreadingHTTPServer):
    """A threading server that knows its connections and ends those that take too long."""

    daemon_threads = False
    block_on_close = True
    allow_reuse_port = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], routes: Routes) -> None:
        self.routes = routes
        self._lock = threading.Lock()
        self._began_at: dict[socket.socket, float] = {}
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without asking a name server who we are."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "fleet-reconciler", int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own."""
        with self._lock:
            self._began_at[request] = time.monotonic()
            crowded = len(self._began_at) > CONNECTIONS_MAX
            oldest = min(self._began_at, key=self._began_at.__getitem__)
        if crowded:
            _end(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """A connection is done."""
        with self._lock:
            self._began_at.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Called between connections, several times a second."""
        self.end_connections(older_than_seconds=CONNECTION_SECONDS)

    def end_connections(self, older_than_seconds: float) -> None:
        """End connections by age; their threads notice at once."""
        now = time.monotonic()
        with self._lock:
            old = [s for s, at in self._began_at.items() if now - at >= older_than_seconds]
        for each in old:
            _end(each)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


def _server_for(host: str) -> type[_HttpServer]:
    """A host with colons is IPv6."""
    return _HttpServer6 if ":" in host else _HttpServer


class _HttpServer6(_HttpServer):
    address_family = socket.AF_INET6


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """One request per connection."""

    timeout = SILENCE_SECONDS
    server_version = "fleet-reconciler"
    sys_version = ""
    server: _HttpServer

    def do_GET(self) -> None:
        """Answer."""
        self._send(self._answer())

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self._send(self._answer())

    def _answer(self) -> Answer:
        try:
            return self.server.routes.answer(self.path)
        except Exception as error:  # noqa: BLE001 - a broken page must not look like a dead program
            structlog.get_logger().error(events.REQUEST_FAILED, path=self.path, exc_info=error)
            return Answer(status=500, body=b"internal error\n")

    def __getattr__(self, name: str) -> Any:
        """Every other method that a client may invent."""
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)

    def _refuse(self) -> None:
        known = self.server.routes.knows(self.path)
        status = 405 if known else 404
        headers = {"Allow": "GET, HEAD"} if known else {}
        self._send(Answer(status=status, body=b"only GET and HEAD are served\n", headers=headers))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.all_headers().items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, *_args: Any) -> None:
        """Requests are no events."""
