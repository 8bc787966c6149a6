"""What an object is, read without the rest of it."""

import msgspec
from msgspec import Raw, Struct, field

from reconciler.adapters.kubernetes.comparison import Key


class MetadataWire(Struct, rename="camel"):
    """What tells one object and its versions from others."""

    name: str = ""
    namespace: str | None = None
    resource_version: str = ""

    @property
    def key(self) -> Key:
        """Under what it is held."""
        return self.namespace or "", self.name


class HeaderWire(Struct, rename="camel"):
    """An object's metadata; the code and message of a Status."""

    metadata: MetadataWire = field(default_factory=MetadataWire)
    code: int | None = None
    message: str | None = None


_HEADER = msgspec.json.Decoder(HeaderWire)


def header_of(raw: Raw) -> HeaderWire:
    """An object's metadata; an object without any has none that is of use."""
    try:
        return _HEADER.decode(raw)
    except (ValueError, RecursionError):
        return HeaderWire()
