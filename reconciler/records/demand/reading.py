"""Reads whole files of demand: decompressed on the fly, within limits."""

import gzip
import io
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import zstandard

from reconciler.model.demand import Demand, DemandLine
from reconciler.model.errors import InputError
from reconciler.records.demand.folding import folded
from reconciler.records.demand.lines import LineDecoder
from reconciler.records.demand.zstd_frames import ZstdFrames
from reconciler.records.reasons import reason_of

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_MEMBER = b"\x1f\x8b\x08"
"""How each member of a gzip file begins."""
_GZIP_WINDOW = 31
"""Makes zlib expect the header and the checksum of a gzip member."""
_MEMBER_BLOCK_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 20
_WASTED_TIMES = 4
"""How often the limit of a file's content may be unpacked in search of its complete members."""
_WINDOW_BYTES_MAX = 1 << 27
"""Memory for one file: the largest window of `zstd --long`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is read of one file, as a small compressed file can hold any amount."""

    bytes_max: int = 8 << 30
    """Decompressed."""
    line_bytes_max: int = 1 << 20
    """The largest object that the API server accepts."""
    lines_max: int = 20_000_000


DEFAULT_LIMITS = Limits()


def read_demand(stream: BinaryIO, name: str, limits: Limits = DEFAULT_LIMITS) -> Demand:
    """Return the content of a file of JSON lines, plain or compressed with gzip or zstd.

    Args:
        stream: The file, at its beginning.
        name: Its name in errors.
        limits: How much is read.

    Raises:
        InputError: A line cannot be read, or the file exceeds a limit; the error names the line.
    """
    decoder = LineDecoder()
    return folded(_decoded(lines_of(stream, name, limits), name, decoder))


def read_recorded(
    stream: BinaryIO, name: str, limits: Limits = DEFAULT_LIMITS
) -> tuple[DemandLine, ...]:
    """Return the lines of a file of gzip members, some of which may be incomplete.

    They are as they were written, for `folded` together with those of other days. A writer that is
    killed, or whose disk is full, leaves part of a member, and the next writer appends to it.
    Complete members are read; of a file without one, the complete lines.

    Args:
        stream: The file, at its beginning; it is read twice if a member is incomplete.
        name: What errors call it.
        limits: How much is read.

    Raises:
        InputError: As `read_demand`, for what is in whole members.
    """
    try:
        return tuple(_decoded(lines_of(stream, name, limits), name, LineDecoder()))
    except InputError as error:
        # A faulty line does not prove an incomplete member, whose end may unpack to anything.
        stream.seek(0)
        file = stream.read()
        whole = b"".join(_whole_members(file, limits.bytes_max))
        if whole:
            numbered = lines_of(io.BytesIO(whole), name, limits)
        elif isinstance(error.__cause__, EOFError):
            numbered = _until_torn(lines_of(io.BytesIO(file), name, limits))
        else:
            raise
        return tuple(_decoded(numbered, name, LineDecoder()))


def _until_torn(numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield the whole lines of a file that ends within its only member."""
    try:
        yield from numbered
    except InputError as error:
        if not isinstance(error.__cause__, EOFError):
            raise


def _whole_members(file: bytes, bytes_max: int) -> Iterator[memoryview]:
    """Yield the complete members, compressed; their content is together little more than the limit.

    Nothing is kept of the content: a small file may unpack to more than there is memory. The search
    ends after so much work on incomplete ones, as each of many may reach to the end of the file.
    """
    at = file.find(_MEMBER)
    wasted_bytes_max = _WASTED_TIMES * (bytes_max + _BLOCK_BYTES)
    while at >= 0 and bytes_max >= 0 and wasted_bytes_max >= 0:
        size, work = _member_size(memoryview(file)[at:], bytes_max)
        if size:
            bytes_max -= work
            yield memoryview(file)[at : at + size]
        else:
            wasted_bytes_max -= work
        at = file.find(_MEMBER, at + (size or 1))


def _member_size(file: memoryview, bytes_max: int) -> tuple[int, int]:
    """Return the first member's length and that of its content.

    Of an incomplete one: 0, and how many bytes were read and unpacked to know it.
    """
    unpacker = zlib.decompressobj(wbits=_GZIP_WINDOW)
    unpacked = end = 0
    try:
        for begin in range(0, len(file), _MEMBER_BLOCK_BYTES):
            block: bytes | memoryview = file[begin : begin + _MEMBER_BLOCK_BYTES]
            end = begin + len(block)
            while block and not unpacker.eof and unpacked <= bytes_max:
                unpacked += len(unpacker.decompress(block, _BLOCK_BYTES))
                block = unpacker.unconsumed_tail
            if unpacker.eof:
                return end - len(unpacker.unused_data), unpacked
            if unpacked > bytes_max:
                break
    except zlib.error:
        pass
    return 0, end + unpacked


def lines_of(stream: BinaryIO, name: str, limits: Limits) -> Iterator[tuple[int, bytes]]:
    """Yield the non-empty lines, numbered from 1, without their line ends."""
    number = 0
    left = limits.bytes_max
    try:
        reader = _decompressed(stream)
        while line := reader.readline(limits.line_bytes_max + 1):
            number += 1
            left -= len(line)
            if number == 1:
                line = line.removeprefix(BOM_UTF8)
            if len(line) > limits.line_bytes_max:
                raise InputError(f"{name}:{number}", "the line is longer than "
                                 f"{limits.line_bytes_max:,} bytes")  # fmt: skip
            if left < 0 or number > limits.lines_max:
                raise InputError(name, f"it has more than {limits.lines_max:,} lines or "
                                 f"{limits.bytes_max:,} bytes", "leave out whole days of it, and "
                                 "keep the lines of controllers")  # fmt: skip
            if line.strip():
                yield number, line
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise InputError(f"{name}:{number + 1}", f"cannot be decompressed: {error}") from error


def _decompressed(stream: BinaryIO) -> BinaryIO:
    """Return the content decompressed, whatever the file's name is."""
    head = stream.read(4)
    whole = _Rejoined(head, stream)
    if head.startswith(_GZIP):
        return cast("BinaryIO", gzip.GzipFile(fileobj=whole))
    if head.startswith(_ZSTD):
        frames = ZstdFrames(cast("BinaryIO", whole), _WINDOW_BYTES_MAX)
        return cast("BinaryIO", io.BufferedReader(frames, _BLOCK_BYTES))
    return cast("BinaryIO", io.BufferedReader(whole, _BLOCK_BYTES))


class _Rejoined(io.RawIOBase):
    """A stream whose first bytes have been read already: pipes cannot be rewound."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next bytes."""
        found = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(found) :] if self._head else b""
        buffer[: len(found)] = found
        return len(found)


def _decoded(
    lines: Iterable[tuple[int, bytes]], name: str, decoder: LineDecoder
) -> Iterator[DemandLine]:
    for number, line in lines:
        try:
            yield decoder.decode(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name}:{number}", _said(error), "docs/simulate.md") from error


def _said(error: ValueError | RecursionError) -> str:
    """Return an error's message with the key first; msgspec has it last, as `$.key`."""
    if isinstance(error, RecursionError):
        return reason_of(error)
    what, mark, path = str(error).rpartition(" - at `$.")
    return f"{path.rstrip('`')}: {what}" if mark else str(error)
