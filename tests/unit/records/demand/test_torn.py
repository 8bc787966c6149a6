"""Recordings of which a part is missing, or unpacks to more than there is memory."""

import gzip
import io
import struct
import tracemalloc

import pytest
import zstandard

from reconciler.model.errors import InputError
from reconciler.records.demand import read_demand, read_recorded
from reconciler.records.demand.reading import Limits


@pytest.mark.parametrize("missing_bytes", [0, 9])
def test_part_that_unpacks_to_much_more_than_it_is_takes_no_memory(missing_bytes: int) -> None:
    """A megabyte of it needed several gigabytes."""
    packed = gzip.compress(b"\0" * (64 << 20), mtime=0)
    stream = io.BytesIO(packed[: len(packed) - missing_bytes])
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="the line is longer than"):
            read_recorded(stream, "demand.jsonl.gz")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 16 << 20


@pytest.mark.timeout(60)
def test_many_begins_of_members_within_each_other_are_not_all_read_to_the_end() -> None:
    """The time grew with the square of the size: fifteen megabytes took most of an hour."""
    header = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    stored = 65_530  # ends where another member's header does: each begin is a member to the end
    unit = header + b"\x00" + struct.pack("<HH", stored, 0xFFFF ^ stored)
    with pytest.raises(InputError, match="the line is longer than"):
        read_recorded(io.BytesIO(unit * 600_000), "demand.jsonl.gz", Limits(bytes_max=1 << 30))


def packed_in_frames(*parts: bytes) -> bytes:
    """A zstd frame for each part, as recorders write one for each flush."""
    return b"".join(map(zstandard.ZstdCompressor().compress, parts))


LINES = tuple(
    b'{"t":"2026-03-01T12:00:00Z","kind":"pod","id":"%d","spec":{"containers":[]}}\n' % number
    for number in range(300)
)


@pytest.mark.parametrize("kept_bytes", [5, 40, -1, -40])
def test_zstd_file_that_ends_within_a_frame_is_refused(kept_bytes: int) -> None:
    """A file that was cut by a full disk was simulated as a shorter and cheaper week."""
    whole = packed_in_frames(b"".join(LINES[:100]), b"".join(LINES[100:]))
    with pytest.raises(InputError, match=r"cut\.jsonl\.zst:\d+: cannot be decompressed: the file"):
        read_demand(io.BytesIO(whole[:kept_bytes]), "cut.jsonl.zst")


def test_zstd_file_of_several_whole_frames_is_read_to_its_end() -> None:
    """Frames that are empty, or larger than what is read at once, would end it."""
    parts = (b"".join(LINES[:1]), b"", b"".join(LINES[1:200]), b"".join(LINES[200:]))
    found = read_demand(io.BytesIO(packed_in_frames(*parts)), "whole.jsonl.zst")
    assert len(found.lines) == len(LINES)


def test_zstd_file_that_unpacks_to_much_more_than_it_is_takes_no_memory() -> None:
    """A few kilobytes hold gigabytes."""
    packed = packed_in_frames(b"\0" * (64 << 20)) * 16
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="the line is longer than"):
            read_demand(io.BytesIO(packed), "demand.jsonl.zst")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 256 << 20
