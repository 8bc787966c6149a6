"""Under-used nodes: when their pods are moved, and what keeps them (behaviour, section 5)."""

from datetime import datetime
from typing import Any

import pytest

from reconciler.model.actions import (
    DO_NOT_DISRUPT,
    UNNEEDED_SINCE,
    AnnotateNode,
    EvictPod,
    TaintNode,
)
from reconciler.model.cluster import Node, Pod, PodDisruptionBudget
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, ScaleInSettings
from tests.builders import (
    NOW,
    ago,
    make_cloud_of,
    make_daemon_set,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
    selecting,
)

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def stamp(moment: datetime) -> str:
    """A time as annotations hold it."""
    return moment.isoformat().replace("+00:00", "Z")


def unneeded(name: str, fleet: FleetSettings, seconds: float = 900, **changed: Any) -> Node:
    """A node that has been little used for so long."""
    notes = FrozenMap({UNNEEDED_SINCE: stamp(ago(seconds))})
    return make_node(name, fleet, annotations=notes, **changed)


def planned(fleet: FleetSettings, *objects: Node | Pod, **changed: Any) -> Plan:
    """The plan for nodes that EC2 runs, and pods."""
    nodes = [o for o in objects if isinstance(o, Node)]
    live = make_fleet(fleet, len(nodes))
    cloud = make_cloud_of(nodes, live)
    return plan(make_snapshot(*objects, cloud=cloud, **changed), make_settings(fleet))


def pair(
    pod: dict[str, Any] | None = None,
    *,
    fleet: FleetSettings | None = None,
    seconds: float = 900,
    **changed: Any,
) -> Plan:
    """One little used node with one small pod, and a busy one with room for it."""
    chosen = fleet or make_fleet_settings(cpu=4)
    small = make_pod("small", node="little", **{"cpu": "100m", "memory": "100Mi", **(pod or {})})
    busy = make_pod("busy", node="much", cpu=3)
    return planned(
        chosen,
        unneeded("little", chosen, seconds),
        make_node("much", chosen),
        small,
        busy,
        **changed,
    )


def emptied(made: Plan) -> list[str]:
    """The nodes whose drain begins."""
    return [str(a.node) for a in made.actions if isinstance(a, TaintNode)]


def test_little_used_node_is_tainted_and_its_pods_have_places() -> None:
    """A drain would begin without its end in sight."""
    made = pair()
    assert emptied(made) == ["little"]
    (evicted,) = [a for a in made.actions if isinstance(a, EvictPod)]
    assert (evicted.pod.name, evicted.node, evicted.grace_seconds) == ("small", "little", 30)
    (placement,) = made.placements
    assert (placement.moved_from, placement.node) == ("little", "much")
    assert made.fleets[0].target == 2


@pytest.mark.parametrize(("seconds", "begins"), [(599, False), (600, True)])
def test_node_is_emptied_only_after_unneeded_time(seconds: float, begins: bool) -> None:
    """Nodes would be emptied between two bursts."""
    assert emptied(pair(seconds=seconds)) == (["little"] if begins else [])


def test_node_that_becomes_little_used_starts_its_timer() -> None:
    """Without an annotation the timer would start anew with each restart."""
    fleet = make_fleet_settings(cpu=4)
    pods = [make_pod("s", node="little", cpu="100m"), make_pod("b", node="much", cpu=3)]
    made = planned(fleet, make_node("little", fleet), make_node("much", fleet), *pods)
    notes = [a for a in made.actions if isinstance(a, AnnotateNode)]
    assert [(a.node, a.key, a.value) for a in notes] == [("little", UNNEEDED_SINCE, stamp(NOW))]


@pytest.mark.parametrize(
    ("cpu", "memory", "begins"),
    [("1999m", "1Gi", True), ("2", "1Gi", False), ("100m", "8Gi", False), ("100m", "8191Mi", True)],
)
def test_use_must_be_below_the_threshold_in_cpu_and_memory(
    cpu: str, memory: str, begins: bool
) -> None:
    """A node full in one resource would be emptied because of the other."""
    fleet = make_fleet_settings(cpu=4, memory="16Gi")
    pods = [make_pod("s", node="little", cpu=cpu, memory=memory), make_pod("b", node="much", cpu=2)]
    made = planned(fleet, unneeded("little", fleet), make_node("much", fleet), *pods)
    assert ("little" in emptied(made)) == begins


