"""Demand files: what is written is read again, and errors name line and key."""

import gzip
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import zstandard

from reconciler.model.cluster import Owner
from reconciler.model.demand import (
    BudgetDemand,
    ClaimDemand,
    ClaimTemplate,
    ControllerDemand,
    CronDemand,
    Demand,
    DemandLine,
    FaultDemand,
    FleetFact,
    NodeFact,
    PodDemand,
    PodEnd,
    PodVolumes,
)
from reconciler.model.errors import InputError
from reconciler.model.frozen import FrozenMap
from reconciler.records.demand import Limits, encode_line, folded, read_demand
from tests.builders import amounts, make_spec, near, selecting, spread

AT = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
SPEC = make_spec("500m", "1Gi", sector="ci", topology_spread=(spread("zone", app="a"),))
EVERY: tuple[DemandLine, ...] = (
    PodDemand(at=AT, id="a-1", spec=SPEC, namespace="ci", ran_seconds=61.5,
              controller=Owner(kind="Job", name="a"), labels=FrozenMap({"app": "a"}),
              annotations=FrozenMap({"fleet-reconciler.io/do-not-disrupt": "true"})),
    PodDemand(at=AT, id="b-1", spec=SPEC, until=AT + timedelta(hours=2)),
    ControllerDemand(at=AT, controller=Owner(kind="Deployment", name="web"), replicas=3,
                     spec=make_spec(pod_anti_affinity=(near("zone", app="web"),))),
    ControllerDemand(at=AT, controller=Owner(kind="Deployment", name="web"), deleted=True),
    BudgetDemand(at=AT, id="web", selector=selecting(app="web"), max_unavailable="25%"),
    CronDemand(at=AT, id="nightly", schedule="0 3 * * *", spec=SPEC, time_zone="Europe/Berlin",
               pods=4, ran_seconds=600.0),
    FaultDemand(at=AT, fault="capacity", fleet="ci-large", until=AT + timedelta(minutes=10)),
    FleetFact(at=AT, fleet="ci-large", target=7, joined=6),
    PodDemand(at=AT, id="c-1", spec=SPEC, ran_seconds=61.5, kept_seconds=300.0),
    NodeFact(at=AT, fleet="ci-large", instance_type="m5.4xlarge",
             allocatable=amounts(cpu="15890m", memory="60Gi", pods=234)),
    PodDemand(at=AT, id="huge", spec=make_spec("500m", "20Ei"), ran_seconds=61.5),
    PodDemand(at=AT, id="step", spec=make_spec(ends_by_itself=True),
              controller=Owner(kind="Workflow", name="w")),
    NodeFact(at=AT, instance_type="m5.large", allocatable=amounts(cpu="1930m", pods=29)),
    PodDemand(at=AT, id="db-0", spec=make_spec(local_storage=True),
              volumes=PodVolumes(claims=("data-db-0", "shared"), ephemeral=("cache",))),
    ControllerDemand(at=AT, controller=Owner(kind="StatefulSet", name="db"), replicas=3, spec=SPEC,
                     volumes=PodVolumes(claims=("shared",)),
                     claim_templates=(ClaimTemplate(name="data"),
                                      ClaimTemplate(name="log", storage_class="efs",
                                                    access_modes=("ReadWriteMany",))),
                     pod_management_policy="Parallel"),
    CronDemand(at=AT, id="dump", schedule="0 4 * * *", spec=SPEC,
               volumes=PodVolumes(ephemeral=("scratch",))),
    ClaimDemand(at=AT, id="data-db-0", namespace="db", zone="us-west-2a", storage_class="gp3"),
    ClaimDemand(at=AT, id="files", driver="efs.csi.aws.com", immediate=True,
                access_modes=("ReadWriteMany",)),
    ClaimDemand(at=AT, id="files", deleted=True),
)  # fmt: skip


def read(body: bytes, **limits: int) -> Demand:
    """A file's content, read."""
    return read_demand(io.BytesIO(body), "demand.jsonl", Limits(**limits))


def line(**fields: Any) -> bytes:
    """One line with these keys, and a time."""
    return json.dumps({"t": "2026-03-01T12:00:00Z", **fields}).encode() + b"\n"


def compressed_by_zstd(body: bytes) -> bytes:
    """The bytes as one frame."""
    return zstandard.ZstdCompressor().compress(body)


