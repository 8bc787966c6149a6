"""The folder in which the local copy of a repository is: one process at a time, and its size."""

import fcntl
import os
from pathlib import Path

from reconciler.model.errors import ToolError


def locked(directory: Path) -> int:
    """Lock a directory for this process; a second writer would replace it during our work.

    Returns:
        The handle that holds the lock until it is closed.

    Raises:
        ToolError: Another process has it, or it cannot be written.
    """
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(f"{directory}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ToolError(str(directory), f"cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise ToolError(str(directory), "another process uses this local copy") from error
    return handle


def size(directory: Path) -> tuple[int, int]:
    """Return how many bytes and how many regular files are below a directory."""
    sizes = [file.lstat().st_size for file in directory.rglob("*") if file.is_file()]
    return sum(sizes), len(sizes)
