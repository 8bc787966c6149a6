"""Recorded demand in one file: plain, or compressed according to its name."""

import gzip
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

import zstandard

from reconciler.machine.whole_file import put_out
from reconciler.model.errors import InputError

_CHUNK_BYTES: Final = 1 << 20


def write_demand_file(path: Path, lines: Iterable[bytes]) -> int:
    """Replace a file, readable by its owner only, by one with these lines; or write to a device.

    Returns:
        How many lines were written.

    Raises:
        InputError: It cannot be written.
    """
    written = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            put_out(path) as part,
            DemandFile(part, named=path.name) as file,
        ):
            for line in lines:
                file.append(line)
                written += 1
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror}") from error
    return written


class DemandFile:
    """Appends lines; what was flushed stays readable when the process ends.

    A regular file loses its old content first and is made readable by its owner only. Pipes and
    devices stay as they are.

    Args:
        path: The file.
        named: The name whose ending determines the compression (`.gz`, `.zst`); default: the file's
            own.

    Raises:
        OSError: It cannot be opened or written.
    """

    def __init__(self, path: Path, *, named: str = "") -> None:
        flags = os.O_WRONLY | os.O_CREAT
        self._stream = os.fdopen(os.open(path, flags, 0o600), "wb")
        if stat.S_ISREG(os.fstat(self._stream.fileno()).st_mode):
            os.fchmod(self._stream.fileno(), 0o600)
            self._stream.truncate(0)
        self._name = (named or path.name).lower()
        self._waiting: list[bytes] = []
        self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()
        self._stream.close()

    def append(self, lines: bytes) -> None:
        """Append whole lines; they are written by the MiB, or by `flush`."""
        self._waiting.append(lines)
        self._bytes += len(lines)
        if self._bytes >= _CHUNK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write buffered lines, as a separate compressed part."""
        if self._waiting:
            self._stream.write(self._compressed(b"".join(self._waiting)))
            self._stream.flush()
        self._waiting, self._bytes = [], 0

    def _compressed(self, lines: bytes) -> bytes:
        if self._name.endswith(".gz"):
            return gzip.compress(lines, mtime=0)
        if self._name.endswith(".zst"):
            return zstandard.ZstdCompressor().compress(lines)
        return lines
