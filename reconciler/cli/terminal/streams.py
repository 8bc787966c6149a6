"""Makes standard input, output and error usable before a command runs."""

import io
import os
import sys
from contextlib import suppress
from typing import Any, Final, TextIO, cast

from typing_extensions import override

STANDARD_OUTPUT: Final = "standard output"
"""What replaces the name of a file in its errors."""


class _StandardOutput(io.FileIO):
    """Descriptor 1, whose errors name it: those of writing to a descriptor name no file.

    When its reader has ended (`head`, `grep -q`) the rest is discarded: the command does what it
    was asked to do, and ends with its own exit code.
    """

    reader_ended = False

    @override
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            self.reader_ended = True
            _discard(self.fileno())
            return memoryview(data).nbytes
        except OSError as error:
            reason = (error.strerror or "cannot be written").lower()
            raise OSError(error.errno, reason, STANDARD_OUTPUT) from error


class _StandardError(io.FileIO):
    """Descriptor 2. What cannot be written there is lost: the result does not depend on it."""

    @override
    def write(self, data: Any, /) -> int:
        with suppress(OSError):
            return super().write(data)
        return memoryview(data).nbytes


def prepare() -> None:
    """Make all three streams usable, however this process was started.

    A closed stream reads as empty and accepts everything. Standard output escapes what its encoding
    cannot represent, as standard error does. Standard error may be a full disk.
    """
    if sys.stdin is None:
        sys.stdin = _nothing(0, os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = _nothing(1, os.O_WRONLY)
    if sys.stderr is None:
        sys.stderr = _nothing(2, os.O_WRONLY)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _over(sys.stdout, _StandardOutput)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _over(sys.stderr, _StandardError)


def _over(before: io.TextIOWrapper, kind: type[io.FileIO]) -> TextIO:
    """Return a stream like the one before, over its descriptor as this kind of file."""
    raw = kind(before.fileno(), "w", closefd=False)
    buffer = raw if before.write_through else io.BufferedWriter(raw)
    return io.TextIOWrapper(
        cast("io.BufferedWriter", buffer),
        encoding=before.encoding,
        errors="backslashreplace",
        line_buffering=before.line_buffering,
        write_through=before.write_through,
    )


def give_up_output() -> None:
    """Discard what cannot be written, so that the end of the process does not retry."""
    with suppress(OSError):
        _discard(sys.stdout.fileno())
        sys.stdout.flush()


def reader_ended() -> bool:
    """Return whether the reader of standard output has ended: commands that watch end then."""
    buffer = getattr(sys.stdout, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    return isinstance(raw, _StandardOutput) and raw.reader_ended


def _discard(descriptor: int) -> None:
    """Send to nowhere what is written to a descriptor from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _nothing(descriptor: int, flags: int) -> TextIO:
    """Open the null device in place of a closed descriptor, which the next file would get.

    Programs that this one starts get it too.
    """
    opened = os.open(os.devnull, flags)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    os.set_inheritable(descriptor, True)  # noqa: FBT003 - takes no name
    return os.fdopen(descriptor, "r" if flags == os.O_RDONLY else "w", closefd=False)
