"""The HTTP server: a thread per connection, none left behind."""

import errno
import socket
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import LineTooLong
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

import structlog

from reconciler.model.errors import ReconcilerError, UsageError
from reconciler.telemetry import events
from reconciler.web.address import web_address
from reconciler.web.routes import Answer, Request, Routes

SILENCE_SECONDS: Final = 5.0
"""The longest pause of a client within its request."""
CONNECTION_SECONDS: Final = 15.0
"""The longest time to read a request, and to write an answer, however active the client is. Making
the answer does not count: an explanation of a large cluster takes longer, and closing its
connection would not end its thread."""
CONNECTIONS_MAX: Final = 64
"""The limit of open connections and threads. At the limit the oldest connection of the client with
the most connections is closed, so that health checks always get through."""
ROOM_SECONDS: Final = 1.0
"""How long a new connection waits for that; then it is closed."""
REQUEST_LINE_BYTES_MAX: Final = 4096
HEADERS_BYTES_MAX: Final = 16_384
"""All header lines of a request together."""
POLL_SECONDS: Final = 0.1
_EVERYWHERE: Final = "::"
_NO_IPV6: Final = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
"""The errors with which a kernel without IPv6 refuses a socket, or with IPv6 disabled an
address."""


class WebServer:
    """Serves the routes from `start` to `stop`; also a context manager.

    Args:
        listen: `HOST:PORT`, `[IPV6]:PORT`; port 0 chooses a free one. `[::]` is every address of
            IPv6 and IPv4, or of IPv4 only where the machine has no IPv6.
        routes: What is served.
    """

    def __init__(self, listen: str, routes: Routes) -> None:
        self._listen = listen
        self._routes = routes
        self._http: _HttpServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """Return the `HOST:PORT` that it listens on."""
        if self._http is None:
            raise UsageError(self._listen, "is not listened on")
        host, port = self._http.server_address[:2]
        name = host.decode() if isinstance(host, bytes | bytearray) else str(host)
        return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"

    def start(self) -> Self:
        """Listen and serve.

        Raises:
            UsageError: `listen` is not an address.
            ReconcilerError: The port is taken or not allowed.
        """
        host, port = web_address(self._listen)
        try:
            self._http = _bound(host, port, self._routes)
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
        """Stop; no thread, connection or port remains."""
        http, self._http = self._http, None
        thread, self._thread = self._thread, None
        if http is None or thread is None:
            return
        http.shutdown()
        http.end_connections()
        http.server_close()
        thread.join()

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop, whatever happened."""
        self.stop()


@dataclass(slots=True, kw_only=True)
class _Connection:
    """An open connection."""

    client: str
    """The client's address."""
    since: float
    """When its request, or the writing of its answer, began; monotonic seconds."""
    answering: bool = False
    """Whether the answer is being made."""


