"""The Leases port over the API server."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from reconciler.adapters.kubernetes.kinds import LEASES_PATH, OUR_LEASES, leases_path
from reconciler.adapters.kubernetes.namespace import LeaseHome
from reconciler.adapters.kubernetes.transport import MERGE_PATCH, Reply, Transport
from reconciler.model.errors import Conflict, Forbidden, NotFound, PortError, Unavailable
from reconciler.ports.leases import LeaseRecord
from reconciler.records.kubernetes import LEASE_NAME


class _MetadataWire(Struct, rename="camel"):
    namespace: str = ""
    resource_version: str = ""


class _SpecWire(Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class _LeaseWire(Struct):
    metadata: _MetadataWire
    spec: _SpecWire = msgspec.field(default_factory=_SpecWire)


class _LeaseListWire(Struct):
    items: list[_LeaseWire] = []


_LEASE = msgspec.json.Decoder(_LeaseWire)
_LEASES = msgspec.json.Decoder(_LeaseListWire)


class KubernetesLeases:
    """The Lease `fleet-reconciler` of one namespace.

    Args:
        transport: How to reach the server; used for nothing else, so that no request delays a
            renewal.
        home: Where the Lease is.
    """

    def __init__(self, transport: Transport, home: LeaseHome) -> None:
        self._transport = transport
        self._home = home

    def read(self) -> LeaseRecord | None:
        """Return the current Lease; see ports.leases."""
        path = f"{leases_path(self._home.namespace)}/{LEASE_NAME}"
        try:
            body = self._transport.expect("GET", path).body
        except NotFound:
            return None
        return _record(body, path)

    def write(self, record: LeaseRecord) -> LeaseRecord:
        """Write this record; see ports.leases."""
        path = f"{leases_path(self._home.namespace)}/{LEASE_NAME}"
        if not record.version:
            lease = lease_object(spec=_spec(record))
            return _record(make_lease(self._transport, self._home, lease).body, path)
        patch = {"metadata": {"resourceVersion": record.version}, "spec": _spec(record)}
        try:
            reply = self._transport.expect("PATCH", path, body=patch, content_type=MERGE_PATCH)
        except NotFound as error:
            raise Conflict(path, "the Lease was deleted") from error
        return _record(reply.body, path)

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()


def make_lease(transport: Transport, home: LeaseHome, lease: Mapping[str, Any]) -> Reply:
    """Create the Lease, and before it the namespace where that is allowed.

    Raises:
        NotFound: The namespace does not exist and must not be created.
        Conflict: The Lease exists by now.
        PortError: It was not created.
    """
    path = leases_path(home.namespace)
    try:
        return transport.expect("POST", path, body=lease)
    except NotFound as error:
        if not home.may_be_made:
            raise NotFound(
                f"namespace {home.namespace}",
                "does not exist, and the Lease is to be kept there",
                "create it, or name another one with --lease-namespace",
            ) from error
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home.namespace}}
    with suppress(Conflict):  # somebody else created it in the meantime
        transport.expect("POST", "/api/v1/namespaces", body=namespace)
    return transport.expect("POST", path, body=lease)


def lease_object(**parts: Any) -> dict[str, Any]:
    """Return a Lease `fleet-reconciler` with annotations or a spec."""
    metadata = {"name": LEASE_NAME, **parts.pop("metadata", {})}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {},
        **parts,
    }


def leases_elsewhere(transport: Transport, home: LeaseHome) -> tuple[str, ...]:
    """Return other namespaces where somebody holds a Lease of our name; for people only.

    It is also empty without the right to list them, which the installed program does not have.

    Raises:
        PortError: The API server did not answer.
    """
    try:
        reply = transport.expect("GET", LEASES_PATH, query={"fieldSelector": OUR_LEASES})
    except Forbidden:
        return ()
    try:
        lease_wires = _LEASES.decode(reply.body).items
    except (ValueError, RecursionError) as error:
        raise Unavailable(LEASES_PATH, f"the list cannot be read: {error}"[:300]) from error
    held = {
        lease_wire.metadata.namespace
        for lease_wire in lease_wires
        if lease_wire.spec.holder_identity
    }
    return tuple(sorted(held - {home.namespace}))


def _spec(record: LeaseRecord) -> dict[str, Any]:
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration_seconds,
        "acquireTime": _micro_time(record.acquired_at),
        "renewTime": _micro_time(record.renewed_at),
        "leaseTransitions": record.transitions,
    }


def _micro_time(moment: datetime | None) -> str | None:
    """Return a MicroTime: it must have six fractional digits, or the server answers 400."""
    if moment is None:
        return None
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _record(body: bytes, path: str) -> LeaseRecord:
    try:
        wire = _LEASE.decode(body)
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, error) from error
    spec = wire.spec
    return LeaseRecord(
        holder=spec.holder_identity or "",
        duration_seconds=max(1, spec.lease_duration_seconds or 1),
        acquired_at=spec.acquire_time,
        renewed_at=spec.renew_time,
        transitions=max(0, spec.lease_transitions or 0),
        version=wire.metadata.resource_version,
    )


def _unreadable(path: str, error: ValueError | RecursionError) -> PortError:
    return Unavailable(path, f"the Lease cannot be read: {error}"[:300])
