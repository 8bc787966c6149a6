"""What a new node of a fleet is planned to have (docs/scale-up.md)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.cluster import NO_RESOURCES, Node, Resources, Taint, Toleration
from reconciler.model.fleet import Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.volumes import PersistentVolumeClaim, StorageClass
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    NOW,
    ago,
    amounts,
    make_cloud,
    make_cloud_of,
    make_daemon_set,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_option,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.fleets.offered import offered
from tests.unit.planner.placed import raises


def test_new_node_offers_the_least_of_its_options() -> None:
    """EC2 chooses the type: a pod sized for the larger one would not fit the smaller."""
    options = (
        make_option("a", 4, "16Gi"),
        make_option("b", 4, "15Gi"),
        make_option("c", 4, "30Gi"),
    )
    assert offered(make_fleet_settings(options=options)) == "15Gi"


@pytest.mark.parametrize(
    ("reserved", "daemons", "left"),
    [
        ("2Gi", [], "14Gi"),
        ("2Gi", ["1Gi"], "14Gi"),
        ("2Gi", ["3Gi"], "13Gi"),
        ("0", ["1Gi", "2Gi"], "13Gi"),
    ],
)
def test_larger_of_reserve_and_daemons_is_taken_off(
    reserved: str, daemons: list[str], left: str
) -> None:
    """Counted twice, nodes are wasted; not counted, the last pod does not fit."""
    sets = tuple(make_daemon_set(f"d{i}", cpu="1m", memory=m) for i, m in enumerate(daemons))
    assert (
        offered(make_fleet_settings(), daemon_sets=sets, reserved=amounts(memory=reserved)) == left
    )


def test_daemon_that_does_not_land_takes_nothing() -> None:
    """A daemon for other nodes would make every new node look smaller."""
    fleet = make_fleet_settings(taints=(Taint(key="x", effect="NoSchedule"),))
    elsewhere = make_daemon_set("gpu", memory="3Gi", node_selector={"gpu": "true"})
    tolerates_nothing = make_daemon_set("plain", memory="2Gi")
    asks = make_pod(cpu="1m", memory="16Gi", tolerations=(Toleration(operator="Exists"),))
    made = plan(
        make_snapshot(asks, daemon_sets=(elsewhere, tolerates_nothing)), make_settings(fleet)
    )
    assert made.unplaceable == ()


OLDER_LABELS = [
    ("beta.kubernetes.io/os", "linux"),
    ("beta.kubernetes.io/arch", "amd64"),
    ("beta.kubernetes.io/instance-type", "m5.xlarge"),
    ("failure-domain.beta.kubernetes.io/region", "us-west-2"),
    ("failure-domain.beta.kubernetes.io/zone", "us-west-2a"),
]


@pytest.mark.parametrize(("key", "value"), OLDER_LABELS)
def test_new_node_has_the_older_labels_too(key: str, value: str) -> None:
    """Pods and DaemonSets of many charts select them, and every node has them."""
    option = make_option("m5.xlarge", 4, "16Gi")
    fleet = make_fleet_settings(options=(option,), zone="us-west-2a")
    asks = make_pod(node_selector={key: value})
    assert plan(make_snapshot(asks), make_settings(fleet)).unplaceable == ()
    daemon = make_daemon_set(memory="3Gi", node_selector={key: value})
    assert offered(fleet, daemon_sets=(daemon,)) == "13Gi"


def test_daemon_pods_stand_in_for_a_daemon_set_that_was_not_given() -> None:
    """`kubectl get nodes,pods` names no DaemonSets; their pods would be forgotten."""
    fleet = make_fleet_settings()
    node = make_node("foreign")
    pod = make_pod("log-x", "kube-system", node="foreign", owner="DaemonSet", memory="2Gi")
    asks = make_pod(cpu="1m", memory="1000Gi")
    made = plan(make_snapshot(node, pod, asks), make_settings(fleet))
    assert made.unplaceable[0].reasons[0].detail.endswith("offers 14Gi")


def test_allocatable_of_the_config_is_taken_as_it_is() -> None:
    """What an operator measured would be reduced by a guess."""
    fleet = make_fleet_settings(allocatable=amounts(cpu=4, memory="12Gi", pods=10))
    daemon = make_daemon_set(memory="3Gi")
    assert offered(fleet, daemon_sets=(daemon,), reserved=amounts(memory="2Gi")) == "12Gi"


def learned_from(*nodes: tuple[str, dict[str, Any], str]) -> str:
    """What is offered beside nodes with (memory, changes, launch template version)."""
    fleet = make_fleet_settings(memory="16Gi")
    live = make_fleet(fleet, len(nodes), launch_template_version="2")
    made: list[Node] = []
    instances: list[Instance] = []
    for number, (memory, changed, version) in enumerate(nodes):
        allocatable = amounts(cpu=4, memory=memory, pods=58)
        node = make_node(f"n{number}", fleet, allocatable=allocatable, **changed)
        made.append(node)
        instances.append(make_instance(node, live, launch_template_version=version))
    return offered(fleet, *made, cloud=make_cloud(live, instances=instances))


def test_smallest_allocatable_of_ready_nodes_is_learned() -> None:
    """The kubelet's own reserve would be guessed for ever."""
    assert learned_from(("15Gi", {}, "2"), ("14Gi", {}, "2")) == "14Gi"


