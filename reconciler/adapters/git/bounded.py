"""Ends git, and the programs that it started, within a time limit, and bounds their output.

GitPython's own time limit needs `ps` or `pgrep`, which slim images do not have: it would kill only
git, and continue to wait for the helper that talks to the remote.
"""

import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress

GRACE_SECONDS = 2.0
"""After SIGTERM, git has this long to remove its lock files; then SIGKILL follows."""
OUTPUT_BYTES_MAX = 16 * 1024 * 1024
"""The lines of some 100,000 files. A few kilobytes of nested trees may produce any amount."""
_ERROR_BYTES_MAX = 1024 * 1024
_READ_BYTES = 256 * 1024


def bounded(
    process: "subprocess.Popen[bytes]",
    timeout_seconds: float,
    output_bytes_max: int = OUTPUT_BYTES_MAX,
) -> tuple[int, bytes, bytes]:
    """Return status, standard output and standard error of a process that leads a session.

    The status of a process that was ended is never 0, even if it had finished while its output
    waited to be read.

    Args:
        process: A process that reads its input from a file.
        timeout_seconds: The time limit; after that the process is ended, and its standard error
            says only that.
        output_bytes_max: The limit of its output; beyond it the process is ended, and its standard
            error says only that.
    """
    deadline = time.monotonic() + timeout_seconds
    assert process.stdout is not None, "GitPython opens pipes"
    assert process.stderr is not None, "as above"
    out, error = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, out)
        selector.register(process.stderr, selectors.EVENT_READ, error)
        while selector.get_map():
            left = deadline - time.monotonic()
            ready = selector.select(left) if left > 0 else []
            if not ready:
                return _ended(process, f"Timeout: no end within {timeout_seconds:g} s")
            for key, _ in ready:
                chunk = os.read(key.fd, _READ_BYTES)
                if not chunk:
                    selector.unregister(key.fileobj)
                key.data.extend(chunk)
            if len(out) > output_bytes_max:
                return _ended(process, f"Output limit: more than {output_bytes_max} bytes")
            del error[_ERROR_BYTES_MAX:]
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return _ended(process, f"Timeout: no end within {timeout_seconds:g} s")
    return process.returncode, bytes(out), bytes(error)


def _ended(process: "subprocess.Popen[bytes]", text: str) -> tuple[int, bytes, bytes]:
    """End the whole session of the process; return the text in place of its output."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            # It is still read, so that a process that prints can end.
            process.communicate(timeout=GRACE_SECONDS)
            break
    return process.returncode or -signal.SIGTERM, b"", text.encode()
