"""Files that are put in place whole: a reader sees the old content or the new, never a part."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def put_whole(path: Path) -> Iterator[Path]:
    """A path to write to, whose file takes the place of another when the block ends.

    Args:
        path: What is replaced; its folder is there.

    Raises:
        OSError: It cannot be written; what was there stays.
    """
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)  # of a process that was killed
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
    """As `put_whole`, for a path that a person names: devices, pipes and links stay what they are.

    Args:
        path: What is written. A link leads to the file that is replaced.

    Raises:
        OSError: It cannot be written.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        yield path
        return
    with put_whole(path.resolve() if path.is_symlink() else path) as partial:
        yield partial