def test_nodes_of_an_older_launch_template_teach_nothing() -> None:
    """A change of the kubelet's reserve would show only after all nodes were replaced."""
    assert learned_from(("15Gi", {}, "2"), ("10Gi", {}, "1")) == "15Gi"


def test_remembered_offer_of_a_larger_type_is_not_promised_of_a_smaller_one() -> None:
    """The large node leaves, and what it offered is remembered for a day."""
    fleet = make_fleet_settings(
        options=[make_option("small", 4, "16Gi"), make_option("double", 8, "32Gi")]
    )
    node = make_node(
        "n",
        fleet,
        allocatable=amounts(cpu=7, memory="30Gi", pods=58),
        labels={"node.kubernetes.io/instance-type": "double"},
    )
    assert offered_later(remembered_from(fleet, node), fleet) == "15Gi"


def test_unready_nodes_teach_nothing() -> None:
    """A node that has not reported everything yet would make the fleet look tiny."""
    assert learned_from(("15Gi", {}, "2"), ("1Gi", {"ready": False}, "2")) == "15Gi"


def test_daemons_are_taken_off_what_was_learned() -> None:
    """A new node would be filled with pods where its daemons have to go."""
    fleet = make_fleet_settings()
    node = make_node("n", fleet, allocatable=amounts(cpu=4, memory="15Gi", pods=58))
    assert offered(fleet, node, daemon_sets=(make_daemon_set(memory="1Gi"),)) == "14Gi"


FLEET = make_fleet_settings()


def remembered_from(
    fleet: FleetSettings,
    *nodes: Node,
    before: tuple[SavedFleetState, ...] = (),
    **changed: Any,
) -> Any:
    """What a cycle that sees these nodes of a fleet keeps on the Lease."""
    live = make_fleet(fleet, len(nodes), **changed)
    cloud = make_cloud(live, instances=[make_instance(node, live) for node in nodes])
    return plan(
        make_snapshot(*nodes, cloud=cloud, fleet_states=before), make_settings(fleet)
    ).fleet_states


def offered_later(
    fleet_states: tuple[SavedFleetState, ...],
    fleet: FleetSettings = FLEET,
    hours: float = 1,
    **changed: Any,
) -> str:
    """What is offered some time after the last node was seen to be gone."""
    cloud = make_cloud(make_fleet(fleet, **changed))
    gone = plan(
        make_snapshot(cloud=cloud, fleet_states=fleet_states), make_settings(fleet)
    ).fleet_states
    at = NOW + timedelta(hours=hours)
    return offered(fleet, cloud=cloud, fleet_states=gone, at=at, reserved=amounts(memory="4Gi"))


def smaller(memory: str = "15Gi", **more: Any) -> Node:
    """A node of the fleet that offers less than its instance type has."""
    return make_node("n", FLEET, allocatable=amounts(cpu=4, memory=memory, pods=58, **more))


def test_what_the_last_node_offered_is_remembered() -> None:
    """It would be bought for pods that do not fit on it, again and again."""
    assert offered_later(remembered_from(FLEET, smaller())) == "15Gi"
    assert offered_later(()) == "12Gi"


def test_daemons_are_taken_off_what_is_remembered() -> None:
    """A new node would be filled with pods where its daemons have to go."""
    fleet_states = remembered_from(FLEET, smaller())
    daemon = make_daemon_set(memory="1Gi")
    assert offered(FLEET, fleet_states=fleet_states, daemon_sets=(daemon,)) == "14Gi"


