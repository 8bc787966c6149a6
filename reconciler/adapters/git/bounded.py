"""Ends git in time, together with the programs that git itself began.

GitPython's own time limit asks `ps` or `pgrep` for them, which slim images do not have: it would
kill git alone, and wait on for the helper that speaks with the remote.
"""

import os
import signal
import subprocess
from contextlib import suppress

GRACE_SECONDS = 2.0
"""After SIGTERM, for git to take its lock files away; then SIGKILL follows."""


def bounded(process: "subprocess.Popen[bytes]", timeout_seconds: float) -> tuple[bytes, bytes]:
    """Standard output and standard error of a process that leads a session of its own.

    Args:
        process: Reads its input from a file.
        timeout_seconds: Then it is ended, and that is all its standard error says.
    """
    try:
        return process.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=GRACE_SECONDS)
                break
        text = f"Timeout: the command did not complete in {timeout_seconds:g} secs."
        return b"", text.encode()
