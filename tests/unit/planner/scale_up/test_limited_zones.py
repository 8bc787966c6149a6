"""Which zone pods are bought for, where fleets of some zones may grow by a few nodes only."""

from typing import Any

import pytest

from reconciler.model.cluster import Pod
from reconciler.model.plan import Plan
from reconciler.model.volumes import PersistentVolumeClaim, StorageClass
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    HOME,
    HOSTNAME,
    ZONE,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
    spread,
)
from tests.unit.planner.placed import raises

A, B = "us-west-2a", "us-west-2b"
TOGETHER: dict[str, Any] = {"labels": {"app": "w"}, "pod_affinity": (near(ZONE, app="w"),)}
"""In one zone with pods of its app."""


def fleet(zone: str, most: int | None = None, **changed: Any) -> FleetSettings:
    """A fleet of nodes of 4 CPU in one zone."""
    return make_fleet_settings(
        "four", zone=zone, max_capacity=most, over_subscription=0.0, **{"price": "0.20", **changed}
    )


def planned(*pods: Pod, fleets: tuple[FleetSettings, ...], **world: Any) -> Plan:
    """The plan on an empty cluster."""
    cloud = make_cloud(*(make_fleet(each) for each in fleets))
    return plan(make_snapshot(*pods, cloud=cloud, **world), make_settings(*fleets))


APART = make_pods(5, "w", cpu="500m", pod_anti_affinity=(near(HOSTNAME, app="w"),), **TOGETHER)
TWO_KINDS = (*make_pods(2, "w", cpu="3", **TOGETHER), *make_pods(3, "v", cpu="2500m", **TOGETHER))
FOLLOWED = (
    *make_pods(2, "w", cpu="1", labels={"app": "w"}),
    *make_pods(4, "v", cpu="2500m", labels={"app": "v"}, pod_affinity=(near(ZONE, app="w"),)),
)


@pytest.mark.parametrize("pods", [APART, TWO_KINDS, FOLLOWED])
def test_group_goes_to_the_zone_that_has_nodes_for_all_of_it(pods: tuple[Pod, ...]) -> None:
    """In the first zone some would wait for good: for nodes of their own, or beside other kinds."""
    made = planned(*pods, fleets=(fleet(A, 3), fleet(B, 20)))
    assert made.unplaceable == ()
    assert {name for name, _ in raises(made)} == {f"primary-four-{B}"}


def test_group_makes_way_for_pods_that_have_no_choice_of_zone() -> None:
    """Zone a has nodes for one of the two only."""
    group = make_pods(5, "w", cpu="3", **TOGETHER)
    pinned = make_pods(3, "o", cpu="3500m", node_selector={ZONE: A})
    made = planned(*group, *pinned, fleets=(fleet(A, 6), fleet(B, 20)))
    assert raises(made) == {(f"primary-four-{A}", HOME): 3, (f"primary-four-{B}", HOME): 5}


def test_second_group_goes_where_the_first_has_left_room() -> None:
    """Zone a has room for either of them."""
    groups = [
        pod
        for app in ("x", "y")
        for pod in make_pods(
            3, app, cpu="3", labels={"app": app}, pod_affinity=(near(ZONE, app=app),)
        )
    ]
    made = planned(*groups, fleets=(fleet(A, 4), fleet(B, 4)))
    assert raises(made) == {(f"primary-four-{A}", HOME): 3, (f"primary-four-{B}", HOME): 3}


def test_kinds_that_share_a_new_volume_go_where_there_is_room_for_all() -> None:
    """The volume's zone is that of the first of them, for good."""
    claim = PersistentVolumeClaim(
        namespace="ns",
        name="data",
        storage_class="disk",
        access_modes=("ReadWriteOnce",),
        request_bytes=2**30,
    )
    disk = StorageClass(name="disk", provisioner="ebs.csi.aws.com", wait_for_first_consumer=True)
    pods = [
        *make_pods(2, "w", cpu="3", claims=("data",)),
        *make_pods(2, "v", cpu="3500m", claims=("data",)),
    ]
    made = planned(
        *pods, fleets=(fleet(A, 2), fleet(B, 4)), claims=(claim,), storage_classes=(disk,)
    )
    assert raises(made) == {(f"primary-four-{B}", HOME): 4}


def test_spread_goes_on_where_the_cheap_fleet_of_a_zone_is_used_up() -> None:
    """Each kind would begin in zone a for its cheapest fleet, and get the dear one."""
    small: dict[str, Any] = {"cpu": 2, "memory": "16Gi", "price": "0.164"}
    fleets = (
        fleet(A, 1, **small),
        fleet(B, **small),
        make_fleet_settings("large", cpu=16, memory="64Gi", price="0.893", zone=A),
    )
    kinds = [
        make_pod(
            f"k{n}",
            cpu="1500m",
            labels={"app": f"k{n}"},
            topology_spread=(spread(ZONE, app=f"k{n}"),),
        )
        for n in range(4)
    ]
    made = planned(*kinds, fleets=fleets)
    assert raises(made) == {(f"primary-four-{A}", HOME): 1, (f"primary-four-{B}", HOME): 3}
