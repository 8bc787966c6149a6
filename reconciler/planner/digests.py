"""Short digests of values, the same in every process whatever its hash seed."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any

_BYTES = 8


def digest_of(*values: Any) -> str:
    """16 hexadecimal digits; equal values have equal ones, whatever order their sets are in."""
    text = blake2b(digest_size=_BYTES)
    for part in _parts(values):
        text.update(part.encode(errors="replace"))
        text.update(b"\0")
    return text.hexdigest()


def _parts(value: Any) -> Iterator[str]:
    """The value as a flat series of words, brackets included so that shapes differ too."""
    if is_dataclass(value) and not isinstance(value, type):
        yield f"{type(value).__name__}("
        for field in fields(value):
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield "{"
        for key in sorted(value):
            yield from _parts(key)
            yield from _parts(value[key])
    elif isinstance(value, set | frozenset):
        yield "<"
        for part in sorted(tuple(_parts(each)) for each in value):
            yield from part
    elif isinstance(value, tuple | list):
        yield "["
        for each in value:
            yield from _parts(each)
    else:
        yield str(value.value) if isinstance(value, Enum) else repr(value)
        return
    yield ")"
