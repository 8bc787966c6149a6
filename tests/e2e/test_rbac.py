"""The rights in install.yaml are exactly enough: all are used, and none can be spared."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.kubernetes import (
    KubernetesCluster,
    KubernetesEvents,
    LeaseHome,
    Transport,
    connect,
)
from reconciler.adapters.kubernetes.event_log import REPEAT_SECONDS
from reconciler.adapters.memory import ManualClock
from reconciler.model.cluster import Taint
from reconciler.model.ids import NodeName, PodKey
from reconciler.ports.object_events import ObjectEvent
from tests.e2e.audited import AuditedPlane
from tests.e2e.installed import (
    ACCOUNT,
    CONFIG,
    NAMESPACE,
    apply,
    documents,
    manifest,
    path_of,
    token_kubeconfig,
)
from tests.e2e.rights import Right, rights_of, status_of
from tests.e2e.sandbox import OnRealCluster
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import Program, World
from tests.waiting import until

NODE = NodeName("by-hand")
TAINT = Taint(key="fleet-reconciler.io/draining", value="scale-in", effect="NoSchedule")


class Installed:
    """install.yaml without its pods, on a control plane of its own that writes an audit log."""

    def __init__(self, plane: AuditedPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self.api = connect(str(plane.kubeconfig))
        self.objects = documents(manifest(folder))
        apply(self.api, [each for each in self.objects if each["kind"] != "Deployment"])
        self.account_file = token_kubeconfig(plane, self.api, folder)
        self.rights = rights_of(self.objects)


@pytest.fixture(scope="module")
def installed(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """A control plane on which nothing but the install is."""
    folder = tmp_path_factory.mktemp("installed")
    with AuditedPlane(programs, folder / "plane") as plane:
        made = Installed(plane, folder)
        yield made
        made.api.close()


@pytest.fixture
def account(installed: Installed) -> Iterator[Transport]:
    """Requests as the install's ServiceAccount."""
    transport = connect(str(installed.account_file))
    yield transport
    transport.close()


def _scale_up_and_in(installed: Installed) -> None:
    """The program's main job, with the account's token."""
    config = installed.folder / "run.yaml"
    config.write_text(CONFIG)
    with OnRealCluster(installed.plane) as sandbox:
        world = World(sandbox)
        for size in ("small", "medium"):
            create_fleet(sandbox.aws_url, size)
        with Program(sandbox, config, "--kubeconfig", str(installed.account_file)) as program:
            program.until_ready()
            world.add_pods([f"job-{n}" for n in range(3)], cpu="1500m")
            world.until_pods(lambda phases: set(phases.values()) == {"Running"})
            world.remove_pods()
            world.until_idle()
            assert program.end()[0] == 0
        world.close()


def _pod(api: Transport, name: str) -> PodKey:
    """A bound pod on the node."""
    container = {"name": "c", "image": "registry/app:1"}
    body = {"metadata": {"name": name}, "spec": {"nodeName": NODE, "containers": [container]}}
    path = "/api/v1/namespaces/default/pods"
    made: dict[str, Any] = api.expect("POST", path, body=body).json()
    return PodKey(namespace="default", name=name, uid=made["metadata"]["uid"])


def _use_every_verb(installed: Installed, account: Transport) -> None:
    """What the executor can do and the main job above need not: the port's verbs, one by one."""
    api = installed.api
    api.expect("POST", "/api/v1/nodes", body={"metadata": {"name": NODE}})
    evicted = _pod(api, "evicted")
    with closing(KubernetesCluster(account, lease_home=LeaseHome(namespace=NAMESPACE))) as cluster:
        cluster.observe()
        assert cluster.taint_node(NODE, TAINT)
        assert cluster.untaint_node(NODE, TAINT.key)
        cluster.annotate_node(NODE, {"fleet-reconciler.io/unneeded-since": "now"})
        assert set(cluster.counted_pods_on(NODE)) == {evicted}
        assert cluster.evict_pod(evicted, 0)
        assert cluster.delete_pod(_pod(api, "deleted"), 0)
        assert cluster.delete_node(NODE, "")
        cluster.remember({"fleet-reconciler.io/last-drain": "2026-01-31T12:00:00Z"})


