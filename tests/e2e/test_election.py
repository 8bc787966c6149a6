"""Two replicas on a real API server: killed, cut off, stopped, slowed; one acts at a time."""

import signal
import threading
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from json import dumps, loads
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.kubernetes import Transport, connect
from reconciler.telemetry.events import STOP_FORCED
from tests.e2e.audited import AuditedPlane
from tests.e2e.installed import ACCOUNT, CONFIG, NAMESPACE, apply, documents, manifest
from tests.e2e.replicas import Replica, Replicas
from tests.e2e.sandbox import OnRealCluster
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import World
from tests.waiting import until

LEASE, DEADLINE, RETRY = 9.0, 6.0, 1.0
MARGIN = LEASE - DEADLINE
"""What a leader that could not renew has for calls under way."""
LONG_LEASE = 90.0
"""Whoever leads before that has ended was given the Lease, on however slow a machine."""
LEASE_PATH = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/fleet-reconciler"


def _config(lease_seconds: float) -> str:
    """The install's, with election times and room for many nodes."""
    times = (
        f"leader_election: {{namespace: {NAMESPACE}, lease_duration: {lease_seconds}s,"
        f" renew_deadline: {lease_seconds - MARGIN}s, retry_period: {RETRY}s}}"
    )
    config = CONFIG.replace(f"leader_election: {{namespace: {NAMESPACE}}}", times)
    return config.replace("max_capacity: 20", "max_capacity: 500")


class Stage:
    """A control plane with the install's account, EC2 with two fleets, and people who want pods."""

    def __init__(
        self, plane: AuditedPlane, sandbox: OnRealCluster, folder: Path, lease_seconds: float
    ) -> None:
        self.plane = plane
        self.sandbox = sandbox
        self.api: Transport = connect(str(plane.kubeconfig))
        objects = documents(manifest(folder, config=_config(lease_seconds)))
        apply(self.api, [each for each in objects if each["kind"] != "Deployment"])
        self.world = World(sandbox)
        self._names = count()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def want_pods_all_the_time(self) -> None:
        """A pod more every half a second, each of which needs a node more."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._want, daemon=True)
        self._thread.start()

    def _want(self) -> None:
        while not self._stop.wait(0.5):
            body = {
                "metadata": {"name": f"pod-{next(self._names)}"},
                "spec": {
                    "containers": [
                        {
                            "name": "c",
                            "image": "registry/app:1",
                            "resources": {"requests": {"cpu": "2900m"}},
                        }
                    ]
                },
            }
            self.api.request("POST", "/api/v1/namespaces/default/pods", body=body)

    def enough(self) -> None:
        """No more pods, and those that are go."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.world.remove_pods()

    def lease(self) -> dict[str, Any]:
        """The Lease as it is now."""
        found: dict[str, Any] = self.api.expect("GET", LEASE_PATH).json()
        return found

    def until_idle(self) -> None:
        """Nobody wants pods, and there is nothing left to act on."""
        self.enough()
        self.world.until_idle()

    def close(self) -> None:
        """Leave no node and no Lease to the next test."""
        self.enough()
        for fleet in self.world.ec2.describe_fleets()["Fleets"]:
            self.world.ec2.modify_fleet(
                FleetId=fleet["FleetId"],
                ExcessCapacityTerminationPolicy="termination",
                TargetCapacitySpecification={"TotalTargetCapacity": 0},
            )
        until("the nodes are gone", lambda: not self.world.nodes())
        self.api.request("DELETE", LEASE_PATH)
        self.world.close()
        self.api.close()


@pytest.fixture(scope="module")
def audited(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedPlane]:
    """A control plane that writes down who asked for what."""
    with AuditedPlane(programs, tmp_path_factory.mktemp("plane")) as running:
        yield running


