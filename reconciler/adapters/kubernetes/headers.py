"""Reads an object's metadata without the rest of it."""

import msgspec
from msgspec import Raw, Struct, field

from reconciler.adapters.kubernetes.comparison import Key


class MetadataWire(Struct, rename="camel"):
    """What identifies an object and its versions."""

    name: str = ""
    namespace: str | None = None
    resource_version: str = ""

    @property
    def key(self) -> Key:
        """Return the key of the object in a cache."""
        return self.namespace or "", self.name


class HeaderWire(Struct, rename="camel"):
    """An object's metadata; the code and message of a Status."""

    metadata: MetadataWire = field(default_factory=MetadataWire)
    code: int | None = None
    message: str | None = None


_HEADER = msgspec.json.Decoder(HeaderWire)


def header_of(raw: Raw) -> HeaderWire:
    """Return an object's metadata; without any, the header is empty."""
    try:
        return _HEADER.decode(raw)
    except (ValueError, RecursionError):
        return HeaderWire()
