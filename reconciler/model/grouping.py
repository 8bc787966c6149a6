"""Groups values by key without a step of Python per value: plans group all pods of a cluster."""

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def grouped(keys: Iterable[K], values: Iterable[V]) -> dict[K, list[V]]:
    """Return the values by key, keys and values in the order in which they come.

    Args:
        keys: One per value.
        values: The values.
    """
    found: defaultdict[K, list[V]] = defaultdict(list)
    append_each(map(found.__getitem__, keys), values)
    return found


def append_each(lists: Iterable[list[V]], values: Iterable[V]) -> None:
    """Append each value to the list at the same place."""
    deque(map(list.append, lists, values), maxlen=0)
