"""Every git command ends in time, whatever the remote does and whatever the image lacks."""

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from subprocess import PIPE

import pytest

from reconciler.adapters.git.bounded import bounded
from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.model.errors import Unavailable, UsageError
from tests.git_remote import GIT_TIMEOUT_SECONDS, make_remote, write_and_push


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


def test_output_over_the_limit_is_no_success_of_a_git_that_was_done(tmp_path: Path) -> None:
    """An empty list of files that git is said to have given would remove every rendered file."""
    command = ["git", "-C", str(tmp_path), "--version"]
    with subprocess.Popen(command, stdout=PIPE, stderr=PIPE, start_new_session=True) as process:
        assert process.wait(GIT_TIMEOUT_SECONDS) == 0
        status, out, error = bounded(process, GIT_TIMEOUT_SECONDS, output_bytes_max=3)
    assert (status != 0, out, error) == (True, b"", b"Output limit: more than 3 bytes")


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_file_as_a_remote_is_refused_before_git_reads_it(tmp_path: Path, prefix: str) -> None:
    """Git takes it for a bundle and reads to its end: a large one used up the whole time limit."""
    with (tmp_path / "file").open("wb") as stream:
        stream.truncate(3 << 30)
    began = time.monotonic()
    with pytest.raises(UsageError, match="file is a file"):
        GitRepository(GitSettings(url=f"{prefix}{tmp_path / 'file'}"))
    assert time.monotonic() - began < GIT_TIMEOUT_SECONDS


def test_file_that_names_a_repository_is_followed(tmp_path: Path) -> None:
    """A work tree of `git worktree` or a submodule has a file `.git`."""
    make_remote(tmp_path, {"README.md": "fleets\n"})
    (tmp_path / "pointer").write_text(f"gitdir: {tmp_path / 'remote.git'}\n")
    port = GitRepository(GitSettings(url=str(tmp_path / "pointer")))
    assert port.fetch().id
    port.close()


def test_copy_with_many_files_is_made_anew(tmp_path: Path) -> None:
    """Each commit left five files for ever, and each poll looked at every one of them."""
    work = make_remote(tmp_path, {"sectors.yaml": "x: 0\n"})
    copy = tmp_path / "copy.git"
    settings = GitSettings(url=str(tmp_path / "remote.git"), directory=copy, copy_files_max=120)
    port = GitRepository(settings)
    counted = []
    for number in range(42):
        head = write_and_push(work, "sectors.yaml", f"x: {number + 1}\n", f"Change {number}")
        assert port.fetch().id == head
        counted.append(sum(1 for each in copy.rglob("*") if each.is_file()))
    port.close()
    assert max(counted) < 130
    assert any(later < sooner / 2 for sooner, later in pairwise(counted))
