"""Recordings of which a part is missing, or unpacks to more than there is memory."""

import gzip
import io
import tracemalloc

import pytest

from reconciler.model.errors import InputError
from reconciler.records.demand import read_recorded


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