@pytest.fixture
def stage(audited: AuditedPlane, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """EC2 and pods; a parameter is the lease duration in seconds."""
    lease_seconds = getattr(request, "param", LEASE)
    with OnRealCluster(audited) as sandbox:
        for size in ("small", "medium"):
            create_fleet(sandbox.aws_url, size)
        made = Stage(audited, sandbox, tmp_path, lease_seconds)
        yield made
        made.close()


@pytest.fixture
def replicas(stage: Stage, audited: AuditedPlane, tmp_path: Path) -> Iterator[Replicas]:
    """None yet."""
    made = Replicas(audited, stage.api, stage.sandbox, tmp_path)
    yield made
    made.close()


def _moment(stamp: str) -> datetime:
    """A MicroTime of the Lease."""
    return datetime.fromisoformat(stamp)


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - compared with the API server's own stamps


def _leader_and_standby(stage: Stage, replicas: Replicas) -> tuple[Replica, Replica]:
    """A leader that acts all the time, and another replica beside it."""
    leader = replicas.start("leader")
    standby = replicas.start("standby")
    stage.want_pods_all_the_time()
    began = _now()
    until("the leader acts", lambda: replicas.acted_since(leader, began))
    return leader, standby


def _until_leads(standby: Replica, after: str, closing_lines: list[str]) -> None:
    """Wait for it, however long the machine takes; how long that was is printed at the end."""
    seconds = standby.until_role("leader")
    closing_lines.append(
        f"leader {after}: followed after {seconds:.1f} s (lease duration {LEASE:.0f} s)"
    )


def _until_acts(replicas: Replicas, replica: Replica) -> None:
    since = _now()
    until(f"{replica.name} acts", lambda: replicas.acted_since(replica, since))


def test_killed_leader_is_followed_by_the_other(
    stage: Stage, replicas: Replicas, closing_lines: list[str]
) -> None:
    """An out-of-memory kill must not leave pods pending for longer than the lease duration."""
    leader, standby = _leader_and_standby(stage, replicas)
    before = stage.lease()["spec"]
    leader.program.process.kill()
    _until_leads(standby, "killed", closing_lines)
    _until_acts(replicas, standby)
    assert replicas.turns() == [leader.name, standby.name]
    after = stage.lease()["spec"]
    assert after["leaseTransitions"] == before["leaseTransitions"] + 1
    assert _moment(after["acquireTime"]) > _moment(before["renewTime"]) + timedelta(seconds=LEASE)


def test_leader_cut_off_from_the_api_server_stops_before_another_acts(
    stage: Stage, replicas: Replicas, closing_lines: list[str]
) -> None:
    """It still reaches EC2, where its old plans would meet the new leader's."""
    leader, standby = _leader_and_standby(stage, replicas)
    leader.kubernetes.cut()
    _until_leads(standby, "cut off", closing_lines)
    assert "standby" in leader.role or "not synced" in leader.role
    _until_acts(replicas, standby)
    leader.kubernetes.restore()
    leader.until_role("standby")
    _until_acts(replicas, standby)
    assert replicas.turns() == [leader.name, standby.name]


@pytest.mark.nightly
def test_stopped_leader_does_nothing_when_it_goes_on(
    stage: Stage, replicas: Replicas, closing_lines: list[str]
) -> None:
    """A machine that froze for a minute thinks that no time has passed."""
    leader, standby = _leader_and_standby(stage, replicas)
    leader.pause()
    _until_leads(standby, "stopped", closing_lines)
    _until_acts(replicas, standby)
    leader.go_on()
    leader.until_role("standby")
    _until_acts(replicas, standby)
    assert replicas.turns() == [leader.name, standby.name]


@pytest.mark.nightly
@pytest.mark.parametrize("stage", [LONG_LEASE], indirect=True)
def test_container_that_is_killed_again_and_again_goes_on_each_time(
    stage: Stage, replicas: Replicas
) -> None:
    """Each restart waited for the Lease of its dead predecessor, and pods for the restarts."""
    stage.want_pods_all_the_time()
    replica = replicas.start("leader", pod="one")
    _until_acts(replicas, replica)
    for _ in range(3):
        replica.program.process.kill()
        replica.program.process.wait()
        replica = replicas.start("leader", pod="one")
        _until_acts(replicas, replica)
        assert _seconds_until_leading(replica) < LONG_LEASE / 2
    assert stage.lease()["spec"]["leaseTransitions"] == 0


def _seconds_until_leading(replica: Replica) -> float:
    """From the program's first line of log to the lead; its start takes as long as it takes."""
    first, last = (
        _moment(replica.program.events(name)[0]["at"])
        for name in ("reconciler_started", "leading_began")
    )
    return (last - first).total_seconds()


@pytest.mark.nightly
@pytest.mark.parametrize("stage", [LONG_LEASE], indirect=True)
def test_second_process_of_a_pod_does_not_act_beside_the_first(
    stage: Stage, replicas: Replicas
) -> None:
    """`kubectl exec` gives it the same environment: with the same identity both would lead."""
    leader = replicas.start("leader", pod="one")
    beside = replicas.start("standby", pod="one")
    stage.want_pods_all_the_time()
    _until_acts(replicas, leader)
    assert beside.role == "standby"
    assert replicas.turns() == [leader.name]


@pytest.mark.parametrize("stage", [LONG_LEASE], indirect=True)
def test_lease_of_a_tenant_stops_nobody(stage: Stage, replicas: Replicas) -> None:
    """Whoever may create Leases in a namespace of his own stopped every replica for 68 years."""
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "fleet-reconciler",
            "annotations": {"fleet-reconciler.io/last-drain": "2026-01-31T12:00:00Z"},
        },
        "spec": {
            "holderIdentity": "tenant",
            "leaseDurationSeconds": 2147483647,
            "acquireTime": "2026-01-31T12:00:00.000001Z",
            "renewTime": "2099-01-31T12:00:00.000001Z",
        },
    }
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    stage.api.expect("POST", path, body=lease)
    try:
        leader = replicas.start("leader")
        stage.want_pods_all_the_time()
        _until_acts(replicas, leader)
    finally:
        stage.api.request("DELETE", f"{path}/fleet-reconciler")


