"""Recorded demand in a directory: a compressed file for each day, written by a thread."""

import gzip
import queue
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from reconciler.model.errors import PortError, Unavailable

QUEUE_MAX: Final = 16
BYTES_MAX: Final = 4 * 2**30
"""Of all files together: the oldest go."""
CLOSE_SECONDS: Final = 5.0
PATTERN: Final = "demand-*.jsonl.gz"


class DirectoryLog:
    """Appends lines to `demand-<day>.jsonl.gz`, each time as a gzip member of its own.

    What is written stays readable when the process ends in the middle of the next member.

    Args:
        directory: Made when it does not exist.
        keep_seconds: Files of days that ended longer ago are removed.
        failed: Hears why lines could not be written; the loop goes on.
        bytes_max: Of all files together.
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
        self._failed = failed
        self._bytes_max = bytes_max
        self._queue: queue.Queue[tuple[datetime, bytes] | None] = queue.Queue(QUEUE_MAX)
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        self._thread.start()

    def append(self, at: datetime, lines: bytes) -> bool:
        """See `DemandLog`."""
        try:
            self._queue.put_nowait((at, lines))
        except queue.Full:
            return False
        return True

    def close(self) -> None:
        """Write what waits, for a few seconds at most."""
        try:
            self._queue.put(None, timeout=CLOSE_SECONDS)
        except queue.Full:
            return
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while (waiting := self._queue.get()) is not None:
            at, lines = waiting
            try:
                self._write(at, lines)
            except OSError as error:
                reason = f"{self._directory}: {error.strerror or error}"
                self._failed(Unavailable("recording", reason))

    def _write(self, at: datetime, lines: bytes) -> None:
        self._directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        path = self._directory / f"demand-{at:%Y-%m-%d}.jsonl.gz"
        fresh = not path.exists()
        with path.open("ab") as file:
            file.write(gzip.compress(lines, mtime=0))
        if fresh:
            self._remove_old(at)

    def _remove_old(self, at: datetime) -> None:
        """Remove what is older than is kept, and the oldest of what is too much."""
        oldest = f"demand-{at - self._keep:%Y-%m-%d}"
        files = sorted(self._directory.glob(PATTERN), reverse=True)
        held = 0
        for path in files:
            held += path.stat().st_size
            if path.name < oldest or held > self._bytes_max:
                path.unlink(missing_ok=True)
