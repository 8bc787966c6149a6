"""Faults of the simulated kube-scheduler and of the purchase search (review s63, part d)."""

import json
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from reconciler.bootstrap.planning.planning import PlanRequest, make_plan
from reconciler.model.cluster import HostPort, Pod, Taint
from reconciler.model.plan import Plan
from reconciler.planner import raise_limits
from reconciler.planner.planner import plan
from reconciler.planner.settings import RaiseLimits
from tests.builders import (
    HOSTNAME,
    ZONE,
    ago,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
    requiring,
    spread,
)
from tests.unit.planner.placed import bought, places

ZONE_ID = "topology.k8s.aws/zone-id"


# ---- 1: nodes that are joining ------------------------------------------------------------


@pytest.mark.parametrize("startup_taint", [False, True])
def test_joining_nodes_are_not_bought_again_for_a_spread_by_hostname(startup_taint: bool) -> None:
    """The nodes of the first plan have registered and are not Ready yet; nothing else changed.

    kube-scheduler puts all pods on them once they are Ready (seen with its plugins).
    """
    small = make_fleet_settings(cpu=2, memory="8Gi")
    even = {"labels": {"app": "q"}, "topology_spread": (spread(HOSTNAME, app="q"),)}
    old = [
        make_node("old", small),
        *make_pods(4, "running", node="old", cpu="500m", memory="50Mi", **even),
    ]
    waiting = make_pods(20, "waiting", cpu="500m", memory="50Mi", **even)
    first = plan(make_snapshot(*old, *waiting), make_settings(small))
    assert bought(first) == 5
    assert not first.unplaceable
    state: dict[str, Any] = {"ready": False, "ready_changed_at": ago(30)}
    if startup_taint:
        cilium = Taint(key="node.cilium.io/agent-not-ready", effect="NoSchedule")
        state = {"taints": (cilium,)}
    joining = [make_node(f"new-{i}", small, created_at=ago(40), **state) for i in range(5)]
    again = plan(make_snapshot(*old, *joining, *waiting), make_settings(small))
    assert bought(again) == 0


# ---- 2, 3: pods that must share a node ----------------------------------------------------


def store_and_web(replicas: int) -> list[Pod]:
    """The example of Kubernetes' page on affinity: a web server beside each store."""
    stores = make_pods(
        replicas,
        "store",
        cpu="500m",
        labels={"app": "store"},
        pod_anti_affinity=(near(HOSTNAME, app="store"),),
    )
    webs = make_pods(
        replicas,
        "web",
        cpu="1900m",
        labels={"app": "web"},
        pod_affinity=(near(HOSTNAME, app="store"),),
        pod_anti_affinity=(near(HOSTNAME, app="web"),),
    )
    return [*stores, *webs]


@pytest.mark.parametrize("replicas", [16, 17, 20])
def test_followers_of_more_than_16_nodes_have_room(replicas: int) -> None:
    """From the 17th node on the store gets a node on which its web server never fits."""
    two = make_fleet_settings("two", cpu=2, price="0.10")
    four = make_fleet_settings("four", cpu=4, price="0.20")
    made = plan(make_snapshot(*store_and_web(replicas)), make_settings(two, four))
    too_small = [name for name, place in places(made).items() if place[0] == "primary-two"]
    assert not too_small
    # Those beyond what one plan buys may wait, but together.
    waiting = Counter(each.pod.name.partition("-")[2] for each in made.unplaceable)
    assert set(waiting.values()) <= {2}


def test_small_groups_are_not_torn() -> None:
    """Four groups that each fit on a node of two CPUs; one pod is left, for which no node helps."""
    fleets = [
        make_fleet_settings("two", cpu=2, price="0.10"),
        make_fleet_settings("four", cpu=4, price="0.20"),
        make_fleet_settings("eight", cpu=8, memory="32Gi", price="0.40"),
    ]
    groups = (("100m", "700m"), ("700m", "100m"), ("1", "700m"), ("100m", "300m", "300m"))
    pods = [
        make_pod(
            f"w{g}x{k}-0",
            cpu=cpu,
            memory="100Mi",
            labels={"group": f"g{g}"},
            pod_affinity=(near(HOSTNAME, group=f"g{g}"),),
        )
        for g, group in enumerate(groups)
        for k, cpu in enumerate(group)
    ]
    made = plan(make_snapshot(*pods), make_settings(*fleets))
    assert [each.pod.name for each in made.unplaceable] == []


