"""Every code of `unplaceable`, with the numbers that a person needs."""

from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.cluster import HostPort, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName
from reconciler.model.plan import Plan
from reconciler.model.unplaceable import Reason
from reconciler.model.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from reconciler.planner.placement.kinds import INSTANCE_TYPE
from reconciler.planner.planner import plan
from tests.builders import (
    HOSTNAME,
    ZONE,
    capacity_error,
    make_cloud,
    make_daemon_set,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_option,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
    requiring,
    spread,
)

ZONES = ("us-west-2a", "us-west-2b")
OPEN_ZONE = (
    "needs one zone, but a new node may start in any of us-west-2a, us-west-2b: "
    "give the fleet a `zone`"
)
GP3 = StorageClass(name="gp3", provisioner="ebs.csi.aws.com", wait_for_first_consumer=True)


def reason(made: Plan) -> Reason:
    """The only reason of the only unplaceable pod."""
    (pod,) = made.unplaceable
    (found,) = pod.reasons
    return found


@pytest.mark.parametrize(
    ("fleet", "pod", "code", "detail"),
    [
        (
            {"memory": "28Gi"},
            {"memory": "300Gi"},
            "insufficient-memory",
            "requests 300Gi, a new node offers 28Gi",
        ),
        ({"cpu": 4}, {"cpu": "4500m"}, "insufficient-cpu", "requests 4500m, a new node offers 4"),
        ({"pods": 0}, {}, "insufficient-pods", "requests 1 pods, a new node offers 0"),
        (
            {},
            {"requests": {"nvidia.com/gpu": 2}},
            "insufficient-nvidia.com/gpu",
            "requests 2 nvidia.com/gpu, a new node offers 0",
        ),
        (
            {"ephemeral_storage_bytes": 50 * 2**30},
            {"requests": {"ephemeral-storage": "60Gi"}},
            "insufficient-ephemeral-storage",
            "requests 60Gi ephemeral-storage, a new node offers 50Gi",
        ),
        (
            {},
            {"node_selector": {"size": "large", "sector": "primary"}},
            "node-selector",
            "selects size=large, a new node has small",
        ),
        (
            {},
            {"node_selector": {"disk": "ssd"}},
            "node-selector",
            "selects disk=ssd, a new node has no such label",
        ),
        (
            {},
            {"node_affinity": requiring("size", "NotIn", "small")},
            "node-affinity",
            "requires size NotIn (small), a new node has small",
        ),
        (
            {"taints": (Taint(key="gpu", value="yes", effect="NoSchedule"),)},
            {},
            "taint",
            "does not tolerate gpu=yes:NoSchedule of a new node",
        ),
        (
            {"zones": ZONES},
            {"node_selector": {ZONE: "us-west-2b"}},
            "zone",
            OPEN_ZONE,
        ),
        (
            {},
            {"node_affinity": requiring(ZONE, "In", "us-west-2b")},
            "zone",
            OPEN_ZONE.replace("us-west-2a, us-west-2b", "the zones of us-west-2"),
        ),
        (
            {},
            {"node_selector": {ZONE: "eu-west-1a"}},
            "node-selector",
            f"selects {ZONE}=eu-west-1a, a new node has a zone of us-west-2",
        ),
        (
            {"max_capacity": 0},
            {},
            "max-capacity",
            "the fleet is at its max_capacity of 0",
        ),
    ],
)
def test_pod_that_no_new_node_takes_is_reported_why_with_numbers(
    fleet: dict[str, Any], pod: dict[str, Any], code: str, detail: str
) -> None:
    """An operator asking why a pod is pending would get no answer."""
    made = plan(make_snapshot(make_pod(**pod)), make_settings(make_fleet_settings(**fleet)))
    found = reason(made)
    assert (found.code, found.detail) == (code, detail)
    assert made.actions == ()


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"node_selector": {INSTANCE_TYPE: "a.large"}}, "node-selector"),
        ({"node_affinity": requiring(INSTANCE_TYPE, "In", "a.large")}, "node-affinity"),
        ({"node_selector": {INSTANCE_TYPE: "a.large", ZONE: ZONES[0]}}, "node-selector"),
    ],
)
def test_label_that_only_some_new_nodes_have_is_named(wanted: dict[str, Any], code: str) -> None:
    """Its owner was told of a volume that it has not, or to give a fleet a zone.

    The pod beside it selects a zone, so that new nodes are distinguished by zones as well.
    """
    options = [make_option(name, 4, "16Gi") for name in ("a.large", "b.large")]
    settings = make_settings(make_fleet_settings(options=options, zones=ZONES))
    zonal = make_pod("zonal", node_selector={ZONE: ZONES[0]})
    made = plan(make_snapshot(make_pod("typed", **wanted), zonal), settings)
    found = {pod.pod.name: pod.reasons[0] for pod in made.unplaceable}
    assert {name: each.code for name, each in found.items()} == {"typed": code, "zonal": "zone"}
    assert found["typed"].detail.endswith("a new node has a.large, b.large")