@pytest.mark.parametrize("packed", [bytes, gzip.compress, compressed_by_zstd])
def test_every_kind_of_line_is_read_as_it_was_written(packed: Callable[[bytes], bytes]) -> None:
    """A recorder's file that reads differently would replay another week."""
    body = b"".join(map(encode_line, EVERY))
    found = read(packed(body))
    assert sorted(found.lines, key=EVERY.index) == list(EVERY)
    assert found.begin == AT
    assert found.end == AT + timedelta(hours=2)


def test_files_appended_to_each_other_are_one() -> None:
    """Recorders append a frame at each flush."""
    first, second = (compressed_by_zstd(encode_line(each)) for each in EVERY[:2])
    assert read(first + second).lines == EVERY[:2]


def test_pods_of_one_spec_share_it() -> None:
    """A million pods would else be a million specs, and as many classes in every plan."""
    spec = {"priority": 3, "containers": []}
    found = read(b"".join(line(kind="pod", id=str(n), spec=spec) for n in range(3)))
    assert len({id(each.spec) for each in found.lines if isinstance(each, PodDemand)}) == 1


def test_end_of_a_pod_comes_in_a_later_line() -> None:
    """When a pod is created no recorder knows how long it will run."""
    job, service = (PodDemand(at=AT, id=name, spec=SPEC) for name in ("job", "service"))
    later = AT + timedelta(seconds=90)
    found = folded(
        [PodEnd(at=later, id="job", ran_seconds=60.0), job, service, PodEnd(at=later, id="service")]
    )
    ends = {p.id: (p.ran_seconds, p.until) for p in found.lines if isinstance(p, PodDemand)}
    assert ends == {"job": (60.0, None), "service": (None, later)}
    assert found.end == later


def test_last_line_of_a_pod_counts_and_lines_are_put_in_order_of_time() -> None:
    """Recorders write a pod again when they begin a new file."""
    late = PodDemand(at=AT + timedelta(hours=1), id="late", spec=SPEC)
    early = PodDemand(at=AT, id="early", spec=SPEC)
    found = folded([late, early, PodDemand(at=AT, id="early", spec=SPEC, ran_seconds=5.0)])
    assert [p.id for p in found.lines if isinstance(p, PodDemand)] == ["early", "late"]
    assert found.lines[0].ran_seconds == 5.0  # type: ignore[union-attr] # a pod


