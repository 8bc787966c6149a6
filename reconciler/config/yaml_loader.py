"""YAML text to a tree with positions, within limits; never constructs a Python object.

Scalars are not resolved here (YAML 1.1 would read `8:00` as 480 and `on` as true). Aliases and
merge keys are allowed; what they expand to is counted, so a bomb is refused before it grows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from reconciler.config.faults import SYNTAX, quoted
from reconciler.config.tree import (
    Entry,
    Item,
    Mapping,
    Node,
    Place,
    Scalar,
    Sequence,
    UnquotedText,
    dotted,
)
from reconciler.model.errors import Problem

BYTES_MAX: Final = 1024 * 1024
DEPTH_MAX: Final = 64
ALIASES_MAX: Final = 10_000
EXPANDED_NODES_MAX: Final = 100_000
"""Nodes that aliases may add to the document, all together."""

_PLAIN_TAGS: Final = frozenset({"int", "float", "bool", "null"})
_COLLECTION_TAGS: Final = frozenset({"map", "seq"})
_STANDARD_TAG: Final = "tag:yaml.org,2002:"
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_START: Final = Place(line=1, column=1)
_LFS_POINTER: Final = "version https://git-lfs.github.com/spec/"
"""How the files begin that Git LFS keeps in the repository instead of the content."""


class Unreadable(Exception):
    """The document cannot be read beyond this problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def decode(raw: bytes) -> str:
    """Return the text of a config file.

    Raises:
        Unreadable: Over 1 MiB, or not UTF-8.
    """
    if len(raw) > BYTES_MAX:
        raise Unreadable(_problem(_START, f"larger than 1 MiB ({len(raw)} bytes)"))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        place = Place(
            line=before.count(b"\n") + 1, column=error.start - (before.rfind(b"\n") + 1) + 1
        )
        raise Unreadable(_problem(place, "not UTF-8 text")) from None


def compose(text: str) -> tuple[Mapping, tuple[Problem, ...]]:
    """Read one YAML document whose top level is a mapping.

    Returns:
        The tree, and the faults that did not stop the reading (duplicate keys, bad merges).

    Raises:
        Unreadable: Not YAML, empty, several documents, no mapping, too deep, a bomb.
    """
    if len(text) > BYTES_MAX:
        raise Unreadable(_problem(_START, "larger than 1 MiB"))
    if text.startswith(_LFS_POINTER):
        what = "a pointer of Git LFS, not the config: take the file out of LFS (.gitattributes)"
        raise Unreadable(_problem(_START, what))
    composer = _Composer(_events(text))
    root = composer.document()
    return root, tuple(composer.problems)


def _events(text: str) -> Iterator[yaml.events.Event]:
    """Yield the parser's events; its errors as `Unreadable`."""
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = _START if mark is None else Place(line=mark.line + 1, column=mark.column + 1)
        raise Unreadable(_problem(place, f"not YAML: {error.problem or error.context}")) from None
    except yaml.reader.ReaderError as error:
        raise Unreadable(_problem(_place_in(text, error.position), "not YAML text")) from None
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        raise Unreadable(_problem(_START, f"not YAML: {type(error).__name__}")) from None


def _place_in(text: str, position: int) -> Place:
    """Return the place of a character offset."""
    before = text[: max(position, 0)]
    return Place(line=before.count("\n") + 1, column=len(before) - (before.rfind("\n") + 1) + 1)


def _place(event: yaml.events.Event) -> Place:
    """Return where an event starts."""
    mark: Any = event.start_mark
    return Place(line=mark.line + 1, column=mark.column + 1)


def _problem(place: Place, message: str, path: str = "") -> Problem:
    """Return a syntax fault."""
    one_line = " ".join(message.split())
    return Problem(line=place.line, column=place.column, path=path, code=SYNTAX, message=one_line)


