"""The Leases port over the API server, and in which namespace the Lease is."""

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from reconciler.adapters.kubernetes.kinds import LEASE, leases_path
from reconciler.adapters.kubernetes.namespace import OUTSIDE
from reconciler.adapters.kubernetes.transport import Transport
from reconciler.adapters.kubernetes.verbs import MERGE_PATCH
from reconciler.model.errors import Conflict, NotFound, PortError, Unavailable
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
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class KubernetesLeases:
    """The Lease `fleet-reconciler` of one namespace.

    Args:
        transport: How to reach the server; one of its own, so that renewals wait for nobody.
        namespace: Where the Lease is; may raise PortError while that is not known.
    """

    def __init__(self, transport: Transport, namespace: Callable[[], str]) -> None:
        self._transport = transport
        self._namespace = namespace

    def read(self) -> LeaseRecord | None:
        """The Lease as it is now; see ports.leases."""
        path = f"{leases_path(self._namespace())}/{LEASE_NAME}"
        try:
            body = self._transport.expect("GET", path).body
        except NotFound:
            return None
        return _record(body, path)

    def write(self, record: LeaseRecord) -> LeaseRecord:
        """Make the Lease say this; see ports.leases."""
        path = leases_path(self._namespace())
        if not record.version:
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": LEASE_NAME},
                "spec": _spec(record),
            }
            return _record(self._transport.expect("POST", path, body=lease).body, path)
        path = f"{path}/{LEASE_NAME}"
        patch = {"metadata": {"resourceVersion": record.version}, "spec": _spec(record)}
        try:
            reply = self._transport.expect("PATCH", path, body=patch, content_type=MERGE_PATCH)
        except NotFound as error:
            raise Conflict(path, "the Lease was deleted") from error
        return _record(reply.body, path)

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()


class LeaseHome:
    """Finds the namespace of the Lease, once; calls are safe from any thread.

    Args:
        transport: How to reach the server.
        own: The namespace that is stated, or of the pod that this is; None outside of a cluster.
    """

    def __init__(self, transport: Transport, own: str | None) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._found = own

    def __call__(self) -> str:
        """The pod's own; outside of the cluster where such a Lease is already, else kube-system.

        Someone who starts the program on a laptop must meet the replicas in the cluster.

        Raises:
            PortError: The API server did not answer.
        """
        with self._lock:
            if self._found is None:
                self._found = self._look()
            return self._found

    def _look(self) -> str:
        found = _everywhere(self._transport, {})
        if not found:
            return OUTSIDE
        last = max(found, key=lambda each: each.spec.renew_time or _LONG_AGO)
        return last.metadata.namespace


class OtherLeases:
    """Leases `fleet-reconciler` of other namespaces: someone may have begun on a laptop.

    Args:
        transport: How to reach the server.
        namespace: Where our own is.
        monotonic_seconds: A clock that never jumps.
    """

    def __init__(
        self,
        transport: Transport,
        namespace: Callable[[], str],
        monotonic_seconds: Callable[[], float],
    ) -> None:
        self._transport = transport
        self._namespace = namespace
        self._monotonic_seconds = monotonic_seconds
        self._seen: dict[str, tuple[_SpecWire, float]] = {}
        """By namespace: what the Lease said last, and since when it has."""

    def held_in(self) -> str | None:
        """A namespace whose Lease somebody renews; None when there is none, or nobody answers.

        As in an election, one counts as held until it was seen unchanged for its whole duration.
        """
        try:
            own, found = self._namespace(), _everywhere(self._transport, _CACHED)
        except PortError:
            return None  # then our own Lease cannot be had either
        now = self._monotonic_seconds()
        before, self._seen = self._seen, {}
        for each in found:
            place = each.metadata.namespace
            said, since = before.get(place, (None, now))
            self._seen[place] = (each.spec, since if said == each.spec else now)
        return next((place for place in sorted(self._seen) if self._is_held(place, own, now)), None)

    def _is_held(self, place: str, own: str, now: float) -> bool:
        spec, since = self._seen[place]
        held = bool(spec.holder_identity) and place != own
        return held and now - since < float(spec.lease_duration_seconds or 1)


_CACHED = {"resourceVersion": "0"}
"""From the server's cache: asked every two seconds, and each node has a Lease too."""


def _everywhere(transport: Transport, query: Mapping[str, str]) -> list[_LeaseWire]:
    """The Leases of our name in all namespaces."""
    selection = {"fieldSelector": LEASE.field_selector, **query}
    body = transport.expect("GET", LEASE.path, query=selection).body
    try:
        return _LEASES.decode(body).items
    except ValueError as error:
        raise Unavailable(LEASE.path, f"the list cannot be read: {error}") from error


def _spec(record: LeaseRecord) -> dict[str, Any]:
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration_seconds,
        "acquireTime": _micro_time(record.acquired_at),
        "renewTime": _micro_time(record.renewed_at),
        "leaseTransitions": record.transitions,
    }


def _micro_time(moment: datetime | None) -> str | None:
    """A MicroTime: six digits of the second, always, or the server answers 400."""
    if moment is None:
        return None
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _record(body: bytes, path: str) -> LeaseRecord:
    try:
        wire = _LEASE.decode(body)
    except ValueError as error:
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


def _unreadable(path: str, error: ValueError) -> PortError:
    return Unavailable(path, f"the Lease cannot be read: {error}"[:300])