POD = {"kind": "pod", "id": "x", "spec": {"containers": []}}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (line(**POD) + b"{", "demand.jsonl:2: Input data was truncated"),
        (line(**{**POD, "id": "ci/", "namespace": "ci"}), "id: no name follows the namespace"),
        (line(kind="pods"), "demand.jsonl:1: kind: Invalid value 'pods'"),
        (line(**POD, images=["a"]), "images"),
        (line(**{**POD, "ran_seconds": -1}), "ran_seconds: Expected `float` >= 0.0"),
        (
            line(**{**POD, "spec": {"containers": [], "priority": "high"}}),
            "spec.priority: Expected `int | null`, got `str`",
        ),
        (
            line(**{**POD, "spec": {"requests": {"cpu": "2"}}}),
            "spec: Object missing required field `containers`",
        ),
        (line(**{**POD, "t": "9999-12-31T23:59:59Z"}), "t: its year is 9999, not from 1970"),
        (line(**{**POD, "t": "0001-01-01T00:00:00+14:00"}), "t: its year is 1, not from 1970"),
        (line(**POD, until="2260-01-01T00:00:00Z"), "until: its year is 2260"),
        (line(**POD, labels={"a": 1}), "labels[...]: Expected `str`, got `int`"),
        (line(**POD, until="2026-02-28T00:00:00Z"), "until: it is before t"),
        (line(**POD, until="2026-03-02T00:00:00Z", ran_seconds=1), "ran_seconds: a pod with"),
        (line(kind="pdb", id="x"), "exactly one of min_available and max_unavailable"),
        (line(kind="pdb", id="x", min_available="150%"), "min_available"),
        (line(kind="cron", id="x", schedule="every day", spec={}), "schedule: 'every day' is not"),
        (line(kind="cron", id="x", schedule="0 0 3 * * *", spec={}), "it has 6 fields, not 5"),
        (line(kind="cron", id="x", schedule="@every 1h", spec={}), "schedule: '@every 1h' is not"),
        (
            line(kind="cron", id="x", schedule="0 3 * * *", time_zone="Mars", spec=POD["spec"]),
            "time_zone",
        ),
        (line(kind="controller", controller={"kind": "Job", "name": "x"}), "controller.kind"),
        (line(kind="fault", fault="fire"), "fault: Invalid enum value 'fire'"),
        (line(kind="fault", fault="slow-launch"), "seconds: a slow-launch has them"),
        (line(kind="claim", id="x", zones=["a"]), "zones"),
        (line(kind="claim", id="x", zone="a" * 513), "zone: Expected `str` of length <= 512"),
        (line(kind="claim", id="x", access_modes=["a"] * 9), "access_modes: Expected `array`"),
        (
            line(
                kind="controller",
                controller={"kind": "Deployment", "name": "x"},
                volume_claim_templates=[{"metadata": {"name": "data"}}],
            ),
            "volume_claim_templates: only a StatefulSet has them",
        ),
        (
            line(
                kind="controller",
                controller={"kind": "Deployment", "name": "x"},
                pod_management_policy="Parallel",
            ),
            "pod_management_policy: only a StatefulSet has one",
        ),
        (
            line(**{**POD, "spec": {"containers": [], "volumes": [{"persistentVolumeClaim": {}}]}}),
            "spec.volumes: a claim or an ephemeral volume has no name",
        ),
        (b'{"kind": "pod"}\n', "Object missing required field `t`"),
        (b"\xff\xfe\n", "demand.jsonl:1"),
        (
            line(**POD).replace(
                b'"containers":', b'"x":' + b"[" * 9000 + b"]" * 9000 + b',"containers":', 1
            ),
            "demand.jsonl:1: is nested too deeply",
        ),
        (gzip.compress(line(**POD), mtime=0)[:-12], "demand.jsonl:"),
        (compressed_by_zstd(line(**POD))[:-3] + b"xxx", "demand.jsonl:"),
    ],
)
def test_fault_is_reported_with_its_line_and_key(body: bytes, said: str) -> None:
    """Of a file of a million lines, a person needs the one."""
    with pytest.raises(InputError) as caught:
        read(body)
    assert said in str(caught.value)


def test_what_a_small_file_unpacks_to_is_bounded() -> None:
    """A kilobyte of gzip can hold a gigabyte."""
    with pytest.raises(InputError, match="longer than 1,000 bytes"):
        read(gzip.compress(b" " * 5000), line_bytes_max=1000)
    with pytest.raises(InputError, match="more than"):
        read(gzip.compress(line(**POD) * 100), bytes_max=5000)
    with pytest.raises(InputError, match="more than 10 lines"):
        read(line(**POD) * 11, lines_max=10)


def test_volumes_of_a_spec_are_read_as_kubernetes_has_them() -> None:
    """A manifest is copied as it is; what is no volume of a disk's kind is none of ours."""
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "db"}},
        {"name": "again", "persistentVolumeClaim": {"claimName": "db", "readOnly": True}},
        {"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "settings", "configMap": {"name": "settings"}},
    ]
    (found,) = read(line(**{**POD, "spec": {"containers": [], "volumes": volumes}})).lines
    assert isinstance(found, PodDemand)
    assert found.volumes == PodVolumes(claims=("db",), ephemeral=("cache",))
    assert found.spec.local_storage
    many = [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": "db"}} for n in range(300)]
    with pytest.raises(InputError, match="volumes, at most"):
        read(line(**{**POD, "spec": {"containers": [], "volumes": many}}))


def test_spec_beyond_the_limits_is_refused() -> None:
    """The parts that are left out of it would make another pod of it."""
    many = [{"key": str(n), "operator": "Exists"} for n in range(10_000)]
    with pytest.raises(InputError, match="tolerations, at most"):
        read(line(kind="pod", id="x", spec={"containers": [], "tolerations": many}))


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
    ],
)
def test_short_names_of_schedules_are_what_cron_jobs_take(name: str, schedule: str) -> None:
    """A CronJob's manifest is copied as it is."""
    (found,) = read(line(kind="cron", id="x", schedule=name, spec=POD["spec"])).lines
    assert isinstance(found, CronDemand)
    assert found.schedule == schedule


def test_mark_at_the_begin_of_a_file_is_no_part_of_its_first_line() -> None:
    """Editors of Windows put it there, and CSV traces may have it."""
    for mark in (b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"):
        assert len(read(mark + line(**POD)).lines) == 1
