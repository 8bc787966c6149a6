"""An HTTP server that answers as a test says: for what no well-behaved server can be made to do."""

import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import orjson


class Request(NamedTuple):
    """What was asked."""

    method: str
    path: str
    body: bytes
    headers: Mapping[str, str] = {}


class Answer(NamedTuple):
    """What is said; a stream when `lines` are given, which stays open until `hold` is set."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}
    lines: Iterable[bytes] | None = None
    hold: threading.Event | None = None


Script = Callable[[Request], Answer | None]
"""None: the connection ends without a word."""


def json_answer(body: Any, status: int = 200, **headers: str) -> Answer:
    """An answer in JSON; header names with _ for -."""
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return Answer(status, orjson.dumps(body), named)


@contextmanager
def scripted_server(script: Script, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve on loopback, over TLS with a context; yields the URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            found = script(
                Request(self.command, self.path, self.rfile.read(length), dict(self.headers))
            )
            if found is None:
                self.close_connection = True
                return
            if "Date" in found.headers:  # else it is the machine's
                self.send_response_only(found.status)
            else:
                self.send_response(found.status)
            for key, value in found.headers.items():
                self.send_header(key, value)
            if found.lines is None:
                self.send_header("Content-Length", str(len(found.body)))
                self.end_headers()
                self.wfile.write(found.body)
                return
            self.send_header("Connection", "close")
            self.end_headers()
            for line in found.lines:
                self.wfile.write(line + b"\n")
                self.wfile.flush()
            if found.hold is not None:
                found.hold.wait(30)
            self.close_connection = True

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - http.server's names

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if context is None else "https"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"{scheme}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