def test_least_that_was_seen_is_remembered() -> None:
    """Of two machines that EC2 may launch the larger may be the last to go."""
    first = remembered_from(FLEET, smaller("14Gi"))
    assert offered_later(remembered_from(FLEET, smaller("15Gi"), before=first)) == "14Gi"


def test_least_that_was_seen_counts_beside_larger_nodes() -> None:
    """Of a fleet of several types a small node may be the first to go, again and again."""
    small = remembered_from(FLEET, smaller("13Gi"))
    larger = smaller("15Gi")
    cloud = make_cloud_of([larger], make_fleet(FLEET, 1))
    assert offered(FLEET, larger, cloud=cloud, fleet_states=small) == "13Gi"
    day_after = remembered_from(FLEET, larger, before=small)
    (memory,) = day_after
    assert memory.unseen_since == NOW
    at = NOW + timedelta(hours=24.1)
    assert offered(FLEET, larger, cloud=cloud, fleet_states=day_after, at=at) == "15Gi"


@pytest.mark.parametrize(("seconds", "bought"), [(60, []), (901, ["primary-b"])])
def test_device_of_a_node_that_has_just_come_is_counted_on(
    seconds: float, bought: list[str]
) -> None:
    """Its plugin registers later: until then the pod would be bought for again, for more."""
    a = make_fleet_settings("a", options=(make_option("a.type", nvidia__gpu=1),))
    b = make_fleet_settings("b", options=(make_option("b.type", nvidia__gpu=1, price="2"),))
    bare = amounts(cpu=4, memory="16Gi", pods=58)
    node = make_node("n", a, allocatable=bare, created_at=ago(seconds))
    pod = make_pod(cpu="1", requests={"nvidia/gpu": 1})
    cloud = make_cloud_of([node], make_fleet(a, 1), make_fleet(b))
    made = plan(make_snapshot(node, pod, cloud=cloud), make_settings(a, b))
    assert [p.node for p in made.placements if p.node] == ([] if bought else ["n"])
    assert [fleet for fleet, _ in raises(made)] == bought


def test_what_was_remembered_is_forgotten_after_a_day() -> None:
    """An image with more room, tagged as the old one was, would never be tried."""
    fleet_states = remembered_from(FLEET, smaller())
    assert offered_later(fleet_states, hours=24) == "15Gi"
    assert offered_later(fleet_states, hours=24.1) == "12Gi"


def test_what_was_remembered_is_forgotten_when_the_fleet_launches_something_else() -> None:
    """Kubelet's reservations are in the launch template: what it changes has to be seen anew."""
    fleet_states = remembered_from(FLEET, smaller())
    assert offered_later(fleet_states, launch_template_version="2") == "12Gi"
    other = replace(FLEET, options=(make_option("other.type"),))
    assert offered_later(fleet_states, other) == "12Gi"


def test_what_was_remembered_outlasts_a_cycle_in_which_the_template_is_unknown() -> None:
    """One failed DescribeLaunchTemplates, and a node was bought that the pods do not fit on."""
    before = remembered_from(FLEET, smaller("14Gi"), launch_template_version="2")
    old = smaller("10Gi")
    known = remembered_from(FLEET, old, before=before, launch_template_version="$Latest")
    assert known == before, "a node of an older template counted as one of the present template"
    assert offered_later(known, launch_template_version="2") == "14Gi"
    assert offered_later(known, launch_template_version="3") == "12Gi"


def test_what_is_offered_is_learned_also_where_the_template_stays_unknown() -> None:
    """The right to read launch templates is optional."""
    before = remembered_from(FLEET, smaller("14Gi"), launch_template_version="$Latest")
    known = remembered_from(
        FLEET, smaller("13Gi"), before=before, launch_template_version="$Latest"
    )
    assert offered_later(known, launch_template_version="$Latest") == "13Gi"


def test_devices_are_not_remembered() -> None:
    """A node whose device plugin had not started would hide the devices of all that follow."""
    fleet = make_fleet_settings(options=(make_option(nvidia__gpu=1),))
    bare = make_node("n", fleet, allocatable=amounts(cpu=4, memory="15Gi", pods=58))
    (memory,) = remembered_from(fleet, bare)
    assert set(memory.learned) == {"cpu", "memory", "pods"}
    wants = make_pod(cpu="1m", memory="1Mi", requests={"nvidia/gpu": 1})
    snapshot = make_snapshot(wants, cloud=make_cloud(make_fleet(fleet)), fleet_states=(memory,))
    assert plan(snapshot, make_settings(fleet)).fleets[0].target == 1