def test_rule_that_no_new_node_meets_comes_before_the_fleets_maximum() -> None:
    """Its owner raised max_capacity, and the pod waited for a pod that does not exist."""
    pod = make_pod(pod_affinity=(near(HOSTNAME, app="db"),))
    made = plan(make_snapshot(pod), make_settings(make_fleet_settings(max_capacity=0)))
    assert reason(made).code == "pod-affinity"


def test_each_fleet_of_the_sector_gives_its_own_reason() -> None:
    """Only the first fleet's reason would be shown, and the wrong one fixed."""
    small = make_fleet_settings("small", cpu=4)
    large = make_fleet_settings("large", cpu=64, max_capacity=0)
    made = plan(make_snapshot(make_pod(cpu=8)), make_settings(small, large))
    assert {r.fleet: r.code for r in made.unplaceable[0].reasons} == {
        "primary-small": "insufficient-cpu",
        "primary-large": "max-capacity",
    }


@pytest.mark.parametrize(
    ("claim", "objects", "code"),
    [
        (None, {}, "volume-binding"),
        ({"deleting": True, "volume_name": "pv"}, {}, "volume-binding"),
        ({"volume_name": "gone"}, {}, "volume-binding"),
        ({"storage_class": "immediate"}, {}, "volume-binding"),
        ({"storage_class": "absent"}, {}, "volume-binding"),
        ({"volume_name": "pv"}, {"zone": "us-west-2c"}, "volume-zone"),
        ({"volume_name": "pv"}, {"zone": "us-west-2b"}, "zone"),
        ({"volume_name": "pv"}, {"zone": "us-west-2b", "open": True}, "zone"),
        ({"volume_name": "pv"}, {"zone": "eu-west-1a", "open": True}, "volume-zone"),
        (
            {"volume_name": "pv", "access_modes": ("ReadWriteOncePod",)},
            {"used": True},
            "volume-in-use",
        ),
    ],
)
def test_volumes_that_no_new_node_reaches_give_their_code(
    claim: dict[str, Any] | None, objects: dict[str, Any], code: str
) -> None:
    """Nodes would be bought beside a volume that can never be attached to them."""
    claims = []
    if claim is not None:
        fields = {"storage_class": "gp3", "access_modes": ("ReadWriteOnce",), **claim}
        claims.append(PersistentVolumeClaim(namespace="ns", name="data", **fields))
    zone = objects.get("zone", "us-west-2a")
    volume = PersistentVolume(
        name="pv",
        node_affinity=None
        if objects.get("used")
        else requiring("topology.ebs.csi.aws.com/zone", "In", zone),
        csi_driver="ebs.csi.aws.com",
    )
    immediate = StorageClass(name="immediate", provisioner="x", wait_for_first_consumer=False)
    fleet = make_fleet_settings(zones=() if objects.get("open") else ZONES)
    users = [make_pod("user", node="n", claims=("data",))] if objects.get("used") else []
    nodes = [make_node("n", fleet)] if objects.get("used") else []
    snapshot = make_snapshot(
        make_pod(claims=("data",)),
        *users,
        *nodes,
        claims=tuple(claims),
        volumes=(volume,),
        storage_classes=(GP3, immediate),
    )
    assert reason(plan(snapshot, make_settings(fleet))).code == code