class _HttpServer(ThreadingHTTPServer):
    """A threading server that tracks its connections and ends those that take too long."""

    daemon_threads = False
    block_on_close = True
    allow_reuse_port = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], routes: Routes) -> None:
        self.routes = routes
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._open: dict[socket.socket, _Connection] = {}
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without looking up our own name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "fleet-reconciler", int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in its own thread, never more than the limit."""
        with self._room:
            if len(self._open) >= CONNECTIONS_MAX:
                _end(self._oldest_of_busiest())
                self._room.wait_for(lambda: len(self._open) < CONNECTIONS_MAX, ROOM_SECONDS)
            full = len(self._open) >= CONNECTIONS_MAX
            if not full:
                client = str(client_address[0])
                self._open[request] = _Connection(client=client, since=time.monotonic())
        if full:
            super().shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def _oldest_of_busiest(self) -> socket.socket:
        """Return the oldest connection of the client with the most. The lock is held.

        One whose answer is being made comes last: its thread would go on.
        """
        counts = Counter(connection.client for connection in self._open.values())
        return min(
            self._open.items(),
            key=lambda item: (-counts[item[1].client], item[1].answering, item[1].since),
        )[0]

    @contextmanager
    def answering(self, request: Any) -> Iterator[None]:
        """Do not count the block's time as the connection's: its answer is being made."""
        with self._lock:
            open_one = self._open[request]
            open_one.answering = True
        try:
            yield
        finally:
            with self._lock:
                open_one.since, open_one.answering = time.monotonic(), False

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that ended."""
        super().shutdown_request(request)
        with self._room:
            self._open.pop(request, None)
            self._room.notify_all()

    def service_actions(self) -> None:
        """Close connections that are too old; called several times a second."""
        oldest = time.monotonic() - CONNECTION_SECONDS
        with self._lock:
            old = [
                s
                for s, connection in self._open.items()
                if not connection.answering and connection.since <= oldest
            ]
        for each in old:
            _end(each)

    def end_connections(self) -> None:
        """Close all connections; the threads that read or write notice at once."""
        with self._lock:
            every = list(self._open)
        for each in every:
            _end(each)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that disconnected."""


class _BoundedHead:
    """The head of a request, read line by line, up to a number of bytes.

    Python's own limits are 64 KiB a line and 100 lines: 6 MiB for each connection.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._left = 0
        self._is_first = True

    def readline(self, limit: int = -1) -> bytes:
        """Return the next line.

        Raises:
            LineTooLong: The header lines together are too long.
        """
        if self._is_first:
            self._is_first = False
            self._left = HEADERS_BYTES_MAX
            line: bytes = self._stream.readline(REQUEST_LINE_BYTES_MAX + 1)
            # The caller answers 414 to a line at its own limit.
            return line if len(line) <= REQUEST_LINE_BYTES_MAX else line.ljust(limit, b" ")
        line = self._stream.readline(min(limit, self._left + 1) if limit > 0 else self._left + 1)
        self._left -= len(line)
        if self._left < 0:
            raise LineTooLong("header line")
        return bytes(line)

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()

    @property
    def closed(self) -> bool:
        """Return whether the stream is closed."""
        return bool(self._stream.closed)


def _bound(host: str, port: int, routes: Routes) -> _HttpServer:
    """Return a server at an address; a host with colons is IPv6."""
    if ":" not in host:
        return _HttpServer((host, port), routes)
    try:
        return _HttpServer6((host, port), routes)
    except OSError as error:
        if host != _EVERYWHERE or error.errno not in _NO_IPV6:
            raise
    return _HttpServer(("", port), routes)


class _HttpServer6(_HttpServer):
    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        """Bind; the unspecified address includes IPv4, whatever the machine's default is."""
        if self.server_address[0] == _EVERYWHERE:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """One request per connection."""

    timeout = SILENCE_SECONDS
    server_version = "fleet-reconciler"
    sys_version = ""
    server: _HttpServer

    def setup(self) -> None:
        """Limit what is read of the request's head."""
        super().setup()
        self.rfile: Any = _BoundedHead(self.rfile)

    def do_GET(self) -> None:
        """Answer."""
        self._send(self._answer())

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self._send(self._answer())

    def _request(self) -> Request:
        hosts = self.headers.get_all("Host") or []
        return Request(
            target=self.path,
            # Two of them contradict each other, so neither is trusted.
            host=hosts[0] if len(hosts) == 1 else ("" if hosts or self._must_name_host() else None),
            authorization=self.headers.get("Authorization"),
            if_none_match=self.headers.get("If-None-Match"),
        )

    def _must_name_host(self) -> bool:
        return self.request_version >= "HTTP/1.1"

    def _answer(self) -> Answer:
        try:
            with self.server.answering(self.connection):
                return self.server.routes.answer(self._request())
        except Exception as error:  # noqa: BLE001 - a broken page must not look like a dead program
            structlog.get_logger().error(events.REQUEST_FAILED, path=self.path, exc_info=error)
            return Answer(status=500, body=b"internal error\n")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002 - its signature
        """Answer a malformed request, without repeating any of it."""
        self.close_connection = True
        self.request_version = "HTTP/1.0"  # the version may be invalid too
        self._send(Answer(status=int(code), body=f"{HTTPStatus(code).phrase.lower()}\n".encode()))

    def __getattr__(self, name: str) -> Any:
        """Answer any other method that a client may invent."""
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)

    def _refuse(self) -> None:
        refused = self.server.routes.refusal(self._request())
        if refused is not None:
            self._send(refused)
            return
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
            for part in answer.parts():
                self.wfile.write(part)

    def log_message(self, *_args: Any) -> None:
        """Do nothing: requests are not logged."""