@dataclass(slots=True)
class _Composer:
    """Turns events into nodes, keeping count of what aliases add."""

    events: Iterator[yaml.events.Event]
    problems: list[Problem] = field(default_factory=list)
    _anchors: dict[str, Node | None] = field(default_factory=dict)
    """None while the anchored node is still being read: an alias to it would be endless."""
    _path: list[int | str] = field(default_factory=list)
    """Keys and indices down to what is being read."""
    _aliases: int = 0
    _expanded: int = 0

    def document(self) -> Mapping:
        """Return the single document of the stream."""
        next(self.events)
        event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            raise Unreadable(_problem(_START, "the file is empty"))
        first = next(self.events)
        root = self._node(first, 0)
        next(self.events)
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise Unreadable(_problem(_place(after), "more than one YAML document"))
        if isinstance(root, Scalar) and isinstance(root.text, UnquotedText) and root.text.is_null:
            raise Unreadable(_problem(_START, "the file is empty"))
        if not isinstance(root, Mapping):
            raise Unreadable(_problem(_place(first), "the top level is not a mapping"))
        return root

    def _node(self, event: yaml.events.Event, depth: int) -> Node:
        """Return the node that begins with `event`."""
        if depth > DEPTH_MAX:
            raise Unreadable(_problem(_place(event), f"nested deeper than {DEPTH_MAX} levels"))
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        anchor: str | None = getattr(event, "anchor", None)
        if anchor is not None:
            self._anchors[anchor] = None
        node = self._content(event, depth)
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _content(self, event: yaml.events.Event, depth: int) -> Node:
        """Return the node itself, whether or not it has an anchor."""
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            self._check_tag(event)
            return self._sequence(_place(event), depth)
        self._check_tag(event)
        return self._mapping(_place(event), depth)

    def _alias(self, event: yaml.AliasEvent, depth: int) -> Node:
        """Return the node that an alias stands for, once it is known to be affordable."""
        place = _place(event)
        name = str(event.anchor)
        if name not in self._anchors:
            raise Unreadable(_problem(place, f"alias *{quoted(name)[1:-1]} has no anchor"))
        node = self._anchors[name]
        if node is None:
            raise Unreadable(_problem(place, f"alias *{quoted(name)[1:-1]} contains itself"))
        if depth + node.height > DEPTH_MAX:
            raise Unreadable(_problem(place, f"nested deeper than {DEPTH_MAX} levels"))
        self._aliases += 1
        self._expanded += node.weight
        if self._aliases > ALIASES_MAX or self._expanded > EXPANDED_NODES_MAX:
            limit = f"{ALIASES_MAX} aliases, {EXPANDED_NODES_MAX} values"
            raise Unreadable(_problem(place, f"aliases expand to too much (limit: {limit})"))
        return node

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        """Return a scalar with its literal text."""
        text, place = event.value, _place(event)
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise Unreadable(_problem(place, "half a surrogate pair is not a character"))
        tag = (event.tag or "").removeprefix(_STANDARD_TAG)
        if tag not in {"", "!", "str", *_PLAIN_TAGS}:
            self._report(place, f"the tag {quoted(tag)} is not allowed")
        plain = tag in _PLAIN_TAGS or (not event.style and tag == "")
        return Scalar(place=place, text=UnquotedText(text) if plain else text)

    def _check_tag(self, event: Any) -> None:
        """Collections may carry their standard tag only."""
        tag = (event.tag or "").removeprefix(_STANDARD_TAG)
        if tag not in {"", "!", *_COLLECTION_TAGS}:
            self._report(_place(event), f"the tag {quoted(tag)} is not allowed")

    def _report(self, place: Place, message: str) -> None:
        """Keep a fault that does not stop the reading."""
        self.problems.append(_problem(place, message, dotted(tuple(self._path))))

    def _sequence(self, place: Place, depth: int) -> Sequence:
        """Return the items up to the end of the sequence."""
        sequence = Sequence(place=place)
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            self._path.append(len(sequence.items))
            node = self._node(event, depth + 1)
            self._path.pop()
            sequence.items.append(Item(place=_place(event), value=node))
            sequence.weight += node.weight
            sequence.height = max(sequence.height, node.height + 1)
        return sequence

    def _mapping(self, place: Place, depth: int) -> Mapping:
        """Return the entries up to the end of the mapping; merges fill in what is not there."""
        mapping = Mapping(place=place)
        merges: list[Item] = []
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            value_event = next(self.events)
            self._path.append(str(key.text) if isinstance(key, Scalar) else "?")
            value = self._node(value_event, depth + 1)
            mapping.weight += value.weight + 1
            mapping.height = max(mapping.height, key.height + 1, value.height + 1)
            if isinstance(key, Scalar) and isinstance(key.text, UnquotedText) and key.text == "<<":
                merges.append(Item(place=_place(value_event), value=value))
            else:
                self._add(mapping, key, Entry(place=_place(event), value=value))
            self._path.pop()
        for merge in merges:
            self._merge(mapping, merge)
        return mapping

    def _add(self, mapping: Mapping, key: Node, entry: Entry) -> None:
        """Add an entry; a second one of the same name is a fault and changes nothing."""
        if not isinstance(key, Scalar):
            self._report(entry.place, "a key must be a text")
        elif key.text in mapping.entries:
            first = mapping.entries[key.text].place
            message = f"duplicate key {quoted(key.text)}, first on line {first.line}"
            self._report(entry.place, message)
        else:
            mapping.entries[str(key.text)] = entry

    def _merge(self, mapping: Mapping, merge: Item) -> None:
        """Fill in the entries of one `<<`; earlier ones win, as the merge key type says."""
        sources = merge.value.items if isinstance(merge.value, Sequence) else [merge]
        for source in sources:
            if not isinstance(source.value, Mapping):
                self._report(source.place, "a merge needs a mapping")
                continue
            for key, entry in source.value.entries.items():
                mapping.entries.setdefault(key, entry)
