"""What is saved in annotations of our Lease, so that it survives a restart."""

from reconciler.records.kubernetes.saved_state.annotations import (
    LEASE_NAME,
    LEASE_NAMESPACE,
    SavedState,
    decode_lease,
    encode_fleet_state,
)
from reconciler.records.kubernetes.saved_state.binding_proof import encode_proof

__all__ = [
    "LEASE_NAME",
    "LEASE_NAMESPACE",
    "SavedState",
    "decode_lease",
    "encode_fleet_state",
    "encode_proof",
]
