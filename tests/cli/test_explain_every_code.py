"""For every code of `unplaceable`: the numbers, the smallest change, and that it really helps."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.cli.inputs import CONFIG, Desk, Json, fleet, fleets, node, pod
from tests.cli.volumes import (
    CLAIMED,
    EBS,
    attaching,
    claim,
    cordoned,
    mounting,
    storage_class,
    volume,
)

ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ONE = CONFIG.replace("    - {size: big}\n", "").replace(
    "regions: [us-west-2, us-east-1]", "regions: [us-west-2]"
)
"""A sector `primary` with one fleet of nodes with 3 CPUs and 13.5Gi."""
IN_A = ONE.replace("max_capacity: 3}", "zone: us-west-2a}")
IN_B = ONE.replace("max_capacity: 3}", "zone: us-west-2b}")


def exporter(port: int) -> Json:
    """A DaemonSet that takes a port of every node."""
    spec = {"hostNetwork": True, "containers": [{"name": "c", "ports": [{"containerPort": port}]}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": "kube-system"},
        "spec": {"template": {"spec": spec}},
    }


def listening(port: int) -> Json:
    """The spec of a pod that wants a host port."""
    return {"containers": [{"name": "c", "ports": [{"containerPort": port, "hostPort": port}]}]}


def near(kind: str, app: str) -> Json:
    """The spec of a pod with a required rule about an app's pods in the zone."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {kind: {REQUIRED: [term]}}}


def spread(count: int, *, hard: bool = True) -> list[Json]:
    """Replicas spread over three zones at least."""
    rule = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "minDomains": 3,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    if not hard:
        del rule["minDomains"]
    spec = {"topologySpreadConstraints": [rule]}
    names = ["p", *(f"a{i}" for i in range(count - 1))]
    return [pod(name, labels={"app": "a"}, spec=spec) for name in reversed(names)]


def requiring(key: str, *values: str) -> Json:
    """The spec of a pod with one line of required node affinity."""
    line = {"key": key, "operator": "In", "values": list(values)}
    return {
        "affinity": {
            "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [line]}]}}
        }
    }


@dataclass(frozen=True, kw_only=True)
class Case:
    """A pod `p` that goes nowhere, and the same with the change that the answer names."""

    code: str
    detail: str
    change: str
    objects: Sequence[Json]
    fixed: Sequence[Json] | None = None
    """None: as they were."""
    config: str = ONE
    better: str | None = None
    """The config with the change; None: as it was."""
    aws: Json | None = None
    aws_fixed: Json | None = None


