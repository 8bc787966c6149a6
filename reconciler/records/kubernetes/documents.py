"""Splits files and answers of the API server into Kubernetes objects.

A v1 `List`, whose items may be lists again, a typed list (`PodList`, whose items name no kind),
one object, or JSON lines of any. Objects stay raw here: each is decoded separately, so that a bad
one does not affect the others.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from reconciler.model.errors import InputError
from reconciler.model.text import replace_surrogates
from reconciler.records.json_values import json_values
from reconciler.records.kubernetes.fields import API_GROUPS, Wire


class RawObject(NamedTuple):
    """One object, not decoded; a tuple, since tens of thousands of them are made for a list."""

    api_version: str
    kind: str
    raw: bytes | Raw


class _ListMetadataWire(Wire):
    resource_version: str | None = None
    continue_token: str | None = msgspec.field(name="continue", default=None)


class _RestWire(Wire):
    """What a list says of the pages after it."""

    continue_token: str | None = msgspec.field(name="continue", default=None)
    remaining: int | None = msgspec.field(name="remainingItemCount", default=None)

    @property
    def is_more(self) -> bool:
        return bool(self.continue_token or self.remaining)


class _EnvelopeWire(Wire):
    kind: str | None = None
    api_version: str | None = None
    items: list[Raw] | None = None
    metadata: Raw = Raw(b"null")


class _PageWire(Wire):
    metadata: _ListMetadataWire
    items: list[Raw] | None  # null when there are none; without it the answer is no list
    kind: str | None = None


class _HeaderWire(Wire):
    kind: str | None = None
    api_version: str | None = None


class Page(Struct):
    """One page of a list from the API server."""

    kind: str
    """As in `PodList`; empty when the answer does not say."""
    items: list[Raw]
    resource_version: str
    """Empty in what the API server has not written."""
    continue_token: str
    """Asks for the next page; empty on the last one."""


_ENVELOPE = msgspec.json.Decoder(_EnvelopeWire)
_PAGE = msgspec.json.Decoder(_PageWire)
_HEADER = msgspec.json.Decoder(_HeaderWire)
_REST = msgspec.json.Decoder(_RestWire)
_VALUE = msgspec.json.Decoder(Raw)
_LOOSE_ITEMS = msgspec.json.Decoder(list[Raw])

LISTS = frozenset({"List", *(f"{kind}List" for kind in API_GROUPS)})
"""Kinds that are lists even when their items are null, as in an empty answer."""

_LISTS_DEEP_MAX = 8
"""How deep lists are looked for in lists; a program that merges files makes one in another."""

HINT = "kubectl get nodes,pods,pvc,pv,pdb,sc,csinodes,ns,ds,leases -A -o json writes such a file"
"""It names every kind that planning uses: without classes and volumes no claim counts as bound."""


def decode_page(body: bytes) -> Page:
    """Split a list of the API server; raise ValueError when it is not a list."""
    wire = _PAGE.decode(body)
    return Page(
        kind=wire.kind or "",
        items=wire.items or [],
        resource_version=wire.metadata.resource_version or "",
        continue_token=wire.metadata.continue_token or "",
    )


def split_documents(body: bytes, where: str) -> list[RawObject]:
    """Split one file into objects.

    Args:
        body: The whole file.
        where: Its name, for errors.

    Raises:
        InputError: The file is empty, not JSON, or something else than Kubernetes objects; a list
            in it was cut off.
    """
    if not body.strip():
        raise InputError(where, "is empty", HINT)
    file = _File(where, {})
    raw_objects = [
        raw_object
        for document in _documents(body, where)
        for raw_object in _objects(document, file)
    ]
    for kind, is_more in file.is_more.items():
        if is_more:
            raise InputError(where, f"its {kind} was cut off: more objects follow it", HINT)
    return raw_objects


class _File(NamedTuple):
    """A file that is read."""

    where: str
    is_more: dict[str, bool]
    """By kind of list whether the last one says that more follows: pages may be in one file."""


def _documents(body: bytes, where: str) -> list[bytes | Raw]:
    """Return the JSON values of a file: one, or one per line."""
    try:
        return [_VALUE.decode(body)]
    except (ValueError, RecursionError):
        pass
    try:
        return list(_VALUE.decode_lines(body))
    except (ValueError, RecursionError):
        # What strict JSON forbids (NaN, several values) is read, so that the rest can be used.
        return list(json_values(body, where, HINT, _encoded, "a Kubernetes list"))


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def _objects(document: bytes | Raw, file: _File, depth: int = 0) -> Iterator[RawObject]:
    """Yield the objects of one JSON value, those of lists within lists too."""
    where = file.where
    try:
        items, envelope = _LOOSE_ITEMS.decode(document), _EnvelopeWire(kind="List")
    except ValueError:
        items, envelope = None, _envelope(document, where)
    if items and not any(bytes(item).lstrip().startswith(b"{") for item in items):
        raise InputError(where, "is a list of something other than objects", HINT)
    if items is None:
        items = envelope.items
        _note_end(file, envelope)
    if items is None and envelope.kind in LISTS:
        return
    if items is None:
        yield RawObject(envelope.api_version or "", envelope.kind or "", document)
        return
    kind = (envelope.kind or "List").removesuffix("List")
    for item in items:
        if kind:
            yield RawObject(envelope.api_version or "", kind, item)
            continue
        raw_object = _with_header(item)
        if raw_object.kind not in LISTS:
            yield raw_object
        elif depth < _LISTS_DEEP_MAX:
            yield from _objects(item, file, depth + 1)
        else:
            raise InputError(where, f"holds lists more than {_LISTS_DEEP_MAX} deep", HINT)


def _note_end(file: _File, envelope: _EnvelopeWire) -> None:
    """Note whether more follows a list; of an object that is none, nothing."""
    if envelope.items is None and envelope.kind not in LISTS:
        return
    try:
        is_more = _REST.decode(envelope.metadata).is_more
    except ValueError:  # null, or not what the API server writes
        is_more = False
    file.is_more[envelope.kind or "List"] = is_more


def _envelope(document: bytes | Raw, where: str) -> _EnvelopeWire:
    try:
        envelope = _ENVELOPE.decode(document)
    except (ValueError, RecursionError):
        # NaN makes the object invalid JSON; that is reported when it is decoded.
        try:
            envelope = _lenient_envelope(bytes(document), where)
        except ValueError:  # as above, a number too large to read
            raise InputError(where, "holds a number that is too large to read", HINT) from None
    if envelope.kind is None and envelope.items is None:
        raise InputError(where, "holds no Kubernetes objects (no `kind`, no `items`)", HINT)
    return envelope


def _lenient_envelope(document: bytes, where: str = "") -> _EnvelopeWire:
    loaded = json.loads(document)
    if not isinstance(loaded, dict):
        return _EnvelopeWire()
    items, kind, version = (loaded.get(key) for key in ("items", "kind", "apiVersion"))
    if where and not isinstance(items, list | None):
        raise InputError(where, "its `items` is not a list", HINT)
    return _EnvelopeWire(
        kind=replace_surrogates(kind) if isinstance(kind, str) else None,
        api_version=replace_surrogates(version) if isinstance(version, str) else None,
        items=[Raw(json.dumps(item).encode()) for item in items]
        if isinstance(items, list)
        else None,
        metadata=Raw(json.dumps(loaded.get("metadata")).encode()),
    )


def _with_header(item: Raw) -> RawObject:
    try:
        header = _HEADER.decode(item)
    except (ValueError, RecursionError):
        try:
            envelope_wire = _lenient_envelope(bytes(item))
        except ValueError:  # a number too large to read: reported when the object is decoded
            return RawObject("", "", item)
        return RawObject(envelope_wire.api_version or "", envelope_wire.kind or "", item)
    return RawObject(header.api_version or "", header.kind or "", item)
