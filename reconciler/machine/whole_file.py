"""Replaces files atomically: a reader sees the old content or the new, never a part."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def put_whole(path: Path) -> Iterator[Path]:
    """Yield a path to write to; its file replaces another when the block ends.

    Args:
        path: What is replaced; its folder exists.

    Raises:
        OSError: It cannot be written; the old content stays.
    """
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)  # left by a process that was killed
    try:
        yield partial
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


@contextmanager
def put_out(path: Path) -> Iterator[Path]:
    """Replace like `put_whole`, for a person's path: devices, pipes and links stay what they are.

    Args:
        path: What is written. For a link, its destination is replaced.

    Raises:
        OSError: It cannot be written.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        yield path
        return
    with put_whole(path.resolve() if path.is_symlink() else path) as partial:
        yield partial
