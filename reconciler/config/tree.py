"""A YAML document as a tree that knows where everything was written.

Scalars keep their literal text; its meaning is decided by the reader of each value.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

NULL_TEXTS = frozenset({"", "~", "null", "Null", "NULL"})
"""The plain scalars that YAML 1.2 (core schema) reads as null."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """Where something starts in the file; both count from 1."""

    line: int
    column: int


class UnquotedText(str):
    """The text of a scalar written without quotes, which may therefore be a number or a boolean."""

    __slots__ = ()

    @property
    def is_null(self) -> bool:
        """Return whether YAML reads it as null."""
        return str(self) in NULL_TEXTS


@dataclass(slots=True, kw_only=True)
class Scalar:
    """One scalar: `UnquotedText` when it was written without quotes, else `str`."""

    place: Place
    text: str
    weight: int = 1
    height: int = 0


@dataclass(slots=True, kw_only=True)
class Item:
    """An entry of a sequence; `place` is that of the alias when it is one."""

    place: Place
    value: "Node"


@dataclass(slots=True, kw_only=True)
class Sequence:
    """A list."""

    place: Place
    items: list[Item] = field(default_factory=list)
    weight: int = 1
    """Nodes in it with all aliases expanded."""
    height: int = 0
    """Levels below it with all aliases expanded."""


@dataclass(slots=True, kw_only=True)
class Entry:
    """A key with its value; `place` is the key's, where it was written (merged keys included)."""

    place: Place
    value: "Node"


@dataclass(slots=True, kw_only=True)
class Mapping:
    """A mapping after its merges, keys as text."""

    place: Place
    entries: dict[str, Entry] = field(default_factory=dict)
    weight: int = 1
    """Nodes in it with all aliases expanded."""
    height: int = 0
    """Levels below it with all aliases expanded."""

    def get(self, key: str) -> "Node | None":
        """Return the value under `key`, or None."""
        entry = self.entries.get(key)
        return None if entry is None else entry.value

    def mapping(self, key: str) -> "Mapping":
        """Return the mapping under `key`; an empty one when there is none."""
        value = self.get(key)
        return value if isinstance(value, Mapping) else Mapping(place=self.place)

    def text(self, key: str) -> str | None:
        """Return the literal text under `key`; None when it is missing, null or not a scalar."""
        return text_of(self.get(key))

    def states(self, key: str) -> bool:
        """Return whether there is a value under `key` that is not null."""
        node = self.get(key)
        return node is not None and not (isinstance(node, Scalar) and text_of(node) is None)

    def items(self, key: str) -> Iterator[tuple[int, Item]]:
        """Yield the numbered items of the sequence under `key`."""
        value = self.get(key)
        yield from enumerate(value.items if isinstance(value, Sequence) else ())


Node: TypeAlias = Scalar | Sequence | Mapping


def text_of(node: Node | None) -> str | None:
    """Return the literal text of a scalar that is not null, else None."""
    if not isinstance(node, Scalar) or (isinstance(node.text, UnquotedText) and node.text.is_null):
        return None
    return str(node.text)


def to_data(node: Node) -> object:
    """Return the tree as dicts, lists and `str` or `UnquotedText`, for validation."""
    if isinstance(node, Mapping):
        return {key: to_data(entry.value) for key, entry in node.entries.items()}
    if isinstance(node, Sequence):
        return [to_data(item.value) for item in node.items]
    return node.text


def place_of(root: Mapping, location: tuple[int | str, ...]) -> Place:
    """Return the place of the key or item at `location`, or of its deepest existing part."""
    place, node = root.place, root
    current: Node = node
    for step in location:
        if isinstance(current, Mapping) and isinstance(step, str) and step in current.entries:
            place, current = current.entries[step].place, current.entries[step].value
        elif isinstance(current, Sequence) and isinstance(step, int) and step < len(current.items):
            place, current = current.items[step].place, current.items[step].value
        else:
            break
    return place


def exists(root: Mapping, location: tuple[int | str, ...]) -> bool:
    """Return whether there is a key or item at `location`."""
    current: Node | None = root
    for step in location:
        if isinstance(current, Mapping) and isinstance(step, str):
            current = current.get(step)
        elif isinstance(current, Sequence) and isinstance(step, int) and step < len(current.items):
            current = current.items[step].value
        else:
            return False
    return current is not None


def dotted(location: tuple[int | str, ...]) -> str:
    """Return a location as a path: `sectors.primary.fleets[0].size`."""
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else ("." if path else "") + step
    return path
