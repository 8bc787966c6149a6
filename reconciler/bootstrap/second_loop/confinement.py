"""Limits of what a child process may use, which it sets itself before it reads untrusted data."""

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from reconciler.model.errors import ReconcilerError

MEMORY_BYTES_MAX: Final = 1024 * 2**20
"""Address space of this process, and of each git process that it starts."""
FILE_BYTES_MAX: Final = 512 * 2**20
"""The largest size that a local copy of a repository may have."""
NICENESS: Final = 10
_PR_SET_PDEATHSIG: Final = 1
"""Linux; see prctl(2)."""


def confine(parent: int) -> None:
    """Limit this process and what it starts, and end it with its parent.

    Args:
        parent: Process id of the parent.

    Raises:
        ReconcilerError: The parent has ended already.
    """
    for kind, limit in (
        (resource.RLIMIT_AS, MEMORY_BYTES_MAX),
        (resource.RLIMIT_FSIZE, FILE_BYTES_MAX),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        lowest = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (lowest, lowest))
    os.nice(NICENESS)
    # If memory runs out in spite of that, the kernel ends this process and not the capacity loop.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    if sys.platform == "linux":
        # On other systems the end of standard input, which the parent holds open, tells that it
        # ended.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise ReconcilerError("the second loop", "its parent process has ended")
