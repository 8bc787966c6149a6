"""The Lease annotation `bound-to`: which cluster and fleets were proven to belong together."""

from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.json import Decoder, Encoder

from reconciler.model.binding import KeptProof
from reconciler.model.ids import FleetId
from reconciler.model.text import replace_surrogates
from reconciler.records.kubernetes.fields import utc

FLEETS_MAX: Final = 300
"""How many fleets are read at most."""
TEXT_MAX: Final = 1 << 18
"""Longer values are not read."""


class _KeptProofWire(Struct, gc=False):
    cluster_uid: str
    fleets: tuple[str, ...]
    proven_at: datetime


_KEPT_PROOF = Decoder(_KeptProofWire)
_ENCODER = Encoder(order="sorted")


def decode_proof(text: str) -> KeptProof:
    """Read the annotation `bound-to`.

    Raises:
        ValueError: It cannot be read, or is absurdly long.
    """
    if len(text) > TEXT_MAX:
        raise ValueError(f"{len(text)} characters are not a proof that this program wrote")
    wire = _KEPT_PROOF.decode(text)
    return KeptProof(
        cluster_uid=replace_surrogates(wire.cluster_uid),
        fleets=tuple(FleetId(replace_surrogates(fleet)) for fleet in wire.fleets[:FLEETS_MAX]),
        proven_at=utc(wire.proven_at) or wire.proven_at,
    )


def encode_proof(proof: KeptProof) -> str:
    """Write the annotation `bound-to`."""
    wire = _KeptProofWire(
        cluster_uid=proof.cluster_uid, fleets=proof.fleets, proven_at=proof.proven_at
    )
    return _ENCODER.encode(wire).decode()