@pytest.mark.parametrize(
    "selector", ["topology.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone"]
)
def test_fleet_in_one_zone_serves_pods_of_that_zone(selector: str) -> None:
    """The EBS driver's label is the zone also before a node carries it."""
    fleet = make_fleet_settings(zone="us-west-2b")
    pods = [make_pod(zone, node_selector={selector: f"us-west-2{zone}"}) for zone in "ab"]
    made = plan(make_snapshot(*pods), make_settings(fleet))
    assert [p.pod.name for p in made.placements] == ["b"]
    assert [u.pod.name for u in made.unplaceable] == ["a"]


def test_instance_type_that_only_some_options_have_is_not_promised() -> None:
    """EC2 may launch another type than the one that the pod selects."""
    options = (make_option("a.large"), make_option("b.large"))
    pod = make_pod(node_selector={"node.kubernetes.io/instance-type": "a.large"})
    made = plan(make_snapshot(pod), make_settings(make_fleet_settings(options=options)))
    assert made.placements == ()


def test_price_is_that_of_the_cheapest_option_and_unknown_prices_are_named() -> None:
    """An unknown price counted as zero would win every comparison."""
    known = make_fleet_settings(
        "known", options=(make_option("a", price="0.3"), make_option("b", price="0.2"))
    )
    unknown = make_fleet_settings("unknown", price=None)
    made = plan(make_snapshot(make_pod()), make_settings(known, unknown))
    assert made.cost.unpriced == ("primary-unknown",)
    assert made.cost.hourly_usd_after > 0


@pytest.mark.parametrize("told", [NO_RESOURCES, FrozenMap({"pods": 110, "nvidia.com/gpu": 1})])
def test_nodes_of_unknown_types_are_priced_by_what_nodes_of_the_fleet_offer(
    told: Resources,
) -> None:
    """A group whose template was not read counted as free: it was bought first, and without end."""
    option = replace(make_option("", price=None), resources=told)
    unknown = make_fleet_settings("unknown", options=(option,), price=None)
    large = amounts(cpu=64, memory="256Gi", pods=58)
    full = make_node("n", unknown, allocatable=large)
    live = make_fleet(unknown, 1)
    busy = make_pod("busy", cpu=64, node="n")
    cloud = make_cloud_of([full], live, make_fleet(known := make_fleet_settings("known")))
    snapshot = make_snapshot(make_pod(), busy, full, cloud=cloud)
    made = plan(snapshot, make_settings(unknown, known))
    assert float(made.cost.hourly_usd_before) == pytest.approx(64 * 0.035 + 256 * 0.0045)
    assert [fleet.fleet for fleet in made.fleets if fleet.target > fleet.current] == [known.name]


@pytest.mark.parametrize(
    ("types", "limit"),
    [
        (("m5.xlarge",), 25),
        (("r5.large", "r4.large", "m5.xlarge"), 25),
        (("m4.large", "r4.large"), 39),
        (("m7i.2xlarge",), 31),
        (("m7i-flex.large",), 31),
        (("r8g.16xlarge",), 47),
        (("c7i.48xlarge", "c7a.24xlarge"), 63),
        (("m7g.large",), 25),
        (("g6.xlarge",), 31),
    ],
)
def test_first_node_of_a_fleet_attaches_as_many_volumes_as_ec2_states(
    types: tuple[str, ...], limit: int
) -> None:
    """Forty databases would be bought one node, and the second only when it is found full."""
    options = [make_option(name, 64, "512Gi", 200) for name in types]
    fleet = make_fleet_settings(options=options)
    gp3 = StorageClass(name="gp3", provisioner="ebs.csi.aws.com", wait_for_first_consumer=True)
    pods = [make_pod(f"p{i}", cpu="10m", memory="1Mi", claims=(f"c{i}",)) for i in range(limit + 1)]
    claims = tuple(
        PersistentVolumeClaim(namespace="ns", name=f"c{i}", storage_class="gp3")
        for i in range(limit + 1)
    )
    snapshot = make_snapshot(*pods, claims=claims, storage_classes=(gp3,))
    made = plan(snapshot, make_settings(fleet))
    assert made.fleets[0].target == 2
    assert made.unplaceable == ()
