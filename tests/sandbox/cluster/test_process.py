"""The cluster as a process: one line when ready, and nothing left behind."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from reconciler.sandbox.cluster.server import ClusterServer

DEADLINE_SECONDS = 120
SERVE = [sys.executable, "-m", "reconciler.sandbox.cluster", "--port", "0"]
PARENT = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:] + ["--parent", str(os.getpid())])
child.wait()
"""


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are killed when the test leaves them running."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def start(started: list[subprocess.Popen[str]], argv: list[str]) -> tuple[Any, dict[str, Any]]:
    """A process and the line that it prints when it is ready."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)
    started.append(process)
    stream: IO[str] | None = process.stdout
    assert stream is not None
    return process, json.loads(stream.readline())


def is_served(url: str) -> bool:
    """Whether anybody listens there."""
    host, _, port = url.removeprefix("https://").partition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_process_ends_on_signal_without_a_trace(
    started: list[subprocess.Popen[str]], number: signal.Signals
) -> None:
    """Sandboxes would eat a developer's machine one port and folder at a time."""
    process, line = start(started, SERVE)
    kubeconfig = Path(line["kubeconfig"])
    assert is_served(line["url"])
    assert kubeconfig.stat().st_mode & 0o077 == 0
    process.send_signal(number)
    assert process.wait(DEADLINE_SECONDS) == 0
    assert not is_served(line["url"])
    assert not kubeconfig.parent.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_process_ends_when_its_parent_is_killed(started: list[subprocess.Popen[str]]) -> None:
    """A killed test run would leave clusters running."""
    parent, line = start(started, [sys.executable, "-c", PARENT, *SERVE])
    assert is_served(line["url"])
    parent.kill()
    parent.wait()
    assert parent.stdout is not None
    assert parent.stdout.read() == ""  # the pipe ends when the child that holds it has ended
    assert not is_served(line["url"])
    assert not Path(line["kubeconfig"]).parent.exists()


def test_server_stopped_frees_port_and_files() -> None:
    """Hundreds of tests in one process would run out of both."""
    before = _open_files()
    for _ in range(3):
        with ClusterServer() as server:
            assert is_served(server.url)
            folder = server.kubeconfig.parent
        assert not is_served(server.url)
        assert not folder.exists()
    assert _open_files() <= before + 2


def _open_files() -> int:
    """How many files and sockets this process has open; 0 where that is not known."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0
