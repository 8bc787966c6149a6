"""Short digests of values, the same in every process whatever its hash seed."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any

_BYTES = 8


def digest_of(*values: Any) -> str:
    """Return 16 hexadecimal digits; equal values have equal digests, in any order of sets.

    Fields of dataclasses with the metadata `in_digests: False` are left out.
    """
    parts: list[str] = []
    _take_apart(values, parts)
    text = "".join(f"{part}\0" for part in parts)
    return blake2b(text.encode(errors="replace"), digest_size=_BYTES).hexdigest()


def _take_apart(value: Any, parts: list[str]) -> None:
    """Append the value's parts as words; brackets keep nested values distinct."""
    names = _field_names(type(value))
    if names is not None:
        parts.append(f"{type(value).__name__}(")
        for name in names:
            _take_apart(getattr(value, name), parts)
    elif isinstance(value, str):
        parts.append(_word(value))
        return
    elif isinstance(value, tuple | list):
        parts.append("[")
        for each in value:
            _take_apart(each, parts)
    elif isinstance(value, Mapping):
        parts.append("{")
        for key in sorted(value):
            _take_apart(key, parts)
            _take_apart(value[key], parts)
    elif isinstance(value, set | frozenset):
        parts.append("<")
        for each in sorted(map(_apart, value)):
            parts += each
    else:
        parts.append(_word(value))
        return
    parts.append(")")


def _word(value: object) -> str:
    return str(value.value) if isinstance(value, Enum) else repr(value)


def _apart(value: Any) -> list[str]:
    parts: list[str] = []
    _take_apart(value, parts)
    return parts


_NAMES: dict[type, tuple[str, ...] | None] = {}


def _field_names(kind: type) -> tuple[str, ...] | None:
    """Return the fields of a dataclass that count for digests; None for anything else."""
    if kind not in _NAMES:
        names: tuple[str, ...] | None = None
        if is_dataclass(kind):
            names = tuple(f.name for f in fields(kind) if f.metadata.get("in_digests", True))
        _NAMES[kind] = names
    return _NAMES[kind]