def test_more_volumes_than_a_node_attaches_is_volume_limit() -> None:
    """A pod with many volumes would be bought node after node."""
    fleet = make_fleet_settings()
    claims = tuple(
        PersistentVolumeClaim(namespace="ns", name=f"c{i}", storage_class="gp3") for i in range(3)
    )
    limit = CsiNode(name=NodeName("n"), limits=FrozenMap({"ebs.csi.aws.com": 2}))
    snapshot = make_snapshot(
        make_pod(claims=("c0", "c1", "c2")),
        make_node("n", fleet),
        claims=claims,
        storage_classes=(GP3,),
        csi_nodes=(limit,),
    )
    found = reason(plan(snapshot, make_settings(fleet)))
    assert found.code == "volume-limit"
    assert "3" in found.detail
    assert "2" in found.detail


def test_shared_volumes_count_towards_the_limit_that_is_named() -> None:
    """Of two pods with the same claims the operator would look at regions, not at volumes."""
    fleet = make_fleet_settings()
    claims = tuple(
        PersistentVolumeClaim(namespace="ns", name=f"c{i}", storage_class="gp3") for i in range(3)
    )
    snapshot = make_snapshot(
        make_pod("first", claims=("c0", "c1", "c2")),
        make_pod("second", claims=("c0", "c1", "c2")),
        make_node("n", fleet),
        claims=claims,
        storage_classes=(GP3,),
        csi_nodes=(CsiNode(name=NodeName("n"), limits=FrozenMap({"ebs.csi.aws.com": 2})),),
    )
    made = plan(snapshot, make_settings(fleet))
    reasons = [each for refused in made.unplaceable for each in refused.reasons]
    assert [each.code for each in reasons] == ["volume-limit", "volume-limit"]
    assert reasons[0].detail == "has 3 volumes of ebs.csi.aws.com, a new node attaches 2"


def test_port_that_a_daemon_takes_on_every_new_node_is_host_port() -> None:
    """Nodes would be bought one after the other for a port that none of them has free."""
    port = HostPort(address="0.0.0.0", protocol="TCP", port=9100)  # noqa: S104 - any address
    fleet = make_fleet_settings()
    daemon = make_daemon_set("exporter", cpu="100m", host_ports=(port,))
    made = plan(
        make_snapshot(make_pod(host_ports=(port,)), daemon_sets=(daemon,)), make_settings(fleet)
    )
    assert reason(made).code == "host-port"
    assert made.actions == ()


def test_pod_that_nobody_to_be_near_exists_for_is_pod_affinity() -> None:
    """A node would be bought for a pod that will not be scheduled there either."""
    pod = make_pod(labels={"app": "a"}, pod_affinity=(near(ZONE, app="nobody"),))
    made = plan(make_snapshot(pod), make_settings(make_fleet_settings(zone=ZONES[0])))
    assert reason(made).code == "pod-affinity"
    assert made.actions == ()


def test_pod_whose_only_zone_is_taken_is_pod_anti_affinity() -> None:
    """A second node in the same zone would be bought and not help."""
    fleet = make_fleet_settings(zone=ZONES[0])
    pods = make_pods(2, labels={"app": "a"}, pod_anti_affinity=(near(ZONE, app="a"),))
    made = plan(make_snapshot(*pods), make_settings(fleet))
    assert reason(made).code == "pod-anti-affinity"
    assert made.fleets[0].target == 1


