"""What the recorder writes down of claims and of the volumes that pods name."""

from datetime import timedelta
from typing import Any

import pytest

from reconciler.loops.reporters.demand_recorder import DemandRecorder
from reconciler.model.cluster import Pod
from reconciler.model.demand import ClaimDemand, PodVolumes
from reconciler.model.volumes import (
    EBS_DRIVER,
    CsiNode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from reconciler.planner.planner import plan
from tests.builders import NOW, labelled, make_pod, make_snapshot, requiring
from tests.unit.loops.reporters.demand_log import KEEP_SECONDS, SETTINGS, Log, made

CLASSES = (
    StorageClass(name="gp3", provisioner=EBS_DRIVER, wait_for_first_consumer=True, default=True),
    StorageClass(name="now", provisioner=EBS_DRIVER, wait_for_first_consumer=False),
    StorageClass(name="efs", provisioner="efs.csi.aws.com", wait_for_first_consumer=False),
)


class Recording:
    """A recorder, and the log that it writes."""

    def __init__(self) -> None:
        self.log = Log()
        self.recorder = DemandRecorder(self.log, KEEP_SECONDS, self.log.counts.append)

    def look(
        self,
        *pods: Pod,
        after: float = 0.0,
        claims: tuple[PersistentVolumeClaim, ...] = (),
        volumes: tuple[PersistentVolume, ...] = (),
        csi_nodes: tuple[CsiNode, ...] = (),
    ) -> None:
        """One cycle's plan, so many seconds after the first."""
        snapshot = make_snapshot(
            *pods, at=NOW + timedelta(seconds=after), claims=claims, volumes=volumes,
            storage_classes=CLASSES, csi_nodes=csi_nodes,
        )  # fmt: skip
        self.recorder.plan_made(snapshot, plan(snapshot, SETTINGS))

    def claims(self) -> list[ClaimDemand]:
        """The lines about claims."""
        return [line for line in self.log.demand().lines if isinstance(line, ClaimDemand)]


def claim(name: str, volume: str = "", **changed: Any) -> PersistentVolumeClaim:
    """A claim of the namespace of `made` pods."""
    return PersistentVolumeClaim(namespace="ns", name=name, volume_name=volume, **changed)


def volume(name: str, zone: str = "", driver: str = EBS_DRIVER) -> PersistentVolume:
    """A volume as the EBS CSI driver makes it."""
    affinity = requiring("topology.ebs.csi.aws.com/zone", "In", zone) if zone else None
    return PersistentVolume(name=name, node_affinity=affinity, csi_driver=driver)


OLD_STYLE = PersistentVolume(
    name="labelled", csi_driver=EBS_DRIVER,
    labels=labelled(**{"failure-domain.beta.kubernetes.io/zone": "us-west-2c"}),
)  # fmt: skip


@pytest.mark.parametrize(
    ("there", "disk", "recorded"),
    [
        (claim("c", "v", storage_class="gp3"), volume("v", "us-west-2b"),
         {"zone": "us-west-2b", "storage_class": "gp3"}),
        (claim("c", "labelled"), OLD_STYLE, {"zone": "us-west-2c", "storage_class": "gp3"}),
        (claim("c", storage_class="now"), None, {"storage_class": "now", "immediate": True}),
        (claim("c", "v", storage_class="efs", access_modes=("ReadWriteMany",)),
         volume("v", driver="efs.csi.aws.com"),
         {"storage_class": "efs", "driver": "efs.csi.aws.com", "immediate": True,
          "access_modes": ("ReadWriteMany",)}),
        (claim("c", "nfs", storage_class=""), PersistentVolume(name="nfs"),
         {"driver": "kubernetes.io/no-provisioner"}),
    ],
)  # fmt: skip
def test_claim_is_recorded_with_the_zone_and_the_class_of_its_volume(
    there: PersistentVolumeClaim, disk: PersistentVolume | None, recorded: dict[str, Any]
) -> None:
    """A replay would choose other zones than those in which the data is."""
    recording = Recording()
    recording.look(claims=(there,), volumes=() if disk is None else (disk,))
    assert recording.claims() == [ClaimDemand(at=NOW, id="c", namespace="ns", **recorded)]


def test_claims_come_before_the_pods_that_name_them() -> None:
    """A replay would make their volumes wherever the pods are."""
    recording = Recording()
    pod = made("db-0", owner="StatefulSet", claims=("data-db-0",))
    recording.look(pod, claims=(claim("data-db-0", "v"),), volumes=(volume("v", "us-west-2b"),))
    found = recording.log.demand()
    kinds = [type(line).__name__ for line in found.lines]
    assert kinds.index("ClaimDemand") < kinds.index("PodDemand")
    assert found.begin == NOW
    assert recording.log.pods()[pod.key.uid].volumes == PodVolumes(claims=("data-db-0",))


def test_zone_that_was_chosen_during_the_recording_is_left_to_the_replay() -> None:
    """It follows from where kube-scheduler placed the pod, which is what a replay asks about."""
    recording = Recording()
    recording.look()
    pod = make_pod("db-0", claims=("data",), created_at=NOW + timedelta(seconds=20))
    later = {"claims": (claim("data", "v"),), "volumes": (volume("v", "us-west-2b"),)}
    recording.look(pod, after=30, **later)  # type: ignore[arg-type] # by name
    (first,) = recording.claims()
    assert (first.at, first.zone) == (NOW + timedelta(seconds=20), "")
    recording.look(pod, after=86_400, **later)  # type: ignore[arg-type] # by name
    assert [claim_demand.zone for claim_demand in recording.claims()] == ["", "us-west-2b"]


def test_claim_that_is_gone_is_recorded_once() -> None:
    """Its name may be used again, for a volume in another zone."""
    recording = Recording()
    recording.look(claims=(claim("data"),))
    recording.look(after=30)
    recording.look(after=60)
    assert [(claim_demand.id, claim_demand.deleted) for claim_demand in recording.claims()] == [
        ("data", False),
        ("data", True),
    ]


@pytest.mark.parametrize("exists", [False, True])
def test_generic_ephemeral_volume_is_recorded_with_its_pod(exists: bool) -> None:
    """A replacement of the pod has a volume of its own, which holds it nowhere."""
    recording = Recording()
    there = (claim("web-x-cache", of_pod=True),) if exists else ()
    recording.look(made("web-x", claims=("web-x-cache", "shared")), claims=there)
    recording.look(after=30)
    assert recording.claims() == []
    (pod,) = recording.log.pods().values()
    assert pod.volumes == PodVolumes(claims=("shared",), ephemeral=("cache",))
