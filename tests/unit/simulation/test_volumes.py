"""Simulations of pods with persistent volumes: what a volume's zone holds, and what follows."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.model.cluster import Pod
from reconciler.model.demand import Demand
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from reconciler.records.demand import read_demand
from reconciler.records.kubernetes import decode_cluster, split_documents
from reconciler.records.plan import encode_plan
from reconciler.simulation.chances import Chances
from reconciler.simulation.moments import snapshot_files
from reconciler.simulation.notes import notes
from reconciler.simulation.peers.models import PEERS, peer_of, played
from reconciler.simulation.report import report, report_files
from reconciler.simulation.simulation import Options, Result, Simulation
from tests.builders import ZONE, idle, make_fleet_settings, make_option, make_settings

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
CALM = Chances(interruptions_per_hour=0, capacity_errors_per_day=0)
A, B = "us-west-2a", "us-west-2b"
Line = dict[str, Any]


def settings(**changed: Any) -> PlannerSettings:
    """A fleet in each of two zones; that of zone b costs a little more."""
    return make_settings(
        *(
            make_fleet_settings(
                zone=zone, spot=False, scale_in=idle(120),
                options=[make_option("m5.xlarge", price=price)],
            )
            for zone, price in ((A, "0.10"), (B, "0.11"))
        ),
        search_budget_seconds=0.0, **changed,
    )  # fmt: skip


def at(seconds: float) -> str:
    """A time so long after the first line, as files have it."""
    return (AT + timedelta(seconds=seconds)).isoformat()


def line(kind: str, seconds: float = 0, **fields: Any) -> Line:
    """A line of a file, so long after the first one."""
    return {"t": at(seconds), "kind": kind, **fields}


def spec(cpu: str = "1", claims: Sequence[str] = (), own: Sequence[str] = ()) -> Line:
    """A pod's spec, as Kubernetes has it."""
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    volumes += [{"name": name, "ephemeral": {}} for name in own]
    requests = {"cpu": cpu, "memory": "1Gi"}
    return {"containers": [{"resources": {"requests": requests}}], "volumes": volumes}


def pod(name: str, seconds: float = 0, **fields: Any) -> Line:
    """A pod without a controller."""
    return line("pod", seconds, id=name, **{"spec": spec(), **fields})


def database(seconds: float = 0, **fields: Any) -> Line:
    """A change of the StatefulSet `db`, whose replicas have a volume each."""
    return line("controller", seconds, controller={"kind": "StatefulSet", "name": "db"}, **fields)


TEMPLATES: Line = {"volume_claim_templates": [{"metadata": {"name": "data"}}]}


def demand(*lines: Line) -> Demand:
    """The lines, read."""
    return read_demand(io.BytesIO(b"".join(json.dumps(each).encode() + b"\n" for each in lines)),
                       "demand")  # fmt: skip


def simulation(*lines: Line, seconds: float = 1200, **changed: Any) -> Simulation:
    """The lines, played for so long."""
    options = Options(days=seconds / 86_400, chances=CALM)
    return Simulation(demand(*lines), settings(**changed), options)


def after(*lines: Line, seconds: float = 1200, **changed: Any) -> dict[str, tuple[Pod, str]]:
    """The pods so long after the first line, by name, each with the zone of its node."""
    made = simulation(*lines, seconds=seconds, **changed)
    made.run()
    zones = {node.name: node.labels[ZONE] for node in made.world.nodes()}
    return {p.key.name: (p, zones[p.node_name] if p.node_name else "") for p in made.world.pods()}


def zones_after(*lines: Line, seconds: float = 1200, **changed: Any) -> dict[str, str]:
    """Only the zones."""
    found = after(*lines, seconds=seconds, **changed)
    return {name: zone for name, (_, zone) in found.items()}


@pytest.mark.parametrize(("templates", "zone"), [({}, B), (TEMPLATES, "")])
def test_replica_of_a_stateful_set_comes_back_to_the_zone_of_its_volume(
    templates: Line, zone: str
) -> None:
    """Scaled up again it waits for capacity there, and one without a volume would not."""
    lines = [
        database(replicas=1, spec=spec(), **templates),
        database(600, replicas=0),
        line("fault", 900, fault="capacity", zone=A, until=at(3000)),
        database(1200, replicas=1),
    ]  # fmt: skip
    assert zones_after(*lines, seconds=500) == {"db-0": A}
    assert zones_after(*lines, seconds=2900) == {"db-0": zone}
    assert zones_after(*lines, seconds=4000) == {"db-0": zone or A}


