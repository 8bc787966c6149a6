"""Recordings of which a part is missing, or unpacks to more than there is memory."""

import gzip
import io
import struct
import tracemalloc

import pytest

from reconciler.model.errors import InputError
from reconciler.records.demand import read_recorded
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
