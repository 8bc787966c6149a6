"""HTTPS on loopback: keep-alive, chunked watch streams, bearer tokens; independent of resources."""

import contextlib
import hmac
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import orjson
from typing_extensions import override

from reconciler.sandbox.cluster.objects.status import unauthorized
from reconciler.sandbox.cluster.requests.request import Request, Response, read_request
from reconciler.sandbox.cluster.requests.routes import PUBLIC

_BODY_BYTES_MAX = 3 * 1024 * 1024
"""The API server's own limit for a request body."""

Answer = Callable[[Request], Response]


class _Handler(BaseHTTPRequestHandler):
    """One connection: requests in, answers out, until either side closes."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server_version = "sandbox-cluster"
    sys_version = ""
    server: "HttpServer"

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Do nothing: the sandbox's output is its one line of JSON."""

    def _serve(self) -> None:
        body = self._body()
        if body is None:
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = read_request(self.command, self.path, headers, body)
        if self._is_allowed(request, headers):
            response = self.server.answer(request)
        else:
            error = unauthorized()
            response = Response(code=error.code, body=orjson.dumps(error.status()))
        if response.abandoned:
            self._drop()
        elif response.stream is None:
            self._send(response)
        else:
            self._send_stream(response.stream)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - http.server's names

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length") or "0"
        if not length.isdigit() or int(length) > _BODY_BYTES_MAX:
            self.send_error(413, "Request entity too large")
            self.close_connection = True
            return None
        return self.rfile.read(int(length))

    def _is_allowed(self, request: Request, headers: dict[str, str]) -> bool:
        if request.path in PUBLIC:
            return True
        kind, _, token = headers.get("authorization", "").partition(" ")
        expected = self.server.token.encode()
        return kind.lower() == "bearer" and hmac.compare_digest(token.encode(), expected)

    def _send(self, response: Response) -> None:
        self.send_response(response.code)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def _send_stream(self, stream: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for chunk in stream:
            if chunk:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                self.wfile.flush()
            elif self._peer_left():
                self.close_connection = True
                return
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _drop(self) -> None:
        """Break the connection, as when it is lost together with its answer."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.connection, socket.SHUT_RDWR)

    def _peer_left(self) -> bool:
        """Return whether the client has disconnected: during a watch it sends nothing else."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable)

    @override
    def handle(self) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError, ssl.SSLError):
            cast("ssl.SSLSocket", self.connection).do_handshake()
            super().handle()

    @override
    def finish(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().finish()


class HttpServer(ThreadingHTTPServer):
    """Listens on 127.0.0.1 and answers each connection in a thread of its own.

    Args:
        port: 0 chooses a free one.
        context: TLS of the server's side.
        token: Bearer token that every request but health and version must carry.
        answer: Makes the response to a request; called from many threads.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, port: int, context: ssl.SSLContext, token: str, answer: Answer) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self._context = context
        self.token = token
        self.answer = answer
        self._connections: set[socket.socket] = set()
        self._guard = threading.Lock()
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True, name="http"
        )

    @property
    def url(self) -> str:
        """Return where it listens."""
        return f"https://127.0.0.1:{self.server_address[1]}"

    def start(self) -> None:
        """Serve from a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port and every connection; return when nothing is served any more."""
        self.shutdown()
        self.server_close()
        with self._guard:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                # The socket's own shutdown: TLS's would end the session during its thread's use.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
        self._thread.join()

    @override
    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept; the handshake runs in the connection's thread, where it may take time."""
        plain, address = super().get_request()
        secured = self._context.wrap_socket(
            plain, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=True
        )
        with self._guard:
            self._connections.add(secured)
        return secured, address

    @override
    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._connections.discard(cast("socket.socket", request))
        with contextlib.suppress(OSError):
            socket.socket.shutdown(request, socket.SHUT_WR)
        self.close_request(request)
