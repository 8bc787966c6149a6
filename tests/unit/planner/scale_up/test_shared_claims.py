"""Pods that share a claim whose volume is yet to be made: its zone is that of the first of them."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.cluster import Node, Pod
from reconciler.model.plan import Plan
from reconciler.model.selectors import NodeSelectorTerm, Requirement
from reconciler.model.volumes import PersistentVolumeClaim, StorageClass
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    HOME,
    ZONE,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
)
from tests.unit.planner.placed import places, raises

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
EBS = StorageClass(name="disk", provisioner="ebs.csi.aws.com", wait_for_first_consumer=True)
EFS = replace(EBS, provisioner="efs.csi.aws.com")
ZONAL = replace(
    EBS,
    provisioner="disks.example.com",
    allowed_topologies=(
        NodeSelectorTerm(expressions=(Requirement(key=ZONE, operator="In", values=ZONES),)),
    ),
)
OPEN = make_fleet_settings("open", cpu=5, price="0.10", zones=ZONES)
FIXED = tuple(
    make_fleet_settings("fixed", cpu=5, price="0.10", zone=zone, max_capacity=1) for zone in ZONES
)


def claim(name: str = "data", **changed: Any) -> PersistentVolumeClaim:
    """A claim that is not bound yet."""
    return PersistentVolumeClaim(
        **{"namespace": "ns", "name": name, "storage_class": "disk", **changed}
    )


def sharing(count: int = 5, name: str = "p", *claims: str, **changed: Any) -> tuple[Pod, ...]:
    """Pods of 2 CPU that share one claim, of which a node takes two."""
    return make_pods(count, name, cpu="2", claims=claims or ("data",), **changed)


def planned(
    *objects: Node | Pod, fleets: tuple[FleetSettings, ...], made_by: StorageClass = EBS
) -> Plan:
    """The plan with the fleets, whose nodes are those given."""
    nodes = sum(isinstance(each, Node) for each in objects)
    cloud = make_cloud(*(make_fleet(f, nodes if f is fleets[0] else 0) for f in fleets))
    snapshot = make_snapshot(
        *objects,
        cloud=cloud,
        claims=(claim(), claim("logs"), claim("own")),
        storage_classes=(made_by,),
    )
    return plan(snapshot, make_settings(*fleets))


def codes(made: Plan) -> list[set[str]]:
    """Of each pod that waits, the reasons why."""
    return [{r.code for r in u.reasons} for u in made.unplaceable]


@pytest.mark.parametrize("made_by", [EBS, ZONAL])
def test_users_of_one_new_volume_get_nodes_of_one_zone(made_by: StorageClass) -> None:
    """Nodes in the other zones would be bought for pods that cannot reach the volume there."""
    made = planned(*sharing(), fleets=FIXED, made_by=made_by)
    assert raises(made) == {("primary-fixed-us-west-2a", HOME): 1}
    assert len(places(made)) == 2
    assert codes(made) == [{"max-capacity", "volume-zone"}] * 3


@pytest.mark.parametrize("made_by", [EFS, replace(EFS, provisioner="disks.example.com")])
def test_users_of_a_file_system_go_to_any_zone(made_by: StorageClass) -> None:
    """A file system that every zone reaches would hold its pods back in one."""
    made = planned(*sharing(), fleets=FIXED, made_by=made_by)
    assert len(raises(made)) == 3
    assert made.unplaceable == ()


def test_users_of_different_volumes_go_to_any_zone() -> None:
    """Each pod of a StatefulSet has a volume of its own."""
    pods = [make_pod(f"p{i}", cpu="4", claims=(name,)) for i, name in enumerate(("data", "own"))]
    made = planned(*pods, fleets=FIXED)
    assert len(raises(made)) == 2
    assert made.unplaceable == ()


def test_first_node_of_a_fleet_over_zones_decides_for_users_of_one_new_volume() -> None:
    """Three nodes in three zones would be bought, of which one can attach the volume."""
    made = planned(*sharing(), fleets=(OPEN,))
    assert raises(made) == {("primary-open", HOME): 1}
    assert codes(made) == [{"zone"}] * 3


def test_fleet_with_a_zone_takes_all_users_of_one_new_volume() -> None:
    """Pods would wait for a lucky zone although one fleet's is certain."""
    fixed = make_fleet_settings("fixed", cpu=5, price="0.11", zone=ZONES[1])
    made = planned(*sharing(), fleets=(OPEN, fixed))
    assert raises(made) == {("primary-fixed-us-west-2b", HOME): 3}
    assert made.unplaceable == ()


def test_users_follow_one_that_runs_before_its_volume_is_known() -> None:
    """A node in another zone would be bought while the first pod's volume is being made."""
    node = make_node("n", FIXED[1], zone=ZONES[1])
    first = make_pod("first", node="n", cpu="4", claims=("data",))
    wide = tuple(replace(fleet, max_capacity=3) for fleet in (FIXED[1], FIXED[0], FIXED[2]))
    made = planned(node, first, *sharing(3), fleets=wide)
    assert raises(made) == {("primary-fixed-us-west-2b", HOME): 3}
    assert made.unplaceable == ()


def test_claims_that_one_pod_uses_both_are_in_one_zone() -> None:
    """The pod with both claims would find its volumes in two zones."""
    one, other = make_pod("one", cpu="4", claims=("data",)), sharing(1, "other", "logs")
    both = make_pod("two", cpu="4", claims=("logs", "data"))
    made = planned(one, *other, both, fleets=FIXED)
    assert len(raises(made)) == 1
    assert len(made.unplaceable) == 2


def test_pod_that_must_be_near_others_goes_where_they_are() -> None:
    """Whom it needs beside it says more than the volume that nobody has yet."""
    node = make_node("n", FIXED[1], zone=ZONES[1])
    database = make_pod("db", node="n", cpu="1", labels={"app": "db"})
    user = make_pod("user", cpu="2", claims=("data",), pod_affinity=(near(ZONE, app="db"),))
    made = planned(node, database, user, *sharing(1), fleets=FIXED)
    assert places(made)["user"] == ("n",)
