"""Reads and creates files in untrusted folders: never follows a link, a pipe or a device.

A folder from a repository or from another job may hold a link to any file that this user can read
or write, a pipe that never ends, or a file that fills the memory.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_AT_ONCE = os.O_NONBLOCK | os.O_CLOEXEC
"""Without O_NONBLOCK, opening a pipe waits until somebody writes to it."""
_PLAINLY = os.O_NOFOLLOW | _AT_ONCE


def is_special_file(path: Path) -> bool:
    """Return whether it is a pipe, a socket or a device: reading one may never end."""
    return path.exists() and not path.is_file() and not path.is_dir()


def open_plain(path: Path, *, links: bool = False) -> BufferedReader:
    """Open a regular file for reading.

    Args:
        path: The file.
        links: Whether it may be a link to one, as every file of a mounted ConfigMap is.

    Raises:
        IsADirectoryError: It is a directory.
        OSError: It does not exist, cannot be opened, or is not a regular file.
    """
    try:
        handle = os.open(path, os.O_RDONLY | (_AT_ONCE if links else _PLAINLY))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "is a symbolic link", str(path)) from error
        raise
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, "is not a regular file", str(path))
    return os.fdopen(handle, "rb")


def read_plain(path: Path, bytes_max: int) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: As `open_plain`; or it has more than `bytes_max` bytes.
    """
    with open_plain(path) as stream:
        content = stream.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise OSError(errno.EFBIG, f"is longer than {bytes_max} bytes", str(path))
    return content


def make_plain(path: Path, content: bytes) -> None:
    """Create a file that does not exist yet.

    Args:
        path: Nothing may have this name, not even a dangling link.
        content: Its content.

    Raises:
        FileExistsError: Something has this name.
        OSError: It cannot be created.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAINLY, 0o666)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
