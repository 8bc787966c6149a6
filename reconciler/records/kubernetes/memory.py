"""What the reconciler keeps in annotations of its Lease, so that it survives a restart."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Raw, Struct, field
from msgspec.json import Decoder, Encoder

from reconciler.model.actions import FLEET_STATE, LAST_DRAIN
from reconciler.model.fleet import FleetMemory
from reconciler.model.ids import Region
from reconciler.records.kubernetes.fields import MetadataWire, Wire, required_name, utc

LEASE_NAME = "fleet-reconciler"

Count = Annotated[int, Meta(ge=0, lt=2**31)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The Lease's annotations, read."""

    last_drain_at: datetime | None = None
    fleets: tuple[FleetMemory, ...] = ()
    unreadable: bool = False
    """At least one annotation could not be read and was taken as absent."""


class _AnnotationsWire(Struct, gc=False):
    last_drain: str | None = field(name=LAST_DRAIN, default=None)
    fleet_state: str | None = field(name=FLEET_STATE, default=None)


class _LeaseMetadataWire(MetadataWire):
    annotations: _AnnotationsWire | None = None


class _LeaseWire(Wire):
    metadata: _LeaseMetadataWire


class _FleetMemoryWire(Struct, gc=False, omit_defaults=True):
    fleet: str
    region: str
    unavailable_until: datetime | None = None
    failures: Count = 0
    last_error_at: datetime | None = None
    stuck_in_a_row: Count = 0
    last_stuck_launched_at: datetime | None = None


class _FleetStateWire(Struct, gc=False):
    fleets: tuple[_FleetMemoryWire, ...] = ()


_LEASE = Decoder(_LeaseWire)
_FLEET_STATE = Decoder(_FleetStateWire)
_MOMENT = Decoder(datetime)
_ENCODER = Encoder(order="sorted")


def decode_lease(raw: bytes | Raw) -> Memory | None:
    """Decode a Lease: None when it is not ours; ValueError when it cannot be read at all.

    An annotation that cannot be read is taken as absent: a person may have edited it, and a
    forgotten pause costs less than a loop that stands still.
    """
    metadata = _LEASE.decode(raw).metadata
    if required_name(metadata.name) != LEASE_NAME:
        return None
    wire = metadata.annotations or _AnnotationsWire()
    unreadable = False
    last_drain_at: datetime | None = None
    fleets: tuple[FleetMemory, ...] = ()
    try:
        if wire.last_drain:
            last_drain_at = utc(_MOMENT.decode(_ENCODER.encode(wire.last_drain)))
    except (ValueError, OverflowError):
        unreadable = True
    try:
        if wire.fleet_state:
            fleets = decode_fleet_state(wire.fleet_state)
    except (ValueError, OverflowError):
        unreadable = True
    return Memory(last_drain_at=last_drain_at, fleets=fleets, unreadable=unreadable)


def decode_fleet_state(text: str) -> tuple[FleetMemory, ...]:
    """Read the annotation `fleet-state`; raises ValueError when it cannot be read."""
    return tuple(
        FleetMemory(
            fleet=each.fleet,
            region=Region(each.region),
            unavailable_until=utc(each.unavailable_until),
            failures=each.failures,
            last_error_at=utc(each.last_error_at),
            stuck_in_a_row=each.stuck_in_a_row,
            last_stuck_launched_at=utc(each.last_stuck_launched_at),
        )
        for each in _FLEET_STATE.decode(text).fleets
    )


def encode_fleet_state(memories: Iterable[FleetMemory]) -> str:
    """Write the annotation `fleet-state`; fleets without anything to remember are left out."""
    wires = [
        _FleetMemoryWire(
            fleet=each.fleet,
            region=each.region,
            unavailable_until=each.unavailable_until,
            failures=each.failures,
            last_error_at=each.last_error_at,
            stuck_in_a_row=each.stuck_in_a_row,
            last_stuck_launched_at=each.last_stuck_launched_at,
        )
        for each in memories
        if each != FleetMemory(fleet=each.fleet, region=each.region)
    ]
    wires.sort(key=lambda each: (each.fleet, each.region))
    return _ENCODER.encode(_FleetStateWire(fleets=tuple(wires))).decode()
