"""Reads whole files of demand: decompressed on the fly, within limits, in order of time."""

import gzip
import io
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO, cast

import zstandard

from reconciler.model.demand import Demand, DemandLine, PodDemand, PodEnd
from reconciler.model.errors import InputError
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
_IN_VAIN_TIMES = 4
"""How often the limit of a file's content may be unpacked in search of its complete members."""
_WINDOW_BYTES_MAX = 1 << 27
"""Memory for one file: the largest window of `zstd --long`."""
_NEVER = datetime.min.replace(tzinfo=UTC)
_EVER = datetime.max.replace(tzinfo=UTC)
_BEGIN_OF_RECORDING = "begin-of-recording"
_END_OF_RECORDING = "end-of-recording"
OF_NO_POD = frozenset({_BEGIN_OF_RECORDING, _END_OF_RECORDING})
"""The ids of lines that end no pod; a pod's id is a UID, or a namespace and a name."""


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
    in_vain_max = _IN_VAIN_TIMES * (bytes_max + _BLOCK_BYTES)
    while at >= 0 and bytes_max >= 0 and in_vain_max >= 0:
        size, work = _member_size(memoryview(file)[at:], bytes_max)
        if size:
            bytes_max -= work
            yield memoryview(file)[at : at + size]
        else:
            in_vain_max -= work
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


def folded(lines: Iterable[DemandLine], begin: datetime = _NEVER) -> Demand:
    """Return lines in any order as one demand, in which each pod has its end.

    Of several lines with the id of one pod the last one counts. Pods from before the beginning
    count as created then, and run for the rest of their time; those that ended before are left out.

    Args:
        lines: The lines.
        begin: When they begin; later where the recording did (`recorded_from`).
    """
    kept: dict[str | int, DemandLine] = {}
    ends: dict[str, PodEnd] = {}
    last, begun, told = _NEVER, _EVER, _EVER
    for number, line in enumerate(lines):
        match line:
            case PodDemand():
                kept[line.id] = line
            case PodEnd():
                ends[line.id] = line
                last = max(last, line.at)
            case _:
                kept[number] = line
        if isinstance(line, PodEnd) and line.id == _BEGIN_OF_RECORDING:
            begun = min(begun, line.at)
        elif not isinstance(line, PodDemand | PodEnd) or line.id == _END_OF_RECORDING:
            told = min(told, line.at)
    if begun <= told and begun < _EVER:  # else something was recorded before the line said so
        begin = max(begin, begun)
    whole = (_with_end(line, ends, begin) for line in kept.values())
    every = sorted((line for line in whole if line is not None), key=lambda line: line.at)
    return Demand(lines=tuple(every), end=max(last, max(map(_end, every), default=_NEVER)))


def _with_end(line: DemandLine, ends: Mapping[str, PodEnd], begin: datetime) -> DemandLine | None:
    """Return a line with its end, cut off at `begin`; None for a pod that ended before."""
    if not isinstance(line, PodDemand):
        return line
    end = ends.get(line.id)
    pod = line if end is None else _ended(line, end)
    if pod.at >= begin:
        return pod
    ended_at = _end(pod) if end is None else end.at
    endless = end is None and pod.until is None and pod.ran_seconds is None
    if ended_at <= begin and not endless:
        return None
    ran = pod.ran_seconds
    if ran is not None:
        # A pod that waited until after the beginning ran for less than it has been there.
        ran = min(ran, (ended_at - begin).total_seconds())
    return replace(pod, at=begin, ran_seconds=ran)


def recorded_from(at: datetime) -> PodEnd:
    """Return a line that says that nothing was recorded before, whenever the pods were created."""
    return PodEnd(at=at, id=_BEGIN_OF_RECORDING)


def recorded_until(at: datetime) -> PodEnd:
    """Return a line that says until when was recorded, as the last change may be long before."""
    return PodEnd(at=at, id=_END_OF_RECORDING)


def with_end(lines: Iterable[DemandLine], end: datetime) -> Iterator[DemandLine]:
    """Yield the lines, and that the recording ended then where none of them lasts until then."""
    last = _NEVER
    for line in lines:
        last = max(last, _end(line))
        yield line
    if last < end:
        yield recorded_until(end)


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


def _ended(pod: PodDemand, end: PodEnd) -> PodDemand:
    if end.ran_seconds is not None:
        return replace(pod, ran_seconds=end.ran_seconds, kept_seconds=end.kept_seconds, until=None)
    return replace(pod, until=max(end.at, pod.at), ran_seconds=None, kept_seconds=None)


def _end(line: DemandLine) -> datetime:
    """Return the last moment that a line covers."""
    if isinstance(line, PodDemand) and line.ran_seconds is not None:
        return line.at + timedelta(seconds=line.ran_seconds)
    return getattr(line, "until", None) or line.at
