"""Taints that are gone from a new node before pods come to it."""

import pytest

from reconciler.model.cluster import Taint, Toleration
from reconciler.model.fleet import NODE_TEMPLATE, Fleet, InstanceType
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.planner.settings import Discovery, PlannerSettings
from tests.builders import (
    HOME,
    ago,
    make_cloud,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.placed import raised

OWN = "example.com/initializing"
KNOWN = (
    "node.cilium.io/agent-not-ready",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "startup-taint.cluster-autoscaler.kubernetes.io/gpu-driver",
    "ignore-taint.cluster-autoscaler.kubernetes.io/gpu-driver",
)
MACHINE = InstanceType(
    name="m5.xlarge",
    arch="amd64",
    cpu_milli=4000,
    memory_bytes=16 * 2**30,
    pods_max=58,
)


def discovering(*named: str) -> PlannerSettings:
    """Settings without sectors, which name these start-up taints."""
    types = {MACHINE.name: MACHINE}
    return make_settings(discovery=Discovery(types=types), startup_taints=frozenset(named))


def empty_group(taint: str) -> Fleet:
    """An empty Auto Scaling group whose tags say that its nodes come with the taint."""
    return Fleet(
        id=FleetId("workers"),
        name="workers",
        provider="asg",
        region=HOME,
        state="active",
        target_capacity=0,
        instance_types=(MACHINE.name,),
        tags=FrozenMap({f"{NODE_TEMPLATE}/taint/{taint}": "true:NoExecute"}),
    )


def planned(taint: str, *named: str) -> Plan:
    """The plan for one pod that tolerates nothing."""
    return plan(
        make_snapshot(make_pod(), cloud=make_cloud(empty_group(taint))), discovering(*named)
    )


@pytest.mark.parametrize("key", KNOWN)
def test_group_whose_nodes_come_with_a_startup_taint_grows(key: str) -> None:
    """Its agent takes it off: on EKS with Cilium no group grew, and every pod waited for ever."""
    assert raised(planned(key)) == [("workers", 0, 1)]


def test_startup_taint_that_the_config_names_is_one() -> None:
    """Agents of one's own have taints that nobody else knows."""
    assert raised(planned(OWN, OWN)) == [("workers", 0, 1)]
    refused = planned(OWN)
    assert raised(refused) == []
    assert [r.code for unplaceable in refused.unplaceable for r in unplaceable.reasons] == ["taint"]


@pytest.mark.parametrize(("key", "named"), [(OWN, {OWN}), *((key, set()) for key in KNOWN)])
def test_new_node_with_a_startup_taint_counts_as_launching(key: str, named: set[str]) -> None:
    """The pods that it was bought for were bought a second node."""
    fleet = make_fleet_settings()
    taint = Taint(key=key, value="true", effect="NoSchedule")
    node = make_node("new", fleet, created_at=ago(60), taints=(taint,))
    cloud = make_cloud_of([node], make_fleet(fleet, 1))
    snapshot = make_snapshot(node, make_pod(), cloud=cloud)
    made = plan(snapshot, make_settings(fleet, startup_taints=frozenset(named)))
    assert raised(made) == []
    assert [(p.fleet, p.launching) for p in made.placements] == [(fleet.name, 0)]
    unknown = plan(snapshot, make_settings(fleet))
    assert raised(unknown) == ([(fleet.name, 1, 2)] if named else [])


def test_new_node_with_a_startup_taint_takes_pods_that_tolerate_it_once() -> None:
    """It was counted as a node and as launching: of two pods one had no node until it was Ready."""
    fleet = make_fleet_settings(cpu=4)
    node = make_node(
        "new", fleet, created_at=ago(60), taints=(Taint(key=KNOWN[0], effect="NoSchedule"),)
    )
    pods = make_pods(2, "agent", cpu=3, tolerations=(Toleration(operator="Exists"),))
    snapshot = make_snapshot(node, *pods, cloud=make_cloud_of([node], make_fleet(fleet, 1)))
    assert raised(plan(snapshot, make_settings(fleet))) == [(fleet.name, 1, 2)]