def test_rollout_of_a_stateful_set_keeps_each_replica_in_its_zone() -> None:
    """Each pod is replaced under its own name, with its own claim."""
    lines = [
        line("claim", id="data-db-0", zone=B),
        line("claim", id="data-db-1", zone=A),
        line("claim", id="data-db-2", zone=B),
        database(replicas=3, spec=spec(), **TEMPLATES),
        database(900, spec=spec("1500m")),
    ]
    zones = {"db-0": B, "db-1": A, "db-2": B}
    assert zones_after(*lines, seconds=890) == zones
    found = after(*lines, seconds=1800)
    assert {name: zone for name, (_, zone) in found.items()} == zones
    assert {pod.spec.requests["cpu"] for pod, _ in found.values()} == {1500}
    assert {pod.claims for pod, _ in found.values()} == {(f"data-db-{n}",) for n in range(3)}


@pytest.mark.parametrize(("claims", "nodes"), [(False, 1), (True, 2)])
def test_consolidation_leaves_pods_where_their_volumes_are(claims: bool, nodes: int) -> None:
    """Savings that no cluster would see: one node in place of two in different zones."""
    two = {A: "one", B: "two"}
    lines = [line("claim", id=name, zone=zone) for zone, name in two.items()]
    for zone, name in two.items():
        filler = spec("2500m") | {"nodeSelector": {ZONE: zone}}
        lines.append(pod(f"filler-{name}", spec=filler, until=at(600)))
        there = spec(claims=[name]) if claims else spec()
        owner = {"kind": "ReplicaSet", "name": name}
        lines.append(pod(name, 120, spec=there, controller=owner))
    made = simulation(*lines, seconds=3600, consolidation=True)
    made.run()
    assert len(made.world.nodes()) == nodes
    if claims:
        assert not made.history.evictions
        assert zones_after(*lines, seconds=3600) == {"one": A, "two": B}


def test_deployment_with_a_volume_of_one_node_is_rolled_out_as_with_recreate() -> None:
    """The new pod would wait for the volume and the old one for the new pod, for ever."""
    web: Line = {"controller": {"kind": "Deployment", "name": "web"}}
    lines = [
        line("controller", **web, replicas=1, spec=spec("3", claims=["data"])),
        line("controller", 600, **web, spec=spec("2", claims=["data"])),
    ]
    ((pod, zone),) = after(*lines).values()
    assert (pod.spec.requests["cpu"], pod.ready, zone) == (2000, True, A)


def test_other_volumes_in_a_template_are_a_rollout() -> None:
    """Requests, labels and annotations are the same."""
    lines = [
        database(replicas=2, spec=spec(claims=["config"])),
        database(300, spec=spec(claims=["other"])),
    ]
    assert {pod.claims for pod, _ in after(*lines).values()} == {("other",)}


def test_ephemeral_volumes_and_those_of_every_zone_hold_no_pod() -> None:
    """A cache and a shared file system go with their pods wherever these go."""
    shared = line("claim", id="files", driver="efs.csi.aws.com", access_modes=["ReadWriteMany"])
    lines = [
        shared,
        line("controller", controller={"kind": "Deployment", "name": "web"}, replicas=2,
             spec=spec("3", claims=["files"], own=["cache"])),
        line("fault", 600, fault="capacity", zone=A),
        line("controller", 700, controller={"kind": "Deployment", "name": "web"}, replicas=0),
        line("controller", 1500, controller={"kind": "Deployment", "name": "web"}, replicas=2),
    ]  # fmt: skip
    found = after(*lines, seconds=2400)
    assert {zone for _, zone in found.values()} == {B}
    assert {pod.claims for pod, _ in found.values()} == {
        ("files", f"{name}-cache") for name in found
    }


def test_pods_of_jobs_may_share_a_claim() -> None:
    """All pods of a CronJob's Jobs read one disk."""
    cron = line("cron", id="report", schedule="*/10 * * * *", ran_seconds=120,
                spec=spec(claims=["disk"]), until=at(3600))  # fmt: skip
    made = simulation(line("claim", id="disk", zone=B), cron, seconds=3600)
    result = made.run()
    assert {launch.fleet for launch in result.launches} == {f"primary-small-{B}"}