@pytest.mark.nightly
def test_slowed_leader_steps_down(stage: Stage, replicas: Replicas) -> None:
    """Renewals that take longer than the deadline prove nothing by the time they are answered."""
    leader, standby = _leader_and_standby(stage, replicas)
    leader.kubernetes.delay_seconds = DEADLINE + 0.5
    standby.until_role("leader")
    _until_acts(replicas, standby)
    assert replicas.turns() == [leader.name, standby.name]


@pytest.mark.parametrize("stage", [LONG_LEASE], indirect=True)
def test_orderly_end_hands_the_lease_over_and_memory_stays(
    stage: Stage, replicas: Replicas
) -> None:
    """Every rolling update of the Deployment goes this way."""
    leader, standby = _leader_and_standby(stage, replicas)
    # A leader in the middle of a call that hangs ends without giving the Lease away.
    stage.until_idle()
    note = {"metadata": {"annotations": {"fleet-reconciler.io/last-drain": "2026-01-31T12:00:00Z"}}}
    stage.api.expect("PATCH", LEASE_PATH, body=note, content_type="application/merge-patch+json")
    held = stage.lease()["spec"]
    code, _ = leader.program.end()
    assert code == 0
    assert not leader.program.events(STOP_FORCED)
    standby.until_role("leader")
    lease = stage.lease()
    would_have_ended = _moment(held["renewTime"]) + timedelta(seconds=LONG_LEASE)
    assert _moment(lease["spec"]["acquireTime"]) < would_have_ended
    assert lease["spec"]["holderIdentity"] not in {"", held["holderIdentity"]}
    annotations = lease["metadata"]["annotations"]
    assert annotations["fleet-reconciler.io/last-drain"] == "2026-01-31T12:00:00Z"
    stage.want_pods_all_the_time()
    _until_acts(replicas, standby)
    assert replicas.turns() == [leader.name, standby.name]


@pytest.mark.nightly
def test_paused_etcd_stops_everyone_and_one_goes_on(stage: Stage, replicas: Replicas) -> None:
    """Nobody can renew; whoever acted on would not know whether another may by now."""
    leader, standby = _leader_and_standby(stage, replicas)
    etcd = stage.plane.processes["etcd"]
    etcd.send_signal(signal.SIGSTOP)
    try:
        until("nobody leads", lambda: leader.role != "leader", look_seconds=0.05)
        stopped_at = _now()
        threading.Event().wait(LEASE)
        latest = stopped_at + timedelta(seconds=MARGIN)
        assert not any(change.at > latest for change in replicas.changes())
    finally:
        etcd.send_signal(signal.SIGCONT)
    roles = {"leader", "standby"}
    until("one leads", lambda: {leader.role, standby.role} == roles)
    until("someone acts", lambda: any(replicas.acted_since(r, stopped_at) for r in replicas))
    assert len(replicas.turns()) <= 2


def _compact(etcd_url: str) -> None:
    """Forget every revision but the last."""

    def call(path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{etcd_url}{path}", dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - loopback
            found: dict[str, Any] = loads(answer.read())
            return found

    key = b64encode(b"/").decode()
    revision = call("/v3/kv/range", {"key": key})["header"]["revision"]
    call("/v3/kv/compaction", {"revision": revision, "physical": True})


@pytest.mark.nightly
def test_restarted_api_server_with_compacted_history_is_lived_through(
    stage: Stage, replicas: Replicas
) -> None:
    """Watches cannot go on where they were (410), and nobody could renew meanwhile."""
    leader, standby = _leader_and_standby(stage, replicas)
    for replica in (leader, standby):
        replica.kubernetes.cut()
    # What happens now is history that neither of them saw and nobody keeps.
    pods = "/api/v1/namespaces/default/pods"
    count_before = len(stage.api.expect("GET", pods).json()["items"])
    until(
        "pods came",
        lambda: len(stage.api.expect("GET", pods).json()["items"]) > count_before + 3,
    )
    stage.enough()
    stage.plane.stop_process("kube-apiserver")
    _compact(stage.plane.etcd_url)
    stage.plane.start_process("kube-apiserver")

    def serves() -> bool:
        try:
            return stage.plane.get("/readyz")[0] == 200
        except OSError:
            return False

    until("the API server is back", serves)
    back_at = _now()
    for replica in (leader, standby):
        replica.kubernetes.restore()
    roles = {"leader", "standby"}
    until("one leads", lambda: {leader.role, standby.role} == roles)
    began = _now()
    stage.want_pods_all_the_time()
    until("someone acts", lambda: any(replicas.acted_since(r, began) for r in replicas))
    assert len(replicas.turns()) <= 2
    listed = {
        entry.credential
        for entry in stage.plane.entries(ACCOUNT)
        if entry.asked.verb == "list" and entry.asked.resource == "pods" and entry.at > back_at
    }
    assert listed == {leader.credential, standby.credential}, "they went on from what is gone"
