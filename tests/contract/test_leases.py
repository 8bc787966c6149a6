"""The Leases port, in memory and over HTTP: versions, annotations, who was faster."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.adapters.kubernetes import (
    KubernetesLeases,
    LeaseHome,
    OtherLeases,
    Transport,
    connect,
)
from reconciler.adapters.kubernetes.verbs import Verbs
from reconciler.adapters.memory import MemoryLease, MemoryLeases
from reconciler.model.errors import Conflict
from reconciler.ports.leases import LeaseRecord, Leases
from reconciler.sandbox.cluster.server import ClusterServer

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
OURS = LeaseRecord(holder="a", duration_seconds=15, acquired_at=AT, renewed_at=AT)
LATER = AT.replace(microsecond=1)
MEMORY = "fleet-reconciler.io/last-drain"


@dataclass(slots=True, kw_only=True)
class LeaseWorld:
    """Two ways to one Lease, and someone else who writes annotations on it."""

    first: Leases
    second: Leases
    annotate: Callable[[str], None]
    annotation: Callable[[], str]
    delete: Callable[[], object]


def _in_memory() -> LeaseWorld:
    lease = MemoryLease()
    return LeaseWorld(
        first=MemoryLeases(lease=lease),
        second=MemoryLeases(lease=lease),
        annotate=lambda value: lease.annotate(MEMORY, value),
        annotation=lambda: lease.annotations[MEMORY],
        delete=lambda: setattr(lease, "record", None),
    )


def over_http(transport: Transport, namespace: str = "kube-system") -> LeaseWorld:
    """The real adapter on any API server."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/fleet-reconciler"
    verbs = Verbs(transport, namespace)

    def annotation() -> str:
        found: dict[str, Any] = transport.expect("GET", path).json()
        return str(found["metadata"]["annotations"][MEMORY])

    return LeaseWorld(
        first=KubernetesLeases(transport, lambda: namespace),
        second=KubernetesLeases(transport, lambda: namespace),
        annotate=lambda value: verbs.remember({MEMORY: value}),
        annotation=annotation,
        delete=lambda: transport.expect("DELETE", path),
    )


@pytest.fixture(params=["memory", "http"])
def world(request: pytest.FixtureRequest) -> Iterator[LeaseWorld]:
    """No Lease yet."""
    if request.param == "memory":
        yield _in_memory()
        return
    with ClusterServer() as server:
        transport = connect(str(server.kubeconfig))
        yield over_http(transport)
        transport.close()


def test_lease_is_made_and_read_back_to_the_microsecond(world: LeaseWorld) -> None:
    """Whole seconds would make two renewals look like none; the server refuses fewer digits."""
    assert world.first.read() is None
    written = world.first.write(OURS)
    assert replace(written, version="") == OURS
    assert world.second.read() == written
    again = world.first.write(replace(written, renewed_at=LATER))
    assert again.renewed_at == LATER
    assert again.version != written.version


def test_second_creation_is_a_conflict(world: LeaseWorld) -> None:
    """Two replicas that start together both see no Lease."""
    world.first.write(OURS)
    with pytest.raises(Conflict):
        world.second.write(replace(OURS, holder="b"))


def test_write_on_an_old_version_is_a_conflict(world: LeaseWorld) -> None:
    """A renewal that was under way while another took the Lease must not take it back."""
    seen = world.first.write(OURS)
    world.second.write(replace(seen, holder="b", transitions=1))
    with pytest.raises(Conflict):
        world.first.write(replace(seen, renewed_at=LATER))
    found = world.first.read()
    assert found is not None
    assert found.holder == "b"


def test_write_on_a_lease_that_was_deleted_is_a_conflict(world: LeaseWorld) -> None:
    """A leader whose Lease somebody cleaned away must look again, and not stop acting first."""
    seen = world.first.write(OURS)
    world.delete()
    with pytest.raises(Conflict):
        world.first.write(replace(seen, renewed_at=LATER))
    assert world.first.read() is None
    assert world.first.write(OURS).holder == "a"


def test_annotations_survive_renewal_and_release(world: LeaseWorld) -> None:
    """The fleets' cool-offs are kept on the same object."""
    world.first.write(OURS)
    world.annotate("2026-01-31T12:00:00Z")
    seen = world.first.read()
    assert seen is not None
    renewed = world.first.write(replace(seen, renewed_at=LATER))
    world.first.write(replace(renewed, holder="", duration_seconds=1))
    assert world.annotation() == "2026-01-31T12:00:00Z"


def test_laptop_finds_the_lease_of_the_replicas_in_the_cluster() -> None:
    """With a Lease of its own it would act beside them."""
    with ClusterServer() as server:
        transport = connect(str(server.kubeconfig))
        assert LeaseHome(transport, None)() == "kube-system"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fleet-reconciler"}}
        transport.expect("POST", "/api/v1/namespaces", body=body)
        over_http(transport, "fleet-reconciler").first.write(OURS)
        assert LeaseHome(transport, None)() == "fleet-reconciler"
        assert LeaseHome(transport, "elsewhere")() == "elsewhere"
        transport.close()


def test_lease_that_is_renewed_elsewhere_keeps_the_pods_from_leading() -> None:
    """Someone began on a laptop and installs it now: both would act."""
    seconds = 0.0
    with ClusterServer() as server:
        transport = connect(str(server.kubeconfig))
        laptop = over_http(transport, "kube-system").first
        others = OtherLeases(transport, lambda: "default", lambda: seconds)
        assert others.held_in() is None
        seen = laptop.write(OURS)
        over_http(transport, "default").first.write(replace(OURS, holder="b"))
        assert others.held_in() == "kube-system"
        seconds = 14.0
        assert others.held_in() == "kube-system"
        laptop.write(replace(seen, renewed_at=LATER))
        seconds = 20.0
        assert others.held_in() == "kube-system"
        seconds = 36.0
        assert others.held_in() is None, "its owner is dead"
        transport.close()


def test_lease_that_was_let_go_of_elsewhere_is_none() -> None:
    """The pods begin as soon as the laptop ends."""
    with ClusterServer() as server:
        transport = connect(str(server.kubeconfig))
        laptop = over_http(transport, "kube-system").first
        others = OtherLeases(transport, lambda: "default", lambda: 0.0)
        seen = laptop.write(OURS)
        assert others.held_in() == "kube-system"
        laptop.write(replace(seen, holder="", duration_seconds=1))
        assert others.held_in() is None
        transport.close()