TAINTED = ONE.replace(
    "max_capacity: 3}",
    "max_capacity: 3, taints: [{key: dedicated, value: db, effect: NoSchedule}]}",
)
TOLERATING = {"tolerations": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]}
CASES = [
    Case(
        code="insufficient-cpu",
        detail="requests 3500m, a new node offers 3",
        change="lower the pod's cpu request to 3",
        objects=[pod("p", cpu="3500m")],
        fixed=[pod("p", cpu="3")],
    ),
    Case(
        code="insufficient-memory",
        detail="requests 14Gi, a new node offers 13.5Gi",
        change="lower the pod's memory request to 13.5Gi",
        objects=[pod("p", memory="14Gi")],
        fixed=[pod("p", memory="13.5Gi")],
    ),
    Case(
        code="insufficient-example.com/fpga",
        detail="requests 1 example.com/fpga, a new node offers 0",
        change="ask for no example.com/fpga",
        objects=[
            pod(
                "p",
                spec={
                    "containers": [
                        {"name": "c", "resources": {"limits": {"example.com/fpga": "1"}}}
                    ]
                },
            )
        ],
        fixed=[pod("p")],
    ),
    Case(
        code="node-selector",
        detail="selects disk=ssd, a new node has no such label",
        change="give primary-std the label disk=ssd",
        objects=[pod("p", spec={"nodeSelector": {"disk": "ssd"}})],
        better=ONE.replace("max_capacity: 3}", "max_capacity: 3, labels: {disk: ssd}}"),
    ),
    Case(
        code="node-selector",
        detail="selects kubernetes.io/arch=arm64, a new node has amd64",
        change="add a size of arm64 instances to the sector of primary-std",
        objects=[pod("p", spec={"nodeSelector": {"kubernetes.io/arch": "arm64"}})],
        better=ONE.replace(
            "sizes:\n",
            "sizes:\n  arm: {cpu: 4, memory: 16Gi, arch: arm64, instance_types: [m6g.xlarge]}\n",
        ).replace("    - {size: std, max", "    - {size: arm}\n    - {size: std, max"),
    ),
    Case(
        code="node-affinity",
        detail="requires disk In (ssd), a new node has no such label",
        change="drop disk In (ssd) from the pod's required node affinity",
        objects=[pod("p", spec=requiring("disk", "ssd"))],
        fixed=[pod("p")],
    ),
    Case(
        code="node-affinity",
        detail="the required node affinity has no terms: it matches no node at all",
        change="drop the pod's required node affinity, which has no terms and so no nodes",
        objects=[
            pod("p", spec={"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}})
        ],
        fixed=[pod("p")],
    ),
    Case(
        code="taint",
        detail="does not tolerate dedicated=db:NoSchedule of a new node",
        change="tolerate dedicated=db:NoSchedule",
        objects=[pod("p")],
        fixed=[pod("p", spec=TOLERATING)],
        config=TAINTED,
    ),
    Case(
        code="pod-affinity",
        detail="no pod that it must be near runs where a new node would be",
        change=f"make the pod affinity over {ZONE} preferred",
        objects=[pod("p", spec=near("podAffinity", "db"))],
        fixed=[pod("p")],
    ),
    Case(
        code="pod-anti-affinity",
        detail="a pod that it must not share a domain with is or may be there",
        change=f"make the pod anti-affinity over {ZONE} preferred",
        objects=[
            cordoned(),
            pod("db", node="n1", labels={"app": "db"}),
            pod("p", spec=near("podAntiAffinity", "db")),
        ],
        fixed=[cordoned(), pod("db", node="n1", labels={"app": "db"}), pod("p")],
        config=IN_A,
    ),
    Case(
        code="topology-spread",
        detail="one more pod in a new node's domain would exceed maxSkew",
        change=f"make the topology spread over {ZONE} ScheduleAnyway",
        objects=spread(2),
        fixed=spread(2, hard=False),
        config=IN_A,
    ),
    Case(
        code="host-port",
        detail="wants host port TCP/9100, which DaemonSet kube-system/d takes on every new node",
        change="use another host port than 9100/TCP, which a DaemonSet takes",
        objects=[exporter(9100), pod("p", spec=listening(9100))],
        fixed=[exporter(9100), pod("p", spec=listening(9101))],
    ),
    Case(
        code="volume-zone",
        detail="a volume of the pod is in us-west-2b, a new node starts in us-west-2a",
        change="give a fleet like primary-std-us-west-2a `zone: us-west-2b`",
        objects=[pod("p", spec=CLAIMED), claim(volumeName="pv"), volume("us-west-2b")],
        config=IN_A,
        better=IN_B,
    ),
    Case(
        code="volume-limit",
        detail=f"has 3 volumes of {EBS}, a new node attaches 2",
        change=f"mount at most 2 volumes of {EBS} in one pod instead of 3",
        objects=[
            *attaching(2),
            storage_class(),
            *(claim(f"c{i}", storageClassName="gp3") for i in range(3)),
            pod("p", spec=mounting(3)),
        ],
        fixed=[
            *attaching(2),
            storage_class(),
            *(claim(f"c{i}", storageClassName="gp3") for i in range(3)),
            pod("p", spec=mounting(2)),
        ],
    ),
    Case(
        code="volume-binding",
        detail="claim data does not exist",
        change="create claim data",
        objects=[storage_class(), pod("p", spec=CLAIMED)],
        fixed=[storage_class(), claim(storageClassName="gp3"), pod("p", spec=CLAIMED)],
    ),
    Case(
        code="volume-binding",
        detail="claim data is not bound and its storage class gp9 does not exist",
        change="create storage class gp9",
        objects=[storage_class(), claim(storageClassName="gp9"), pod("p", spec=CLAIMED)],
        fixed=[storage_class("gp9"), claim(storageClassName="gp9"), pod("p", spec=CLAIMED)],
    ),
    Case(
        code="volume-binding",
        detail="claim data is not bound, and no StorageClass at all is known, gp3 neither",
        change="save the storage classes with the other objects, or create one if there is none",
        objects=[claim(storageClassName="gp3"), pod("p", spec=CLAIMED)],
        fixed=[storage_class(), claim(storageClassName="gp3"), pod("p", spec=CLAIMED)],
    ),
    Case(
        code="volume-binding",
        detail="claim data is bound to pv, and no PersistentVolume at all is known",
        change="save the persistent volumes with the other objects, or create one if there is none",
        config=IN_A,
        objects=[claim(volumeName="pv"), pod("p", spec=CLAIMED)],
        fixed=[volume("us-west-2a"), claim(volumeName="pv"), pod("p", spec=CLAIMED)],
    ),
    Case(
        code="volume-binding",
        detail="claim data is not bound, names no storage class and there is no default",
        change="name a storage class in claim data",
        objects=[storage_class(), claim(), pod("p", spec=CLAIMED)],
        fixed=[storage_class(), claim(storageClassName="gp3"), pod("p", spec=CLAIMED)],
    ),
    Case(
        code="volume-binding",
        detail="claim data is not bound and its storage class gp2 binds at once "
        "(volumeBindingMode Immediate), not when a pod is placed",
        change="wait until claim data is bound, or give it a class that waits for a pod",
        objects=[
            storage_class("gp2", "Immediate"),
            claim(storageClassName="gp2"),
            pod("p", spec=CLAIMED),
        ],
        fixed=[storage_class(), claim(storageClassName="gp3"), pod("p", spec=CLAIMED)],
    ),
    Case(
        code="volume-in-use",
        detail="claim data is ReadWriteOncePod and ns/user has it or comes first",
        change="take claim data from ns/user, or give the pod a claim of its own",
        objects=[
            node("n1"),
            storage_class(),
            claim(mode="ReadWriteOncePod", storageClassName="gp3"),
            pod("user", node="n1", spec=CLAIMED),
            pod("p", spec=CLAIMED),
        ],
        fixed=[
            node("n1"),
            storage_class(),
            claim(mode="ReadWriteOncePod", storageClassName="gp3"),
            pod("user", node="n1"),
            pod("p", spec=CLAIMED),
        ],
    ),
    Case(
        code="zone",
        detail="the zone of a new node is not known before it is there: give a fleet a `zone`",
        change="give a fleet like primary-std `zone: us-west-2b`",
        objects=[
            cordoned(zone="us-west-2b"),
            pod("db", node="n1", labels={"app": "db"}),
            pod("p", spec=near("podAffinity", "db")),
        ],
        better=IN_B,
    ),
    Case(
        code="max-capacity",
        detail="the fleet is at its max_capacity of 3",
        change="raise max_capacity of primary-std to 4",
        objects=[*(pod(f"a{i}", cpu="3") for i in range(3)), pod("p", cpu="2")],
        better=ONE.replace("max_capacity: 3", "max_capacity: 4"),
    ),
    Case(
        code="max-cost",
        detail="another node at 0.1 USD per hour would exceed max_hourly_usd",
        change="raise max_hourly_usd to 0.1000",
        objects=[pod("p")],
        config=ONE + "max_hourly_usd: 0.05\n",
        better=ONE + "max_hourly_usd: 0.1\n",
    ),
    Case(
        code="raise-limit",
        detail="targets may rise by 0 nodes for pods and headroom in one plan "
        "(raise_limits.nodes_per_cycle); a node at 0.1 USD per hour is beyond that in every plan",
        change="raise raise_limits.nodes_per_cycle to 1",
        objects=[pod("p")],
        config=ONE + "raise_limits: {nodes_per_cycle: 0}\n",
        better=ONE + "raise_limits: {nodes_per_cycle: 1}\n",
    ),
    Case(
        code="no-sector",
        detail="names sector primry; the config has: primary, batch",
        change="name sector primary instead of primry in the pod's nodeSelector",
        objects=[pod("p", spec={"nodeSelector": {"sector": "primry"}})],
        fixed=[pod("p", spec={"nodeSelector": {"sector": "primary"}})],
    ),
    Case(
        code="no-sector",
        detail="names sector primry; the config has: primary, batch",
        change="name sector primary instead of primry in the pod's required node affinity",
        objects=[pod("p", spec=requiring("sector", "primry"))],
        fixed=[pod("p", spec=requiring("sector", "primary"))],
    ),
    Case(
        code="fleet-unavailable",
        detail="the fleet is missing",
        change="create primary-std: the config has it, EC2 does not",
        objects=[pod("p")],
        aws=fleets(fleet("batch-std")),
        aws_fixed=fleets(fleet("batch-std"), fleet("primary-std")),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}: {case.change}")
def test_named_change_places_the_pod(desk: Desk, case: Case) -> None:
    """Advice that does not help costs a deployment at night; a code alone is no advice."""
    file = desk.write("cluster.json", {"kind": "List", "items": list(case.objects)})
    desk.write("sectors.yaml", case.config)
    aws = [] if case.aws is None else ["--aws", desk.write("aws.json", case.aws)]
    made = desk.plan("--cluster", file, *aws, "--explain", "ns/p").plan
    (said,) = made["explanations"]["pods"]
    reasons = {(r["code"], r["detail"]) for u in made["unplaceable"] for r in u["reasons"]}
    assert (case.code, case.detail) in reasons
    assert " and ".join(said["change"]) == case.change

    fixed = case.objects if case.fixed is None else case.fixed
    file = desk.write("cluster.json", {"kind": "List", "items": list(fixed)})
    desk.write("sectors.yaml", case.better or case.config)
    aws = [] if case.aws_fixed is None else ["--aws", desk.write("aws.json", case.aws_fixed)]
    again = desk.plan("--cluster", file, *aws).plan
    assert "p" in {placed["pod"] for placed in again["placements"]}


def test_pod_that_cannot_be_read_says_so(desk: Desk) -> None:
    """Kubectl shows the pod: "there is no such pod" would send its owner the wrong way."""
    file = desk.write("cluster.json", {"kind": "List", "items": [pod("p", cpu="NaN")]})
    made = desk.plan("--cluster", file, "--explain", "ns/p").plan
    (said,) = made["explanations"]["pods"]
    assert said["verdict"] == "ignored"
    assert said["because"].startswith("it cannot be read")