def _tell_twice(transport: Transport) -> None:
    """An Event, and the same five minutes later."""
    clock = ManualClock(datetime.now(UTC))  # noqa: TID251 - the server's own day
    results: list[str] = []
    told = KubernetesEvents(
        transport,
        instance="test",
        now=clock.now,
        monotonic_seconds=clock.monotonic_seconds,
        counted=results.append,
    )
    event = ObjectEvent(kind="Node", name=NODE, reason="NodeKept", message="as a test")
    for turn in (1, 2):
        told.emit(event)
        until("the Event is written", lambda turn=turn: results == ["written"] * turn)  # type: ignore[misc]
        clock.advance(REPEAT_SECONDS)
    told.close()


def _used(installed: Installed, before: int) -> dict[Right, int]:
    """How often each right was used by the account; all its requests must be covered.

    The first ones, made `before`, are other tests', which ask for what must be refused.
    """
    counts = dict.fromkeys(installed.rights, 0)
    for entry in islice(installed.plane.entries(ACCOUNT), before, None):
        covering = [right for right in installed.rights if right.covers(entry.asked)]
        assert covering, f"not granted and asked for: {entry.asked}"
        assert entry.status != 403, entry
        for right in covering:
            counts[right] += 1
    return counts


def test_rights_are_exactly_those_that_are_used(installed: Installed) -> None:
    """A right that nothing uses is only of use to someone else; a missing one is an outage."""
    before = sum(1 for _ in installed.plane.entries(ACCOUNT))
    _scale_up_and_in(installed)
    _use_every_verb(installed, connect(str(installed.account_file)))
    _tell_twice(connect(str(installed.account_file)))
    counts = _used(installed, before)
    table = "\n".join(f"{count:6} x {right}" for right, count in counts.items())
    print(f"\n{table}")  # noqa: T201 - the proof
    assert [str(right) for right, count in counts.items() if count == 0] == [], table


def _without(installed: Installed, right: Right) -> dict[str, Any]:
    """The right's role, all of its other rights in it."""
    (role,) = (each for each in installed.objects if each["kind"] == right.role)
    others = [r.rule() for r in installed.rights if r.role == right.role and r != right]
    return {**role, "rules": others}


def test_no_right_can_be_taken_away(installed: Installed, account: Transport) -> None:
    """Each right for itself: with it the request is answered, without it refused."""
    for right in installed.rights:
        apply(installed.api, [_full(installed, right.role)])
        until(f"granted: {right}", lambda r=right: status_of(account, r) != 403)  # type: ignore[misc]
        apply(installed.api, [_without(installed, right)])
        until(f"refused: {right}", lambda r=right: status_of(account, r) == 403)  # type: ignore[misc]
        apply(installed.api, [_full(installed, right.role)])


def path_of_lease(namespace: str, name: str = "fleet-reconciler") -> str:
    """Where the API server has a Lease."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"


def _full(installed: Installed, kind: str) -> dict[str, Any]:
    return next(each for each in installed.objects if each["kind"] == kind)


def test_nothing_beyond_is_granted(installed: Installed, account: Transport) -> None:
    """Secrets, other Leases, pods of one's own making: the ways from here to the whole cluster."""
    refused = [
        ("GET", "/api/v1/secrets", None),
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps", None),
        ("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "mine"}}),
        ("DELETE", "/api/v1/namespaces/default/pods", None),
        ("PATCH", path_of_lease("kube-system", "other"), {}),
        ("GET", path_of_lease(NAMESPACE, "other"), None),
        ("GET", path_of_lease("kube-system"), None),
        ("GET", "/apis/coordination.k8s.io/v1/leases", None),
        ("PATCH", path_of(_full(installed, "ClusterRole")), {}),
        ("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/fleet-reconciler/token", {}),
    ]
    for method, path, body in refused:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        reply = account.request(method, path, body=body, content_type=kind)
        assert reply.status == 403, path
