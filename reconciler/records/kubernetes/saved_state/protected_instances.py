"""The part of `fleet-state` that says which instances EC2 refused to end."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from reconciler.model.ids import InstanceId
from reconciler.model.saved_state import ProtectedInstance
from reconciler.model.text import replace_surrogates
from reconciler.records.kubernetes.fields import utc

PROTECTED_MAX = 200
"""How many instances are written and read at most; the latest are kept."""

_Name = Annotated[str, Meta(min_length=1, max_length=63)]


class ProtectedWire(Struct, gc=False):
    """One instance."""

    instance: _Name
    at: datetime


def decode_protected(wires: Iterable[ProtectedWire]) -> tuple[ProtectedInstance, ...]:
    """Read the instances."""
    return tuple(
        ProtectedInstance(
            instance=InstanceId(replace_surrogates(wire.instance)), at=utc(wire.at) or wire.at
        )
        for wire in tuple(wires)[:PROTECTED_MAX]
    )


def encode_protected(known: Iterable[ProtectedInstance]) -> tuple[ProtectedWire, ...]:
    """Write the instances in order of their ids."""
    latest = sorted(known, key=lambda each: (each.at, each))[-PROTECTED_MAX:]
    return tuple(
        ProtectedWire(instance=protected_instance.instance, at=protected_instance.at)
        for protected_instance in sorted(latest)
    )
