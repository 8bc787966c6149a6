"""The table that makes equal specs one object."""

import gc
from weakref import ref

import pytest

from reconciler.model.frozen import FrozenMap
from reconciler.model.interning import InternTable, References, released_with


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


def test_entry_is_gone_with_the_object_that_it_is_about() -> None:
    """A tenant who rewrites large objects all day would fill memory with what nobody has any more.

    Identities are used again: a later object must not find what is known of an earlier one.
    """
    table: InternTable[int, tuple[References, str]] = InternTable(entries_max=3)
    kept = [FrozenMap({"app": f"a{number}"}) for number in range(3)]
    for each in kept:
        table.put(id(each), (released_with(table, id(each), each), str(each["app"])))
    del each
    table.put(0, ((), "the next generation"))
    assert table.get(id(kept[1])) is not None
    gone = [id(kept.pop()), id(kept.pop())]
    assert [table.get(key) for key in gone] == [None, None]
    found = table.get(id(kept[0]))
    assert found is not None
    assert found[1] == "a0"


def test_table_that_is_gone_is_not_kept_by_its_entries() -> None:
    """Judges of budgets that changed would stay until garbage is collected, and that is paused."""
    table: InternTable[int, tuple[References, str]] = InternTable(entries_max=3)
    labels = FrozenMap({"app": "a"})
    table.put(id(labels), (released_with(table, id(labels), labels), "a"))
    known = ref(table)
    gc.disable()
    try:
        del table
        assert known() is None
    finally:
        gc.enable()
