"""Child processes that never outlive what started them."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
"""Linux prctl(2)."""
_ENDING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_STOP_SECONDS = 10.0


def die_with_parent(parent_id: int) -> None:
    """Ask the kernel for SIGTERM when the parent process ends; call it in the child.

    Args:
        parent_id: Process id of the expected parent: if it is gone already, the child ends now.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent_id:
        os.kill(os.getpid(), signal.SIGTERM)


def start_child(argv: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a program whose first line on stdout says that it is ready.

    The child calls `die_with_parent` itself; it leads a session of its own, so that Ctrl-C on a
    terminal reaches the parent alone, which then ends its children in order.
    """
    return subprocess.Popen(  # noqa: S603 - argv is this interpreter with modules of this package
        list(argv),
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def stop_child(child: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM, then SIGKILL after a while; return when the process has ended."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    if child.stdout is not None:
        child.stdout.close()


class StopSignals:
    """SIGTERM, SIGINT and SIGHUP, noticed from the moment this exists; main thread only.

    The interpreter writes a byte for each signal, in whatever thread the kernel delivers it.
    Neither of the usual ways would do: a handler that sets a `threading.Event` can deadlock on
    the event's own lock, and blocked signals still kill the process through threads that
    libraries have started before (numpy's).
    """

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._writer.settimeout(0)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in _ENDING:
            signal.signal(number, lambda _number, _frame: None)

    def wait(self) -> None:
        """Return when one of them has arrived."""
        self._reader.recv(1)