# ---- 4: a spread by hostname from nothing -------------------------------------------------


def test_spread_by_hostname_needs_no_node_per_pod_from_nothing() -> None:
    """With one empty node there, seven more are bought for 30 pods; with none, 30 are."""
    small = make_fleet_settings(cpu=2, memory="8Gi")
    pods = make_pods(
        30,
        cpu="500m",
        memory="50Mi",
        labels={"app": "q"},
        topology_spread=(spread(HOSTNAME, app="q"),),
    )
    beside = bought(plan(make_snapshot(make_node("empty", small), *pods), make_settings(small)))
    assert beside == 7
    assert bought(plan(make_snapshot(*pods), make_settings(small))) <= beside + 1


# ---- 5: labels that every new node has ----------------------------------------------------


def test_every_new_node_has_a_hostname() -> None:
    """Kubelet sets the label on each node."""
    fleet = make_fleet_settings()
    pod = make_pod(node_affinity=requiring(HOSTNAME, "Exists"))
    made = plan(make_snapshot(pod), make_settings(fleet))
    assert not made.unplaceable
    assert bought(made) == 1


def test_no_node_is_bought_for_a_pod_that_avoids_hostnames() -> None:
    """It runs on no node with that label, so on none."""
    fleet = make_fleet_settings()
    pod = make_pod(node_affinity=requiring(HOSTNAME, "DoesNotExist"))
    assert bought(plan(make_snapshot(pod), make_settings(fleet))) == 0


def test_spread_over_zone_ids_gets_nodes() -> None:
    """The AWS cloud controller gives each node its zone's id; the fleet's own nodes show it."""
    fleets = [make_fleet_settings(zone=f"us-west-2{z}") for z in "ab"]
    nodes = [
        make_node(f"n{i}", each, zone=each.zone, labels={ZONE_ID: f"usw2-az{i}"})
        for i, each in enumerate(fleets)
    ]
    full = [make_pod(f"full-{i}", node=f"n{i}", cpu="3900m") for i in range(2)]
    pod = make_pod(labels={"app": "q"}, topology_spread=(spread(ZONE_ID, app="q"),))
    made = plan(make_snapshot(*nodes, *full, pod), make_settings(*fleets))
    assert not made.unplaceable


# ---- 6: many kinds of pods that a limit keeps waiting -------------------------------------


def test_reasons_do_not_look_at_all_fleets_for_each_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    """`max_hourly_usd` is reached: 300 fleets and 200 kinds of pods took 18 s of CPU per plan."""
    calls = 0
    ran_before = raise_limits.ran_before

    def counted(view: Any) -> tuple[int, int]:
        nonlocal calls
        calls += 1
        return ran_before(view)

    monkeypatch.setattr(raise_limits, "ran_before", counted)
    fleets = [make_fleet_settings(f"s{i}", cpu=4, price=f"0.{100 + i}") for i in range(40)]
    pods = [make_pod(f"p{i}", cpu=f"{1000 + i}m") for i in range(50)]
    settings = make_settings(*fleets, usd_per_hour_max=Decimal("0.2"), raise_limits=RaiseLimits())
    made = plan(make_snapshot(*pods), settings)
    assert len(made.unplaceable) > 40
    assert calls < len(fleets) + len(pods)  # it was 50 x 40: each of them reads all 40 fleets


# ---- 7: host ports ------------------------------------------------------------------------


def cpu_seconds_of(pods: list[Pod], fleets: list[Any]) -> float:
    """CPU time of a plan."""
    snapshot, settings = make_snapshot(*pods), make_settings(*fleets)
    began = time.process_time()
    plan(snapshot, settings)
    return time.process_time() - began


