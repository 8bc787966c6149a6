"""A hashable mapping, so that frozen values stay frozen all the way down."""

from typing import Any, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenMap(dict[K, V]):
    """An immutable mapping that compares by content and caches its hash.

    It is a dict, as a plan reads millions of labels and a method in Python costs more than the
    reading. What changes a dict raises TypeError.
    """

    __slots__ = ("__weakref__", "_hash")

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none
        try:
            return self._hash
        except AttributeError:
            self._hash: int = hash(frozenset(self.items()))
            return self._hash

    def __repr__(self) -> str:
        return f"FrozenMap({super().__repr__()})"

    def __reduce__(self) -> tuple[type["FrozenMap[K, V]"], tuple[dict[K, V]]]:
        """Copy and pickle the content alone: hashes of strings differ between processes."""
        return FrozenMap, (dict(self),)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse a change.

        Raises:
            TypeError: Always.
        """
        raise TypeError("a FrozenMap does not change; make a dict of it")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


Labels = FrozenMap[str, str]
"""Kubernetes labels, annotations or node selectors; EC2 tags."""

NO_LABELS: Labels = FrozenMap()
