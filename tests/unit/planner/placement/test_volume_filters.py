"""Volumes: where they can be reached from, how many a node attaches, who uses them."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName
from reconciler.model.selectors import LabelSelector, NodeSelectorTerm, Requirement
from reconciler.model.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from reconciler.planner.placement.volume_needs import NO_VOLUMES
from reconciler.planner.placement.volumes import VolumeResolver
from reconciler.planner.planner import plan
from tests.builders import (
    HOSTNAME,
    ZONE,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
    requiring,
    selecting,
)
from tests.unit.planner.counted_lines import CountedLine
from tests.unit.planner.placement.fitting import FLEET, fits, places

EBS = "ebs.csi.aws.com"
GP3 = StorageClass(name="gp3", provisioner=EBS, wait_for_first_consumer=True)
IN_A = Requirement(key="topology.ebs.csi.aws.com/zone", operator="In", values=("us-west-2a",))


def claim(name: str = "data", **changed: Any) -> PersistentVolumeClaim:
    """A claim of class gp3."""
    return PersistentVolumeClaim(
        **{"namespace": "ns", "name": name, "storage_class": "gp3", **changed}
    )


def ebs_volume(name: str = "pv", zone: str = "us-west-2a", **changed: Any) -> PersistentVolume:
    """A volume that the EBS driver made in a zone."""
    selector = requiring("topology.ebs.csi.aws.com/zone", "In", zone)
    return PersistentVolume(
        **{"name": name, "node_affinity": selector, "csi_driver": EBS, **changed}
    )


@pytest.mark.parametrize(
    ("volume", "zone", "expected"),
    [
        (ebs_volume(), "us-west-2a", True),
        (ebs_volume(), "us-west-2b", False),
        (ebs_volume(node_affinity=None), "us-west-2b", True),
        (
            ebs_volume(node_affinity=None, labels=FrozenMap({ZONE: "us-west-2a"})),
            "us-west-2a",
            True,
        ),
        (
            ebs_volume(node_affinity=None, labels=FrozenMap({ZONE: "us-west-2a"})),
            "us-west-2b",
            False,
        ),
        (
            ebs_volume(node_affinity=None, labels=FrozenMap({ZONE: "us-west-2a__us-west-2b"})),
            "us-west-2b",
            True,
        ),
        (ebs_volume(node_affinity=requiring(HOSTNAME, "In", "n")), "us-west-2b", True),
        (ebs_volume(node_affinity=requiring(HOSTNAME, "In", "m")), "us-west-2b", False),
    ],
)
def test_bound_volume_is_reached_only_from_where_it_is(
    volume: PersistentVolume, zone: str, expected: bool
) -> None:
    """A database would be promised a node that cannot attach its disk."""
    pod = make_pod(claims=("data",))
    bound = claim(volume_name="pv")
    found = fits(pod, make_node("n", zone=zone), claims=(bound,), volumes=(volume,))
    assert found == expected


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"claim": ("ns", "data")}, "it is kept for a claim of this name, perhaps an earlier one"),
        ({"claim": ("other", "data")}, "it belongs to claim other/data"),
        ({"storage_class": "gp3", "capacity_bytes": 1}, "it is too small, or of another storage "),
        ({"storage_class": "gp2"}, "it is too small, or of another storage class, volume mode "),
        ({"storage_class": "gp3", "capacity_bytes": 2}, "not yet"),
    ],
)
def test_claim_that_only_names_a_volume_waits_and_says_why(
    changed: dict[str, Any], why: str
) -> None:
    """kube-scheduler places no pod of an unbound claim that names a volume; a node would idle."""
    only_named = claim(volume_name="pv", volume_bound=False, request_bytes=2)
    known: dict[str, Any] = {"claims": (only_named,), "volumes": (ebs_volume(**changed),)}
    pod = make_pod(claims=("data",))
    assert not fits(pod, make_node("n"), **known)
    made = plan(make_snapshot(pod, **known), make_settings(FLEET))
    (refused,) = made.unplaceable
    assert refused.reasons[0].code == "volume-binding"
    expected = f"claim data names pv and is not bound to it: {why}"
    assert refused.reasons[0].detail.startswith(expected)


def test_labelled_volume_goes_to_a_node_that_says_nothing_of_its_place() -> None:
    """kube-scheduler places such a pod; a node bought for it would stay empty."""
    volume = ebs_volume(node_affinity=None, labels=FrozenMap({ZONE: "us-west-2a"}))
    node = make_node("n", zone=None)
    somewhere = replace(node, labels=FrozenMap({HOSTNAME: "n"}))
    known = {"claims": (claim(volume_name="pv"),), "volumes": (volume,)}
    assert fits(make_pod(claims=("data",)), somewhere, **known)
    assert not fits(make_pod(claims=("data",)), node, **known)  # it names its region


@pytest.mark.parametrize(("zone", "expected"), [("us-west-2a", True), ("us-west-2b", False)])
def test_allowed_topologies_limit_volumes_that_are_yet_to_be_made(
    zone: str, expected: bool
) -> None:
    """The volume could not be made where the pod was placed."""
    allowed = (NodeSelectorTerm(expressions=(IN_A,)),)
    limited = StorageClass(
        name="gp3", provisioner=EBS, wait_for_first_consumer=True, allowed_topologies=allowed
    )
    pod = make_pod(claims=("data",))
    found = fits(pod, make_node("n", zone=zone), claims=(claim(),), storage_classes=(limited,))
    assert found == expected


def test_claim_without_a_class_is_of_the_default_class() -> None:
    """Most claims name no class."""
    default = StorageClass(name="std", provisioner=EBS, wait_for_first_consumer=True, default=True)
    pod, bare = make_pod(claims=("data",)), claim(storage_class=None)
    assert fits(pod, make_node("n"), claims=(bare,), storage_classes=(default,))
    assert not fits(pod, make_node("n"), claims=(bare,), storage_classes=(GP3,))


def test_two_local_claims_need_two_volumes_of_one_node() -> None:
    """kube-scheduler never gives one disk to two claims: the pod would wait for ever."""
    local = StorageClass(
        name="local", provisioner="kubernetes.io/no-provisioner", wait_for_first_consumer=True
    )

    def disk(name: str, host: str) -> PersistentVolume:
        affinity = requiring(HOSTNAME, "In", host)
        return PersistentVolume(name=name, storage_class="local", node_affinity=affinity)

    pod = make_pod(claims=("data", "logs"))
    claims = (claim("data", storage_class="local"), claim("logs", storage_class="local"))

    def found(*volumes: PersistentVolume) -> bool:
        known = {"claims": claims, "storage_classes": (local,)}
        return fits(pod, make_node("n"), volumes=volumes, **known)

    assert not found(disk("one", "n"))
    assert not found(disk("one", "n"), disk("two", "m"))
    assert found(disk("one", "n"), disk("two", "n"))


def test_local_volumes_made_by_hand_are_found_where_they_are() -> None:
    """A pod with a local disk would be promised a node without one."""
    local = StorageClass(
        name="local", provisioner="kubernetes.io/no-provisioner", wait_for_first_consumer=True
    )
    disk = PersistentVolume(
        name="disk", storage_class="local", node_affinity=requiring(HOSTNAME, "In", "n")
    )
    other = claim(storage_class="local")
    pod = make_pod(claims=("data",))
    changed: dict[str, Any] = {"claims": (other,), "storage_classes": (local,)}
    assert fits(pod, make_node("n"), volumes=(disk,), **changed)
    assert not fits(pod, make_node("m"), volumes=(disk,), **changed)
    taken = PersistentVolume(
        name="disk",
        storage_class="local",
        claim=("ns", "someone"),
        node_affinity=disk.node_affinity,
    )
    assert not fits(pod, make_node("n"), volumes=(taken,), **changed)


@pytest.mark.parametrize(("limit", "placed"), [(None, 4), (1, 0), (2, 1), (3, 2), (99, 4)])
def test_attach_limit_counts_what_runs(limit: int | None, placed: int) -> None:
    """The 26th disk of a node would keep its pod in ContainerCreating for ever."""
    waiting = [make_pod(f"p{i}", claims=(f"c{i}",)) for i in range(4)]
    running = make_pod("runs", node="n", claims=("c9",))
    claims = tuple(claim(f"c{i}", volume_name=f"v{i}") for i in (0, 1, 2, 3, 9))
    volumes = tuple(ebs_volume(f"v{i}") for i in (0, 1, 2, 3, 9))
    csi = CsiNode(name=NodeName("n"), limits=FrozenMap({EBS: limit}))
    found = places(
        make_node("n"), running, *waiting, claims=claims, volumes=volumes, csi_nodes=(csi,)
    )
    assert len(found) == placed


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("ReadWriteOncePod", False), ("ReadWriteOnce", True), ("ReadWriteMany", True)],
)
def test_claim_for_one_pod_is_not_shared(mode: str, expected: bool) -> None:
    """A second pod would be placed that can never mount its volume."""
    user = make_pod("user", node="n", claims=("data",))
    bound = claim(volume_name="pv", access_modes=(mode,))
    pod = make_pod(claims=("data",))
    assert fits(pod, make_node("n"), user, claims=(bound,), volumes=(ebs_volume(),)) == expected


def test_volumes_named_in_the_pod_itself_count_against_the_limit() -> None:
    """In-tree EBS volumes are attached by the same driver."""
    csi = CsiNode(name=NodeName("n"), limits=FrozenMap({EBS: 1}))
    pod = make_pod(ebs_volume_ids=("vol-1", "vol-2"))
    assert not fits(pod, make_node("n"), csi_nodes=(csi,))


@pytest.mark.parametrize(("limit", "placed"), [(1, 0), (2, 1), (3, 2)])
def test_claim_that_several_pods_share_takes_one_attachment_of_a_node(
    limit: int, placed: int
) -> None:
    """Two replicas on one disk would count as two disks, and a node be bought for the second."""
    claims = tuple(claim(name, volume_name=f"v-{name}") for name in ("own", "disk", "late"))
    volumes = tuple(ebs_volume(f"v-{c.name}") for c in claims)
    running = [
        make_pod("first", node="n", claims=("disk",)),
        make_pod("second", node="n", claims=("disk",)),
        make_pod("other", node="n", claims=("own",)),
    ]
    third = make_pod("third", claims=("disk",))
    fourth = make_pod("fourth", claims=("late",))
    csi = CsiNode(name=NodeName("n"), limits=FrozenMap({EBS: limit}))
    known = {"claims": claims, "volumes": volumes, "csi_nodes": (csi,)}
    found = places(make_node("n"), *running, third, fourth, **known)
    # What is attached is not asked about again: the third goes there even beyond the limit.
    assert set(found) == {"third", "fourth"} if placed == 2 else {"third"}


def test_waiting_pods_that_share_a_claim_need_one_attachment() -> None:
    """Ten replicas over one disk would each want an attachment of their own."""
    csi = CsiNode(name=NodeName("n"), limits=FrozenMap({EBS: 1}))
    pods = [make_pod(f"p{i}", claims=("data",), cpu="10m") for i in range(10)]
    for known in (
        {"claims": (claim(volume_name="pv"),), "volumes": (ebs_volume(),)},
        {"claims": (claim(),), "storage_classes": (GP3,)},
    ):
        assert len(places(make_node("n"), *pods, csi_nodes=(csi,), **known)) == 10


def test_shared_claim_leaves_with_its_last_user() -> None:
    """A disk would be taken off a node while another pod there still uses it."""
    csi = CsiNode(name=NodeName("n"), limits=FrozenMap({EBS: 1}))
    users = [make_pod(f"u{i}", node="n", claims=("data",), phase="Succeeded") for i in range(2)]
    claims = (claim(volume_name="pv"), claim("own", volume_name="pv2"))
    volumes = (ebs_volume(), ebs_volume("pv2"))
    known = {"claims": claims, "volumes": volumes, "csi_nodes": (csi,)}
    pod = make_pod(claims=("own",))
    assert fits(pod, make_node("n"), *users, **known)
    stays = make_pod("stays", node="n", claims=("data",))
    assert not fits(pod, make_node("n"), *users, stays, **known)


@pytest.mark.parametrize(
    ("node", "chosen", "expected"), [("n", "n", True), ("m", "n", False), ("m", "gone", True)]
)
def test_claim_whose_volume_is_being_made_ties_its_pod_to_that_node(
    node: str, chosen: str, expected: bool
) -> None:
    """kube-scheduler goes nowhere else until the driver gives up; a choice that is gone is void."""
    pending = claim(selected_node=NodeName(chosen))
    others = [] if node == "n" else [make_node("n", unschedulable=True)]
    known = {"claims": (pending,), "storage_classes": (GP3,)}
    assert fits(make_pod(claims=("data",)), make_node(node), *others, **known) == expected


def test_chosen_node_must_be_where_the_class_allows_volumes() -> None:
    """A choice from before the class was changed is no way around its zones."""
    allowed = (NodeSelectorTerm(expressions=(IN_A,)),)
    limited = replace(GP3, allowed_topologies=allowed)
    known = {"claims": (claim(selected_node=NodeName("n")),), "storage_classes": (limited,)}
    assert fits(make_pod(claims=("data",)), make_node("n", zone="us-west-2a"), **known)
    assert not fits(make_pod(claims=("data",)), make_node("n", zone="us-west-2b"), **known)


@pytest.mark.parametrize(
    ("disk", "wanted", "expected"),
    [
        ({"capacity_bytes": 10}, {"request_bytes": 10}, True),
        ({"capacity_bytes": 9}, {"request_bytes": 10}, False),
        ({"block": True}, {}, False),
        ({"block": True}, {"block": True}, True),
        ({"deleting": True}, {}, False),
        ({"labels": FrozenMap({"tier": "fast"})}, {"selector": selecting(tier="fast")}, True),
        ({"labels": FrozenMap({"tier": "slow"})}, {"selector": selecting(tier="fast")}, False),
        ({"claim": ("ns", "data")}, {"selector": selecting(tier="fast")}, True),
        ({"access_modes": ("ReadWriteOnce",)}, {"access_modes": ("ReadWriteMany",)}, False),
    ],
)
def test_local_volume_must_suit_its_claim(
    disk: dict[str, Any], wanted: dict[str, Any], expected: bool
) -> None:
    """A pod would be promised a node whose disk is too small, raw, or another tier."""
    local = StorageClass(
        name="local", provisioner="kubernetes.io/no-provisioner", wait_for_first_consumer=True
    )
    volume = PersistentVolume(
        name="disk", storage_class="local", node_affinity=requiring(HOSTNAME, "In", "n"), **disk
    )
    known = {
        "claims": (claim(storage_class="local", **wanted),),
        "volumes": (volume,),
        "storage_classes": (local,),
    }
    assert fits(make_pod(claims=("data",)), make_node("n"), **known) == expected


def test_small_claim_leaves_the_large_local_volume_to_the_large_one() -> None:
    """The first claim would take the only disk that is large enough for the second."""
    local = StorageClass(
        name="local", provisioner="kubernetes.io/no-provisioner", wait_for_first_consumer=True
    )
    here = requiring(HOSTNAME, "In", "n")
    disks = tuple(
        PersistentVolume(name=n, storage_class="local", node_affinity=here, capacity_bytes=size)
        for n, size in (("a-large", 100), ("b-small", 10))
    )
    claims = (
        claim("a", storage_class="local", request_bytes=5),
        claim("b", storage_class="local", request_bytes=50),
    )
    pod = make_pod(claims=("a", "b"))
    known = {"claims": claims, "volumes": disks, "storage_classes": (local,)}
    assert fits(pod, make_node("n"), **known)


def test_old_region_label_of_a_volume_is_found_under_its_new_name() -> None:
    """Nodes have not carried the old label for years: a database would wait for ever."""
    old = FrozenMap({"failure-domain.beta.kubernetes.io/region": "us-west-2"})
    volume = ebs_volume(node_affinity=None, labels=old)
    known = {"claims": (claim(volume_name="pv"),), "volumes": (volume,)}
    assert fits(make_pod(claims=("data",)), make_node("n"), **known)


def test_claim_with_a_boundless_selector_keeps_its_pod_waiting() -> None:
    """Fifty selectors of 15,000 lines, compared with a hundred disks, made each plan take 16 s."""
    local = StorageClass(
        name="local", provisioner="kubernetes.io/no-provisioner", wait_for_first_consumer=True
    )
    disk = PersistentVolume(name="disk", storage_class="local")
    too_complex = claim(storage_class="local", too_complex="has 15,000 lines")
    known: dict[str, Any] = {"volumes": (disk,), "storage_classes": (local,)}
    pod = make_pod(claims=("data",))
    assert fits(pod, make_node("n"), claims=(claim(storage_class="local"),), **known)
    snapshot = make_snapshot(pod, make_node("n"), claims=(too_complex,), **known)
    (refused,) = plan(snapshot, make_settings(FLEET)).unplaceable
    assert {(r.code, r.detail) for r in refused.reasons} == {
        ("volume-binding", "claim data has 15,000 lines")
    }


def test_pod_that_was_given_a_node_has_no_volumes_looked_for() -> None:
    """Whoever names the node of his pods pays nothing for the plan, and nobody binds the claim."""
    local = StorageClass(
        name="local", provisioner="kubernetes.io/no-provisioner", wait_for_first_consumer=True
    )
    lines = [CountedLine(key=f"k{i}", operator="DoesNotExist") for i in range(100)]
    selector = LabelSelector(match_expressions=tuple(lines))
    claims = [claim(f"c{i}", storage_class="local", selector=selector) for i in range(2)]
    disk = PersistentVolume(name="disk", storage_class="local")
    placed = make_pod(claims=("c0", "c1"), node="n")
    CountedLine.compared = 0
    resolver = VolumeResolver(claims, [disk], [local], [placed], [NodeName("n")])
    assert resolver.needs(placed) == NO_VOLUMES
    assert list(resolver.compared_with(placed)) == []
    assert CountedLine.compared == 0
    assert list(resolver.compared_with(make_pod(claims=("c0", "c1")))) == [(selector, 1)] * 2
