"""Recorded demand in a directory: a compressed file per day, written by a thread."""

import gzip
import os
import re
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from io import FileIO
from pathlib import Path
from typing import Final

from reconciler.adapters.recording.queued import LINES_LOST, UNWRITTEN_BYTES_MAX, QueuedLog
from reconciler.model.errors import PortError, Unavailable

BYTES_MAX: Final = 4 * 2**30
"""The limit of all files together: the oldest are removed."""
_NAME: Final = re.compile(r"demand-\d{4}-\d\d-\d\d\.jsonl\.gz", re.ASCII)
"""Names that `_name_of` gives. Others that begin like them, such as the saved record of a day, are
somebody else's."""
_DAY: Final = timedelta(days=1)


class DirectoryLog(QueuedLog):
    """Appends lines to `demand-<day>.jsonl.gz`, each time as a separate gzip member.

    What was written stays readable if the process ends during the next member: see
    `records.demand.read_recorded`. A member that does not fit on the disk is removed again.

    Args:
        directory: Created when it does not exist.
        keep_seconds: Files of days that ended longer ago are removed, from the second of two
            consecutive days on.
        failed: Called with the reason when lines could not be written; the loop goes on.
        bytes_max: The limit of all files together.
    """

    def __init__(
        self,
        directory: Path,
        keep_seconds: float,
        failed: Callable[[PortError], None],
        bytes_max: int = BYTES_MAX,
    ) -> None:
        self._directory = directory
        self._keep = timedelta(seconds=keep_seconds)
        self._bytes_max = bytes_max
        self._unwritten: deque[tuple[datetime, bytes]] = deque()
        """Lines that could not be written yet, with their times."""
        super().__init__(failed)

    def write(self, at: datetime, lines: bytes) -> None:
        """See `QueuedLog`; lines that cannot be saved are kept, and saved before the next ones."""
        if sum(len(each) for _, each in self._unwritten) > UNWRITTEN_BYTES_MAX:
            self._unwritten.clear()
            raise Unavailable(str(self._directory), LINES_LOST)
        self._unwritten.append((at, lines))
        self.rest()

    def rest(self) -> None:
        """See `QueuedLog`."""
        while self._unwritten:
            at, lines = self._unwritten.popleft()
            try:
                fresh = self._append(at, lines)
            except OSError as error:
                self._unwritten.appendleft((at, lines))
                raise self._failure(error) from error
            if fresh:
                try:
                    self._remove_old(at)
                except OSError as error:
                    raise self._failure(error) from error

    def _failure(self, error: OSError) -> Unavailable:
        return Unavailable("recording", f"{self._directory}: {error.strerror or error}")

    def _append(self, at: datetime, lines: bytes) -> bool:
        """Write lines at the end of their day's file; return whether they are its first ones."""
        self._directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        path = self._directory / _name_of(at)
        # Without a buffer, since a buffer would be written when the file is closed.
        with path.open("ab", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            try:
                _write_all(file, gzip.compress(lines, mtime=0))
            except OSError:
                file.truncate(size)
                raise
        return size == 0

    def _remove_old(self, at: datetime) -> None:
        """Remove what is older than the limit, and the oldest of what is too much.

        Nothing is too old where the day before was not recorded: the clock may have jumped ahead.
        """
        files = sorted(filter(_is_ours, self._directory.glob("demand-*")), reverse=True)
        usual = any(path.name == _name_of(at - _DAY) for path in files)
        oldest = _name_of(at - self._keep) if usual else ""
        held = 0
        for path in files:
            held += path.stat().st_size
            if path.name < oldest or held > self._bytes_max:
                path.unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    """Return whether a file has the name of a day's record."""
    return _NAME.fullmatch(path.name) is not None


def _name_of(at: datetime) -> str:
    return f"demand-{at:%Y-%m-%d}.jsonl.gz"


def _write_all(file: FileIO, content: bytes) -> None:
    while content:
        content = content[file.write(content) :]
