"""Ends git in time and keeps what it prints bounded, together with the programs that git began.

GitPython's own time limit asks `ps` or `pgrep` for them, which slim images do not have: it would
kill git alone, and wait on for the helper that speaks with the remote.
"""

import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress

GRACE_SECONDS = 2.0
"""After SIGTERM, for git to take its lock files away; then SIGKILL follows."""
OUTPUT_BYTES_MAX = 16 * 1024 * 1024
"""The lines of some 100,000 files. A few kilobytes of nested trees may stand for any number."""
_ERROR_BYTES_MAX = 1024 * 1024
_READ_BYTES = 256 * 1024


def bounded(
    process: "subprocess.Popen[bytes]",
    timeout_seconds: float,
    output_bytes_max: int = OUTPUT_BYTES_MAX,
) -> tuple[int, bytes, bytes]:
    """Status, standard output and standard error of a process that leads a session of its own.

    The status of one that is ended is never 0: it may have been done while the rest of its output
    waited to be read.

    Args:
        process: Reads its input from a file.
        timeout_seconds: Then it is ended, and that is all its standard error says.
        output_bytes_max: When it prints more it is ended, and that is all its standard error says.
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
    """Ends the whole session of the process; nothing and the text instead of its output."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            # Reads on, so that a process that still prints can end.
            process.communicate(timeout=GRACE_SECONDS)
            break
    return process.returncode or -signal.SIGTERM, b"", text.encode()
