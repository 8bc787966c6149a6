"""The in-memory world binds and attaches volumes as kube-scheduler, EBS and kubelets do."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.adapters.memory import ClaimShape, Delays, MemoryCluster, MemoryWorld
from reconciler.model.cluster import Owner, Pod, PodSpec
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.volumes import EBS_DRIVER, ONE_NODE, ONE_POD, CsiNode
from tests.builders import ZONE, make_node

PLAIN = PodSpec(requests=FrozenMap({"cpu": 100, "pods": 1}))
EFS = "efs.csi.aws.com"


def world_of(*zones: str, cpu: int = 4000, kind: str = "", **delays: float) -> MemoryWorld:
    """A world with a node in each zone, which is named after it."""
    world = MemoryWorld(delays=Delays(**delays))
    for zone in zones:
        add_node(world, zone, zone, cpu, kind)
    return world


def add_node(world: MemoryWorld, name: str, zone: str, cpu: int = 4000, kind: str = "") -> None:
    """Another node."""
    labels = {"node.kubernetes.io/instance-type": kind} if kind else {}
    offer = FrozenMap({"cpu": cpu, "pods": 50})
    world.add_node(make_node(name, zone=zone, labels=labels, allocatable=offer))


def place(world: MemoryWorld, name: str, *claims: str, **changed: Any) -> str:
    """A pod with these claims comes: the node that it is bound to then, or `None`."""
    spec = changed.pop("spec", PLAIN)
    if node := changed.pop("on", ""):
        spec = replace(spec, node_selector=FrozenMap({ZONE: node}))
    key = PodKey(namespace="default", name=name)
    world.add_pod(Pod(key=key, spec=spec, claims=claims, **changed))
    return node_of(world, name)


def pod_of(world: MemoryWorld, name: str) -> Pod:
    """The pod of this name."""
    return next(pod for pod in world.pods() if pod.key.name == name)


def node_of(world: MemoryWorld, name: str) -> str:
    """Its node."""
    return str(pod_of(world, name).node_name)


def remove(world: MemoryWorld, name: str) -> None:
    """The pod is deleted."""
    world.remove_pod(pod_of(world, name).key)


def test_volume_is_in_the_zone_of_its_first_pod_and_keeps_the_others_there() -> None:
    """A database moved to another zone without its data."""
    world = world_of("a", "b")
    assert place(world, "first", "data", on="b") == "b"
    remove(world, "first")
    assert place(world, "second", "data") == "b"
    assert place(world, "third", "data", on="a") == "None"
    assert place(world, "other", "more", on="a") == "a"


def test_pod_waits_for_room_in_the_zone_of_its_volume() -> None:
    """Room elsewhere is none, and a new node of that zone is."""
    world = world_of("a", "b")
    world.add_claim(ClaimShape(namespace="default", name="data", zone="b"))
    assert place(world, "full", on="b", spec=replace(PLAIN, requests=FrozenMap({"cpu": 4000})))
    assert place(world, "db", "data") == "None"
    add_node(world, "a2", "a")
    assert node_of(world, "db") == "None"
    add_node(world, "b2", "b")
    assert node_of(world, "db") == "b2"


def test_balloon_pods_of_another_zone_are_left_alone() -> None:
    """They would go for a pod that cannot come."""
    world = world_of("a", "b", cpu=100)
    world.add_claim(ClaimShape(namespace="default", name="data", zone="b"))
    balloon = replace(PLAIN, priority=-1)
    assert place(world, "balloon-a", spec=balloon, on="a") == "a"
    assert place(world, "balloon-b", spec=balloon, on="b") == "b"
    assert place(world, "db", "data") == "b"
    assert node_of(world, "balloon-a") == "a"


@pytest.mark.parametrize(
    ("shape", "nodes"),
    [
        ({"driver": EFS}, ["a", "b"]),
        ({"zone": "a"}, ["a", "None"]),
        ({"driver": EFS, "zone": "b"}, ["None", "b"]),
        ({"access_modes": (ONE_POD,)}, ["a", "None"]),
        ({"access_modes": ("ReadWriteMany",)}, ["a", "None"]),
    ],
)
def test_what_was_said_of_a_claim_counts(shape: dict[str, Any], nodes: list[str]) -> None:
    """File systems that every zone reaches held their pods in the zone of the first one."""
    world = world_of("a", "b")
    world.add_claim(ClaimShape(namespace="default", name="data", **shape))
    assert [place(world, f"on-{zone}", "data", on=zone) for zone in "ab"] == nodes


def test_first_claim_of_a_class_says_what_the_class_is() -> None:
    """Claims of templates say nothing else, and their pods were held or never came."""
    world = world_of("a", "b")
    world.objects.volumes.zones = "ab"
    for name, driver in (("shared", EFS), ("fast", EBS_DRIVER)):
        shape = ClaimShape(namespace="default", name=name, storage_class=name, driver=driver)
        world.add_claim(replace(shape, immediate=True))
        world.add_claim(ClaimShape(namespace="default", name=f"{name}-2", storage_class=name))
    assert [place(world, f"files-{zone}", "shared-2", on=zone) for zone in "ab"] == ["a", "b"]
    assert place(world, "disk", "fast-2") != "None"
    classes = MemoryCluster(world).observe().storage_classes
    assert [(storage_class.name, storage_class.provisioner) for storage_class in classes] == [
        ("fast", EBS_DRIVER),
        ("shared", EFS),
    ]


def test_claim_that_a_pod_has_named_first_is_completed_until_it_has_a_volume() -> None:
    """Recorders see a pod and its claim in either order."""
    world = world_of("a", "b")
    assert place(world, "early", "data", on="c") == "None"
    world.add_claim(ClaimShape(namespace="default", name="data", zone="b"))
    assert place(world, "late", "data") == "b"
    world.add_claim(ClaimShape(namespace="default", name="data", zone="a"))
    assert place(world, "later", "data") == "b", "what is bound stays where it is"


def test_claim_for_one_pod_is_free_when_that_pod_is_gone_from_any_node() -> None:
    """Its next pod may run on another node than the one that has more room now."""
    world = world_of("a")
    add_node(world, "a2", "a")
    world.add_claim(ClaimShape(namespace="default", name="data", access_modes=(ONE_POD,)))
    assert place(world, "one", "data") == "a"
    elsewhere = replace(PLAIN, node_selector=FrozenMap({"kubernetes.io/hostname": "a2"}))
    assert place(world, "two", "data", spec=elsewhere) == "None"
    remove(world, "one")
    assert node_of(world, "two") == "a2"


def test_nodes_attach_as_many_volumes_as_ec2_lets_their_type() -> None:
    """25 beside network interfaces and the root volume; a volume counts once on a node."""
    world = world_of("a", kind="m5.large")
    assert place(world, "many", *(f"c{n}" for n in range(24))) == "a"
    assert place(world, "shares", "c3", "c4") == "a"
    assert place(world, "last", "c24") == "a"
    assert place(world, "too-many", "c25") == "None"
    assert place(world, "shares-too", "c24", "c0") == "a"
    remove(world, "last")
    assert node_of(world, "too-many") == "None", "the other pod still has the volume there"
    remove(world, "shares-too")
    assert node_of(world, "too-many") == "a"
    (shown,) = MemoryCluster(world).observe().csi_nodes
    assert shown == CsiNode(name=NodeName("a"), limits=FrozenMap({EBS_DRIVER: 25}))


def test_pod_starts_when_the_node_that_has_its_volume_lets_it_go() -> None:
    """kube-scheduler binds it all the same; EBS attaches a volume to one node (Multi-Attach)."""
    world = world_of("a", pod_start=5.0)
    add_node(world, "a2", "a", cpu=200)
    assert place(world, "old", "data") == "a"
    elsewhere = replace(PLAIN, node_selector=FrozenMap({"kubernetes.io/hostname": "a2"}))
    assert place(world, "new", "data", spec=elsewhere) == "a2"
    assert place(world, "beside", "data", on="a") in {"a", "a2"}
    world.advance(60)
    assert pod_of(world, "old").ready
    assert not pod_of(world, "new").ready
    remove(world, "beside")
    world.finish_pod(pod_of(world, "old").key)
    world.advance(4)
    assert not pod_of(world, "new").ready
    world.advance(1)
    assert pod_of(world, "new").ready


def test_volume_stays_on_its_node_while_any_pod_has_it_there() -> None:
    """Two nodes had it when the first of several pods was gone."""
    world = world_of("a", pod_start=5.0)
    add_node(world, "a2", "a")
    hosts = {"first": "a", "elsewhere": "a2", "second": "a", "far": "a2"}
    for name, host in hosts.items():
        on = FrozenMap({"kubernetes.io/hostname": host})
        assert place(world, name, "data", spec=replace(PLAIN, node_selector=on)) == host
    world.advance(10)
    remove(world, "far")
    remove(world, "first")
    world.advance(10)
    assert {pod.key.name: pod.ready for pod in world.pods()} == {"second": True, "elsewhere": False}
    remove(world, "second")
    world.advance(10)
    assert pod_of(world, "elsewhere").ready


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_generic_ephemeral_volume_goes_with_its_pod(kind: str) -> None:
    """A cache on EBS does not hold the replica that follows in a zone."""
    world = world_of("a", "b", pod_stop=1.0)
    world.add_claim(ClaimShape(namespace="default", name="web-0-cache", of_pod=True))
    owner = Owner(kind=kind, name="web", uid="web")
    assert place(world, "web-0", "web-0-cache", "shared", owner=owner) == "a"
    world.add_node(replace(world.nodes()[0], unschedulable=True))
    world.stop_pod(pod_of(world, "web-0").key)
    world.advance(2)
    (pod,) = world.pods()
    assert pod.node_name is None, "the other claim's volume is in zone a"
    assert pod.claims == (f"{pod.key.name}-cache", "shared")
    state = MemoryCluster(world).observe()
    found = {claim.name: claim.volume_name for claim in state.claims}
    assert found.keys() == set(pod.claims)
    assert found[pod.claims[0]] == ""
    assert len(state.volumes) == 1


def test_claim_that_is_deleted_goes_when_no_pod_names_it() -> None:
    """Its name may be used again, for a volume in another zone."""
    world = world_of("a", "b")
    assert place(world, "db", "data", on="a") == "a"
    world.remove_claim("default", "data")
    assert len(MemoryCluster(world).observe().volumes) == 1
    remove(world, "db")
    assert MemoryCluster(world).observe().claims == ()
    assert place(world, "again", "data", on="b") == "b"


def test_volumes_that_are_made_at_once_are_spread_over_the_zones_by_ordinal() -> None:
    """Volume binding mode Immediate looks at no pod; all claims of a replica are in one zone."""
    world = world_of("a", "b", "c")
    world.objects.volumes.zones = "abc"
    zones: dict[str, list[str]] = {}
    for claim in ("data", "log"):
        for number in range(3):
            name = f"{claim}-db-{number}"
            world.add_claim(
                ClaimShape(namespace="default", name=name, storage_class="fast", immediate=True)
            )
            zones.setdefault(claim, []).append(place(world, name, name))
    assert zones["data"] == zones["log"]
    assert sorted(zones["data"]) == ["a", "b", "c"]
    by_template = ClaimShape(namespace="default", name="data-db-3", storage_class="fast")
    world.add_claim(by_template)
    assert place(world, "by-class", "data-db-3") == zones["data"][0]


def test_what_is_observed_is_what_planning_reads() -> None:
    """Without claims nothing is added: plans of clusters without volumes stay as they were."""
    world = world_of("a", kind="m5.large")
    place(world, "web")
    state = MemoryCluster(world).observe()
    assert (state.claims, state.volumes, state.storage_classes, state.csi_nodes) == ((),) * 4
    place(world, "db", "data", "data")
    state = MemoryCluster(world).observe()
    (claim,), (volume,), (storage_class,) = state.claims, state.volumes, state.storage_classes
    assert (claim.name, claim.volume_name, claim.access_modes) == ("data", volume.name, (ONE_NODE,))
    assert volume.node_affinity is not None
    assert volume.node_affinity.matches(FrozenMap({ZONE: "a"}), NodeName("x"))
    assert not volume.node_affinity.matches(FrozenMap({ZONE: "b"}), NodeName("x"))
    assert (volume.csi_driver, volume.claim) == (EBS_DRIVER, ("default", "data"))
    assert storage_class.default
    assert storage_class.wait_for_first_consumer
