"""The table that makes equal specs one object."""

import pytest

from reconciler.model.interning import InternTable


def test_table_is_bounded_and_keeps_what_is_used() -> None:
    """A loop that runs for months must not remember every spec it ever saw."""
    table: InternTable[int, str] = InternTable(entries_max=10)
    for number in range(1000):
        table.put(number, f"v{number}")
        assert table.get_or_build(0, lambda: "built again") == "v0"
    assert len(table) <= 20
    assert table.get(500) is None


def test_failed_build_leaves_nothing_behind() -> None:
    """A spec that could not be read once must not be found the second time."""
    table: InternTable[int, str] = InternTable(entries_max=10)

    def fail() -> str:
        raise ValueError("unreadable")

    with pytest.raises(ValueError, match="unreadable"):
        table.get_or_build(1, fail)
    assert table.get(1) is None
