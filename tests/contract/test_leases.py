"""The Leases port, in memory and over HTTP: versions, annotations, who was faster."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.adapters.kubernetes import (
    KubernetesCluster,
    KubernetesLeases,
    LeaseHome,
    Transport,
    connect,
    lease_home,
    leases_elsewhere,
)
from reconciler.adapters.kubernetes.verbs import Verbs
from reconciler.adapters.memory import MemoryLease, MemoryLeases
from reconciler.loops.lease.election import Election, ElectionTiming
from reconciler.model.actions import FLEET_STATE, LAST_DRAIN
from reconciler.model.errors import Conflict, NotFound
from reconciler.model.ids import Region
from reconciler.model.saved_state import SavedFleetState
from reconciler.ports.leases import LeaseRecord, Leases
from reconciler.records.kubernetes import encode_fleet_state
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
    home = LeaseHome(namespace=namespace)
    verbs = Verbs(transport, home)

    def annotation() -> str:
        found: dict[str, Any] = transport.expect("GET", path).json()
        return str(found["metadata"]["annotations"][MEMORY])

    return LeaseWorld(
        first=KubernetesLeases(transport, home),
        second=KubernetesLeases(transport, home),
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


TENANT = LeaseRecord(holder="tenant", duration_seconds=2147483647, acquired_at=AT, renewed_at=AT)
"""What anybody may write who may create Leases in a namespace of his own."""


@pytest.fixture
def api() -> Iterator[Transport]:
    """A simulated cluster with the namespaces that every cluster has."""
    with ClusterServer() as server:
        transport = connect(str(server.kubeconfig))
        yield transport
        transport.close()


def test_lease_in_the_namespace_of_a_tenant_keeps_nobody_from_leading(api: Transport) -> None:
    """One Lease in any namespace stopped every replica, for as long as its duration said."""
    over_http(api, "default").first.write(TENANT)
    election = Election(
        KubernetesLeases(api, LeaseHome(namespace="kube-system")),
        "replica",
        ElectionTiming(),
        now=lambda: AT,
        monotonic_seconds=lambda: 0.0,
    )
    election.step()
    assert election.may_act()


def test_state_on_the_lease_of_a_tenant_is_not_read(api: Transport) -> None:
    """A tenant's annotation made all fleets unavailable."""
    state = encode_fleet_state([SavedFleetState(fleet="a", region=Region("r"), failures=9)])
    tenant, ours = LeaseHome(namespace="default"), LeaseHome(namespace="kube-system")
    Verbs(api, tenant).remember({FLEET_STATE: state, LAST_DRAIN: "2026-01-31T12:00:00Z"})
    with closing(KubernetesCluster(api, lease_home=ours)) as cluster:
        seen = cluster.observe()
    assert (seen.fleet_states, seen.last_drain_at) == ((), None)


def test_state_on_our_lease_is_read(api: Transport) -> None:
    """A restart would forget which fleets have no capacity."""
    saved = SavedFleetState(fleet="a", region=Region("r"), failures=1)
    ours = LeaseHome(namespace="kube-system")
    Verbs(api, ours).remember({FLEET_STATE: encode_fleet_state([saved])})
    with closing(KubernetesCluster(api, lease_home=ours)) as cluster:
        assert cluster.observe().fleet_states == (saved,)


def test_namespace_of_the_manifest_is_made_for_the_first_lease(api: Transport) -> None:
    """A first try from a laptop has no such namespace yet."""
    home = LeaseHome(namespace="fleet-reconciler", may_be_made=True)
    assert KubernetesLeases(api, home).write(OURS).holder == "a"
    Verbs(api, home).remember({MEMORY: "2026-01-31T12:00:00Z"})


def test_namespace_that_somebody_typed_is_not_made(api: Transport) -> None:
    """A typing error would make a second Lease, whose holder acts beside the replicas."""
    with pytest.raises(NotFound, match=r"namespace fleet-reconcile: does not exist.*lease-namesp"):
        KubernetesLeases(api, LeaseHome(namespace="fleet-reconcile")).write(OURS)


def test_leases_elsewhere_are_named_for_people(api: Transport) -> None:
    """The replicas may run in another namespace than the laptop believes."""
    home = LeaseHome(namespace="fleet-reconciler", may_be_made=True)
    over_http(api, "default").first.write(OURS)
    over_http(api, "kube-system").first.write(replace(OURS, holder=""))
    KubernetesLeases(api, home).write(OURS)
    assert leases_elsewhere(api, home) == ("default",)


def test_home_of_the_lease_is_what_is_stated_then_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Outside of the cluster nothing is guessed from Leases that anybody could have made."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert lease_home("ops") == LeaseHome(namespace="ops")
    assert lease_home(None) == LeaseHome(namespace="fleet-reconciler", may_be_made=True)
