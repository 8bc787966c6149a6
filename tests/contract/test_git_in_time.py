"""Every git command ends in time, whatever the remote does and whatever the image lacks."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.model.errors import Unavailable
from tests.git_remote import GIT_TIMEOUT_SECONDS


@contextmanager
def endless_remote() -> Iterator[tuple[str, threading.Event, threading.Event]]:
    """A remote that talks on and on; its address, when it was cut off, when it gave up."""
    cut, gave_up = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            for _ in range(10 * GIT_TIMEOUT_SECONDS):
                try:
                    self.wfile.write(b"x" * 4096)
                except OSError:
                    cut.set()
                    return
                if cut.wait(0.1):
                    return
            gave_up.set()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/x.git", cut, gave_up
    finally:
        cut.set()
        server.shutdown()
        thread.join()
        server.server_close()


def test_remote_that_never_ends_is_given_up_with_all_that_git_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slim images have neither `ps` nor `pgrep`: git's helper would hold the loop for hours."""
    (tmp_path / "git").symlink_to(str(shutil.which("git")))
    monkeypatch.setenv("PATH", str(tmp_path))
    with endless_remote() as (url, cut, gave_up):
        port = GitRepository(GitSettings(url=url, network_timeout_seconds=2))
        with pytest.raises(Unavailable, match="in time"):
            port.fetch()
        assert cut.wait(GIT_TIMEOUT_SECONDS)
        assert not gave_up.is_set()
        port.close()