def test_pod_whose_zone_would_be_too_full_is_topology_spread() -> None:
    """Nodes would be bought in a zone that the spread forbids."""
    fleet = make_fleet_settings(zone=ZONES[0])
    foreign = make_node("far", zone=ZONES[1], unschedulable=True)
    pods = make_pods(3, labels={"app": "a"}, topology_spread=(spread(ZONE, 1, app="a"),))
    made = plan(make_snapshot(foreign, *pods), make_settings(fleet))
    assert {u.reasons[0].code for u in made.unplaceable} == {"topology-spread"}
    assert len(made.placements) == 1


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ({"topology_spread": (spread("rack", app="a"),)}, "topology-spread"),
        ({"pod_affinity": (near("rack", app="a"),)}, "pod-affinity"),
    ],
)
def test_label_of_a_rule_that_new_nodes_lack_is_named(
    rule: dict[str, Any], code: str, *, elsewhere: bool
) -> None:
    """Operators looked for pods that were too many, or missing: no pod would have helped."""
    fleet = make_fleet_settings(cpu=4)
    node = make_node("n", labels={"rack": "r1"} if elsewhere else {}, unschedulable=True)
    pod = make_pod("p", labels={"app": "a"}, **rule)
    found = reason(plan(make_snapshot(pod, node), make_settings(fleet)))
    assert (found.code, found.detail) == (
        code,
        "its topologyKey is rack, a new node has no such label",
    )


def test_pod_of_a_failing_fleet_is_fleet_unavailable_with_the_error() -> None:
    """Nobody would see that EC2 has no capacity."""
    fleet = make_fleet_settings()
    cloud = make_cloud(make_fleet(fleet, launch_errors=(capacity_error(60),)))
    found = reason(plan(make_snapshot(make_pod(), cloud=cloud), make_settings(fleet)))
    assert found.code == "fleet-unavailable"
    assert found.detail.startswith("InsufficientInstanceCapacity; cooling off until 12:04:00")


def test_pod_of_a_fleet_that_ec2_does_not_have_is_fleet_unavailable() -> None:
    """A fleet that Terraform has not made yet would be raised by an empty id."""
    fleet = make_fleet_settings()
    made = plan(make_snapshot(make_pod(), cloud=make_cloud()), make_settings(fleet))
    assert (reason(made).code, reason(made).detail) == ("fleet-unavailable", "the fleet is missing")
    assert made.fleets[0].state == "missing"
    assert made.actions == ()


def test_pod_beyond_the_spending_limit_is_max_cost() -> None:
    """A limit in dollars would be overrun, or look like a lack of capacity."""
    fleet = make_fleet_settings(cpu=4, price="0.10")
    settings = make_settings(fleet, usd_per_hour_max=Decimal("0.25"))
    made = plan(make_snapshot(*make_pods(3, cpu=4)), settings)
    assert made.fleets[0].target == 2
    assert reason(made).code == "max-cost"
    assert made.cost.hourly_usd_after == 0.2


def test_self_spread_by_hostname_needs_no_reason() -> None:
    """A hostname rule that new nodes satisfy would be reported as a zone's."""
    pods = make_pods(3, labels={"app": "a"}, topology_spread=(spread(HOSTNAME, 1, app="a"),))
    made = plan(make_snapshot(*pods), make_settings(make_fleet_settings()))
    assert made.unplaceable == ()


def test_plan_tells_requested_resources_that_there_are_somewhere() -> None:
    """Metrics name these only, as anybody may request a resource of any name."""
    gpu = make_fleet_settings("gpu", options=[make_option("g5.xlarge", nvidia__gpu=1)])
    pods = [
        make_pod("big", requests={"nvidia/gpu": 2}),
        make_pod("invented", requests={"example.com/invented": 1}),
    ]
    made = plan(make_snapshot(*pods), make_settings(gpu))
    assert made.offered_resources == {
        "cpu",
        "memory",
        "pods",
        "ephemeral-storage",
        "nvidia/gpu",
    }