def test_distinct_host_ports_cost_no_more_than_distinct_sizes() -> None:
    """100 game servers (Agones gives each a port of its own) took 7 s; their sizes take 0.5."""
    sizes_of = [
        {
            "size": f"s{i}",
            "cpu": 2**i - 1,
            "memory": f"{4 * 2**i - 2.5}Gi",
            "price": f"{0.05 * 2**i + 0.003 * i:.3f}",
        }
        for i in range(1, 7)
    ]
    fleets = [make_fleet_settings(**each, zone=f"us-west-2{z}") for each in sizes_of for z in "abc"]
    sizes = [make_pod(f"p{i}", cpu=f"{500 + i}m") for i in range(100)]
    ports = [
        make_pod(
            f"p{i}",
            cpu="500m",
            host_ports=(HostPort(address="0.0.0.0", protocol="UDP", port=7000 + i),),  # noqa: S104
        )
        for i in range(100)
    ]
    cpu_seconds_of(sizes[:3], fleets)
    assert cpu_seconds_of(ports, fleets) < 4 * cpu_seconds_of(sizes, fleets) + 0.5


# ---- 8: volumes that an existing node cannot take -----------------------------------------

CONFIG = """
cluster: c
regions: [us-west-2]
default_sector: s
terraform: {private_subnet_ids: {us-west-2a: subnet-0}}
sizes:
  a: {kind: memory, cpu: 4, memory: 16Gi, pods: 58, instance_types: [m5.xlarge]}
sectors:
  s: {kind: memory, fleets: [{size: a, spot: false, zone: us-west-2a}]}
"""


def planned(tmp_path: Path, *objects: dict[str, Any]) -> Plan:
    """The plan for Kubernetes objects as kubectl prints them."""
    config, cluster = tmp_path / "sectors.yaml", tmp_path / "cluster.json"
    config.write_text(CONFIG)
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    made, _, _ = make_plan(
        PlanRequest(config=str(config), flags={}, cluster_files=(str(cluster),))
    )
    return made


def node_json(*, with_ebs: bool) -> dict[str, Any]:
    """A Ready node in zone a, with or without what the EBS CSI driver registers."""
    labels = {
        "kubernetes.io/hostname": "n1",
        ZONE: "us-west-2a",
        "topology.kubernetes.io/region": "us-west-2",
        "sector": "s",
        "fleet": "s-a-us-west-2a",
        "size": "a",
    }
    if with_ebs:
        labels["topology.ebs.csi.aws.com/zone"] = "us-west-2a"
    offered = {"cpu": "4", "memory": "16Gi", "pods": "58"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"providerID": "aws:///us-west-2a/i-0123456789abcdef0"},
        "status": {"allocatable": offered, "capacity": offered, "conditions": [ready]},
    }


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    },
    "status": {"phase": "Pending"},
}


def test_volume_of_ebs_is_not_planned_onto_a_node_without_its_driver(tmp_path: Path) -> None:
    """kube-scheduler: "node(s) didn't match PersistentVolume's node affinity"; it waits forever."""
    in_zone = {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["us-west-2a"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [in_zone]}]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
            "claimRef": {"namespace": "ns", "name": "c"},
            "nodeAffinity": {"required": terms},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "c",
            "namespace": "ns",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"volumeName": "pv", "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Bound"},
    }
    csi_node = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": []},
    }
    made = planned(tmp_path, node_json(with_ebs=False), volume, claim, csi_node, POD)
    assert [each.node for each in made.placements] != ["n1"]


def test_volume_is_not_planned_onto_a_node_without_storage_capacity(tmp_path: Path) -> None:
    """kube-scheduler: "node(s) did not have enough free storage" (TopoLVM, OpenEBS LVM)."""
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "lvm"},
        "provisioner": "topolvm.io",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    driver = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "topolvm.io"},
        "spec": {"storageCapacity": True},
    }
    capacity = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": "x", "namespace": "kube-system"},
        "storageClassName": "lvm",
        "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": "n1"}},
        "capacity": "1Gi",
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {
            "storageClassName": "lvm",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
        },
        "status": {"phase": "Pending"},
    }
    objects = (node_json(with_ebs=True), storage_class, driver, capacity, claim, POD)
    assert [each.node for each in planned(tmp_path, *objects).placements] != ["n1"]
