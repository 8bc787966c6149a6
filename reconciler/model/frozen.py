"""A hashable mapping, so that frozen values stay frozen all the way down."""

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class FrozenMap(Mapping[K, V], Generic[K, V]):
    """An immutable mapping that compares by content and caches its hash.

    MappingProxyType would break copying and pickling; a plain dict would not be hashable.
    """

    __slots__ = ("__weakref__", "_data", "_hash")

    def __init__(self, data: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._data: dict[K, V] = dict(data)
        self._hash: int | None = None

    def __getitem__(self, key: K) -> V:
        return self._data[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def items(self) -> ItemsView[K, V]:
        """Return a dict's own view, which is many times faster than that of Mapping."""
        return self._data.items()

    def keys(self) -> KeysView[K]:
        """Return a dict's own view, for the same reason as `items`."""
        return self._data.keys()

    def values(self) -> ValuesView[V]:
        """Return a dict's own view, for the same reason as `items`."""
        return self._data.values()

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | D) -> V | D: ...
    def get(self, key: K, /, default: V | D | None = None) -> V | D | None:
        """Return the value of `key`, or `default`."""
        return self._data.get(key, default)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMap):
            return bool(self._data == other._data)
        return bool(self._data == other)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._data.items()))
        return self._hash

    def __repr__(self) -> str:
        return f"FrozenMap({self._data!r})"


Labels = FrozenMap[str, str]
"""Kubernetes labels, annotations or node selectors; EC2 tags."""

NO_LABELS: Labels = FrozenMap()
