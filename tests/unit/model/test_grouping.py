"""Grouping by key keeps the order in which keys and values come."""

from reconciler.model.grouping import append_each, grouped


def test_values_are_grouped_in_order() -> None:
    """Keys come in the order of their first value."""
    found = grouped("baba", [1, 2, 3, 4])
    assert list(found.items()) == [("b", [1, 3]), ("a", [2, 4])]


def test_nothing_gives_nothing() -> None:
    """No values, no groups."""
    assert not grouped([], [])


def test_each_value_goes_to_its_list() -> None:
    """A list may occur more than once."""
    one: list[int] = []
    other: list[int] = [0]
    append_each([one, other, one], [1, 2, 3])
    assert (one, other) == ([1, 3], [0, 2])
