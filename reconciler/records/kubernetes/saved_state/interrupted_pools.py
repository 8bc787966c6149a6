"""The part of `fleet-state` that says where EC2 took our spot instances back."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from reconciler.model.saved_state import InterruptedPool
from reconciler.model.text import replace_surrogates
from reconciler.records.kubernetes.fields import utc

POOLS_MAX = 200
"""How many pools are written and read at most; the latest are kept."""

_Name = Annotated[str, Meta(min_length=1, max_length=63)]


class PoolWire(Struct, gc=False):
    """One pool."""

    instance_type: _Name
    zone: _Name
    at: datetime


def decode_pools(wires: Iterable[PoolWire]) -> tuple[InterruptedPool, ...]:
    """Read the pools."""
    return tuple(
        InterruptedPool(
            instance_type=replace_surrogates(wire.instance_type),
            zone=replace_surrogates(wire.zone),
            at=utc(wire.at) or wire.at,
        )
        for wire in tuple(wires)[:POOLS_MAX]
    )


def encode_pools(pools: Iterable[InterruptedPool]) -> tuple[PoolWire, ...]:
    """Write the pools in order of type and zone."""
    latest = sorted(pools, key=lambda each: (each.at, each))[-POOLS_MAX:]
    return tuple(
        PoolWire(
            instance_type=interrupted_pool.instance_type,
            zone=interrupted_pool.zone,
            at=interrupted_pool.at,
        )
        for interrupted_pool in sorted(latest)
    )
