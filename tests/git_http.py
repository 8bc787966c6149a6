"""A git remote over HTTP that wants a token: git's own http-backend behind a small server."""

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.git_remote import GIT_TIMEOUT_SECONDS, git

_PATH = os.environ.get("PATH", "")  # noqa: TID251 - the backend starts git itself


@contextmanager
def git_over_http(directory: Path, token: str) -> Iterator[str]:
    """Serve `remote.git` of a directory on loopback, as `team/fleets.git`; yields its address."""
    git(directory / "remote.git", "config", "http.receivepack", "true")
    handler = type("Handler", (_Handler,), {"directory": directory, "token": token})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/team/fleets.git"
    finally:
        server.shutdown()
        thread.join(timeout=GIT_TIMEOUT_SECONDS)
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """The CGI protocol, as far as git needs it."""

    directory: Path
    token: str

    def do_GET(self) -> None:
        """Reference advertisements."""
        self._serve()

    def do_POST(self) -> None:
        """Packs."""
        self._serve()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its signature
        """Say nothing."""

    def _serve(self) -> None:
        expected = base64.b64encode(f"x-access-token:{self.token}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {expected}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self._chunks()
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            env=self._environment(len(body)),
            capture_output=True,
            timeout=GIT_TIMEOUT_SECONDS,
            check=True,
        )
        self._answer(done.stdout)

    def _chunks(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        return b"".join(parts)

    def _environment(self, length: int) -> dict[str, str]:
        parts = urlsplit(self.path)
        return {
            "PATH": _PATH,
            "GIT_PROJECT_ROOT": str(self.directory),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": parts.path.replace("/team/fleets.git", "/remote.git"),
            "QUERY_STRING": parts.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "x-access-token",
            "REMOTE_ADDR": "127.0.0.1",
        }

    def _answer(self, output: bytes) -> None:
        head, _, body = output.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((int(v.split()[0]) for k, v in headers if k == "Status"), 200)
        self.send_response(status)
        for key, value in headers:
            if key != "Status":
                self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
