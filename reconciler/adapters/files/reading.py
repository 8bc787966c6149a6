"""Reads the files that a person names on the command line."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from reconciler.model.errors import InputError, why_unreadable

SIZE_MAX_BYTES = 2 * 1024**3
"""30,000 pods are a quarter of a GiB; a much larger file is not a cluster's."""


def read_inputs(
    paths: Sequence[str], stdin: BinaryIO | None = None, *, hint: str = ""
) -> list[tuple[str, bytes]]:
    """Return each file's name for errors and its bytes; `-` is standard input; repeats count once.

    Args:
        paths: The files.
        stdin: Standard input; default: the process's own.
        hint: What to do when one does not exist: what writes such files.

    Raises:
        InputError: A file cannot be read or is larger than 2 GiB.
    """
    return [_read(path, stdin, hint) for path in dict.fromkeys(paths)]


def _read(path: str, stdin: BinaryIO | None, missing: str) -> tuple[str, bytes]:
    if path == "-":
        where = "standard input"
        return where, _limited(stdin if stdin is not None else sys.stdin.buffer, where)
    file = Path(path)
    try:
        if file.is_file() and file.stat().st_size > SIZE_MAX_BYTES:
            raise InputError(path, "is larger than the 2 GiB that are read")
        with file.open("rb") as stream:
            return path, _limited(stream, path)
    except (OSError, ValueError) as error:
        hint = "name the files in it" if isinstance(error, IsADirectoryError) else ""
        hint = missing if isinstance(error, FileNotFoundError) else hint
        raise InputError(path, why_unreadable(error), hint) from error


def _limited(stream: BinaryIO, where: str) -> bytes:
    """Read within the limit: pipes do not state their size."""
    body = stream.read(SIZE_MAX_BYTES + 1)
    if len(body) > SIZE_MAX_BYTES:
        raise InputError(where, "is larger than the 2 GiB that are read")
    return body
