"""Slack's incoming webhook on loopback: keeps what it is sent, refuses when it is told to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Queue


class Hook(HTTPServer):
    """A webhook that keeps what it is sent."""

    def __init__(self) -> None:
        self.posted: Queue[str] = Queue()
        self.status = 200
        """What each message is answered with."""
        self.redirects_to = ""
        """Where a redirect leads."""
        self.read: list[str] = []
        """Paths of what was read, and not posted."""
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """The address, its secret included."""
        return f"http://127.0.0.1:{self.server_address[1]}/services/T0/B0/secret"


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        if self.server.redirects_to:
            self.send_header("Location", self.server.redirects_to)
        self.end_headers()
        self.server.posted.put(json.loads(body)["text"])

    def do_GET(self) -> None:
        self.server.read.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        pass


@contextmanager
def slack_hook() -> Iterator[Hook]:
    """Serve one until the end of the block."""
    with Hook() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