def test_job_runs_when_the_node_of_the_one_before_it_lets_go_of_the_disk() -> None:
    """It ended while it still waited for its volume."""
    one: Line = {"spec": spec("3", claims=["disk"]), "ran_seconds": 600}
    lines = [pod("first", **one), pod("second", 1, **one)]
    made = simulation(*lines, seconds=3600)
    ends: dict[str, float] = {}

    def note(before: Pod | None, after: Pod | None) -> None:
        if after is not None and after.finished:
            ends[after.key.name] = made.process.now

    made.world.objects.pod_watchers.append(note)
    made.run()
    assert ends["second"] >= ends["first"] + 600


def test_claims_stay_when_a_stateful_set_is_deleted_until_their_line_says_so() -> None:
    """Kubernetes keeps them (persistentVolumeClaimRetentionPolicy Retain)."""
    lines = [
        database(replicas=1, spec=spec(), **TEMPLATES),
        database(300, deleted=True),
    ]
    gone = line("claim", 600, id="data-db-0", deleted=True)
    for more, claims in (([], 1), ([gone], 0)):
        made = simulation(*lines, *more)
        made.run()
        assert len(made.world.objects.volumes.claims) == claims


def test_same_demand_with_volumes_gives_the_same_bytes() -> None:
    """A comparison of two configs means nothing when chance differs between two runs."""
    lines = [
        database(replicas=5, spec=spec("2"), **TEMPLATES),
        database(600, spec=spec("1")),
        *(pod(f"p{n}", n, spec=spec(claims=[f"c{n % 3}"], own=["own"])) for n in range(9)),
    ]
    chances = replace(CALM, interruptions_per_hour=2, capacity_errors_per_day=9)
    found = []
    for _ in range(2):
        options = Options(days=0.015, chances=chances)
        results = [("a", Simulation(demand(*lines), settings(), options).run())]
        found.append(report_files(report(results), results))
    assert found[0] == found[1]


def test_volumes_in_zones_without_a_fleet_are_noted() -> None:
    """Their pods wait until the end, and the figures alone do not say why."""
    lines = [line("claim", id="data", zone="us-west-2x"), pod("db", spec=spec(claims=["data"]))]
    result = simulation(*lines, seconds=600).run()
    assert result.history.waiting == 1
    (note,) = notes(result)
    assert note.startswith("1 volume of the demand in a zone without a fleet")


def held_in_its_zone() -> Result:
    """A pod waits for capacity in the zone of its volume, while there would be some elsewhere."""
    lines = [
        line("claim", id="data", zone=A, storage_class="fast"),
        line("fault", fault="capacity", zone=A),
        pod("other", 1),
        pod("db", 5, spec=spec(claims=["data"])),
    ]
    return simulation(*lines).run()


def test_snapshot_of_a_worst_moment_is_planned_with_its_volumes() -> None:
    """Without the claims it said that the claim does not exist, and not why the pod waits."""
    moment = held_in_its_zone().history.moments[0].snapshot
    files = snapshot_files(moment)
    cluster = decode_cluster(split_documents(files["cluster.json"], "cluster.json"))
    assert moment.cluster.claims
    assert cluster.claims == moment.cluster.claims
    assert cluster.volumes == moment.cluster.volumes
    assert cluster.storage_classes == moment.cluster.storage_classes
    assert cluster.csi_nodes == moment.cluster.csi_nodes
    assert cluster.csi_nodes
    known = replace(cluster, relists=moment.cluster.relists)
    was, read = (
        plan(replace(moment, cluster=cluster_state), settings())
        for cluster_state in (moment.cluster, known)
    )
    assert encode_plan(read) == encode_plan(was)
    (waits,) = [unplaceable for unplaceable in was.unplaceable if unplaceable.pod.name == "db"]
    why = {reason.fleet: reason.code for reason in waits.reasons}
    assert why[f"primary-small-{B}"] == "volume-zone"


@pytest.mark.parametrize("name", sorted(PEERS))
def test_models_of_other_autoscalers_buy_in_the_zone_of_a_volume(name: str) -> None:
    """Zone a is cheaper, and each of them would have bought there."""
    lines = [
        line("claim", id="data", zone=B),
        pod("db", spec=spec(claims=["data"])),
        database(replicas=1, spec=spec("3"), **TEMPLATES),
    ]
    result = played(peer_of(name), demand(*lines), settings(), Options(days=0.02, chances=CALM))
    assert f"primary-small-{B}" in {launch.fleet for launch in result.launches}
    assert result.history.waiting == 0