def test_daemon_pods_count_on_neither_side() -> None:
    """A node would look used by what every node runs."""
    fleet = make_fleet_settings(cpu=4)
    daemons = [
        make_pod(f"d-{n}", "kube-system", node=n, owner="DaemonSet", cpu=2, memory="100Mi")
        for n in ("little", "much")
    ]
    pods = [make_pod("s", node="little", cpu="100m"), make_pod("b", node="much", cpu="1500m")]
    made = planned(
        fleet,
        unneeded("little", fleet),
        make_node("much", fleet),
        *pods,
        *daemons,
        daemon_sets=(make_daemon_set("d", cpu=2, memory="100Mi"),),
    )
    assert emptied(made) == ["little"]


@pytest.mark.parametrize(
    ("pod", "begins"),
    [
        ({"annotations": FrozenMap({DO_NOT_DISRUPT: "true"})}, False),
        ({"annotations": FrozenMap({"karpenter.sh/do-not-disrupt": "true"})}, False),
        ({"annotations": FrozenMap({SAFE_TO_EVICT: "false"})}, False),
        ({"owner": None}, False),
        ({"owner": None, "annotations": FrozenMap({SAFE_TO_EVICT: "true"})}, True),
        ({"owner": "Job"}, False),
        ({"owner": "Job", "annotations": FrozenMap({SAFE_TO_EVICT: "true"})}, True),
        ({"owner": "StatefulSet"}, True),
        ({"local_storage": True}, False),
        ({"local_storage": True, "annotations": FrozenMap({SAFE_TO_EVICT: "true"})}, True),
        ({"namespace": "kube-system"}, False),
        ({"unreadable": True}, False),
        ({"termination_grace_seconds": 121}, False),
        ({"termination_grace_seconds": 120}, True),
        ({"cpu": "1100m"}, False),
        ({"node_selector": {"kubernetes.io/hostname": "little"}}, False),
    ],
)
def test_pod_that_may_not_or_cannot_move_keeps_its_node(pod: dict[str, Any], begins: bool) -> None:
    """Work in flight would be killed, or a pod evicted that fits nowhere."""
    assert emptied(pair(pod)) == (["little"] if begins else [])


@pytest.mark.parametrize(
    ("setting", "pod"),
    [
        ("move_bare_pods", {"owner": None}),
        ("move_local_storage", {"local_storage": True}),
        ("move_system_pods", {"namespace": "kube-system"}),
    ],
)
def test_settings_lift_their_bar(setting: str, pod: dict[str, Any]) -> None:
    """The switches would do nothing."""
    fleet = make_fleet_settings(cpu=4, scale_in=ScaleInSettings(**{setting: True}))
    assert emptied(pair(pod, fleet=fleet)) == ["little"]


def budget(name: str, allowed: int, **changed: Any) -> PodDisruptionBudget:
    """A budget over the small pod."""
    return PodDisruptionBudget(
        namespace="ns",
        name=name,
        selector=selecting(app="a"),
        disruptions_allowed=allowed,
        **changed,
    )


@pytest.mark.parametrize(
    ("budgets", "begins"),
    [
        ((budget("one", 1),), True),
        ((budget("one", 0),), False),
        ((budget("one", 1), budget("two", 1)), False),
        ((budget("one", 1, unreadable=True),), False),
    ],
)
def test_budgets_are_kept_before_a_drain_begins(
    budgets: tuple[PodDisruptionBudget, ...], begins: bool
) -> None:
    """A node would stay tainted while the Eviction API refuses for hours."""
    made = pair({"labels": {"app": "a"}}, budgets=budgets)
    assert emptied(made) == (["little"] if begins else [])


def test_one_node_with_pods_at_a_time() -> None:
    """Half of an app would be moved in one cycle."""
    fleet = make_fleet_settings(cpu=4)
    nodes = [unneeded(f"n{i}", fleet) for i in range(3)]
    pods = [make_pod(f"p{i}", node=f"n{i}", cpu="100m") for i in range(3)]
    busy = make_pod("busy", node="much", cpu=3)
    assert len(emptied(planned(fleet, *nodes, make_node("much", fleet), *pods, busy))) == 1


def test_minimum_keeps_a_little_used_node() -> None:
    """A fleet would fall below its minimum."""
    assert emptied(pair(fleet=make_fleet_settings(cpu=4, min_capacity=2))) == []


def test_room_that_waiting_pods_need_is_not_given_to_moved_ones() -> None:
    """A pod would be moved into the room that was just promised to another, and a node bought."""
    fleet = make_fleet_settings(cpu=4)
    pods = [
        make_pod("small", node="little", cpu="900m"),
        make_pod("busy", node="much", cpu=3),
        make_pod("waits", cpu=1, node_selector={"kubernetes.io/hostname": "much"}),
    ]
    made = planned(fleet, unneeded("little", fleet), make_node("much", fleet), *pods)
    assert emptied(made) == []
