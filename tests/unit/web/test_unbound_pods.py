"""Pods that have room on a node that exists and are not bound: the first line says so."""

import json
from typing import Any

import pytest

from reconciler.model.errors import ObservationError
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.placements import Destination, Dispatch, Placements
from reconciler.model.plan import Placement
from tests.builders import amounts_of, make_node, make_pod, make_spec
from tests.unit.web.scene import Scene

TROUBLE = 'fleet_reconciler_trouble{kind="not-bound"}'
STAYS = PodKey(namespace="ns", name="stays", uid="1")


def on(node: str, pod: PodKey = STAYS, **changed: Any) -> Placement:
    """A pod's place on a node that exists."""
    return Placement(pod=pod, node=NodeName(node), **changed)


def verdict(scene: Scene) -> dict[str, Any]:
    """The first line, as JSON."""
    found: dict[str, Any] = json.loads(scene.ask("/api/status")[2])["verdict"]
    return found


def planned(scene: Scene, *placements: Placement, minutes: int) -> None:
    """As many cycles with these placements, a minute apart."""
    for _ in range(minutes):
        scene.cycle(placements=placements)
        scene.clock.advance(60)
    scene.cycle(placements=placements)


def test_pod_with_room_for_ten_minutes_is_a_cause() -> None:
    """A pod waited for six hours on a node with a rule that only kube-scheduler knows."""
    with Scene() as scene:
        planned(scene, on("n-1"), minutes=9)
        assert verdict(scene)["level"] == "ok"
        scene.clock.advance(60)
        scene.cycle(placements=(on("n-2"), on("n-2", PodKey(namespace="ns", name="b", uid="2"))))
        (cause,) = verdict(scene)["causes"]
        assert (cause["kind"], cause["level"]) == ("not-bound", "limited")
        assert cause["headline"] == "kube-scheduler does not bind 1 pod"
        assert cause["detail"] == "ns/stays: n-2 has had room for it for 10m"
        assert "kubectl describe pod" in cause["remedy"]
        assert scene.metric(TROUBLE) == 1
        scene.cycle()
        assert verdict(scene)["level"] == "ok"
        assert scene.metric(TROUBLE) == 0


def test_pod_that_waits_for_new_nodes_or_is_moved_counts_for_nothing() -> None:
    """Their nodes are not there yet, or the pod runs."""
    bought = Placement(pod=STAYS, fleet="primary-small", new_node=0)
    moved = on("n-1", PodKey(namespace="ns", name="moved", uid="3"), moved_from=NodeName("n-2"))
    with Scene() as scene:
        planned(scene, bought, moved, minutes=12)
        assert verdict(scene)["level"] == "ok"


@pytest.mark.parametrize(("gpus", "level"), [(0, "ok"), (1, "limited")])
def test_pod_whose_node_has_not_registered_its_devices_is_left_out(gpus: int, level: str) -> None:
    """Plans expect them for `instance_init_time`; the driver of a GPU may take ten minutes."""
    pod = make_pod("gpu", spec=make_spec(requests={"nvidia.com/gpu": 1}))
    offered: dict[str, str | int] = {"cpu": 4, "memory": "16Gi", "pods": 58}
    offered["nvidia.com/gpu"] = gpus
    node = make_node("n-1", allocatable=amounts_of(offered))
    with Scene() as scene:
        planned(scene, on("n-1", pod.key), minutes=11)
        scene.cycle(placements=(on("n-1", pod.key),), pods=(pod,), nodes=(node,))
        assert verdict(scene)["level"] == level


def test_time_without_room_begins_again() -> None:
    """Another pod took the room, and ended: kube-scheduler has as long as before."""
    with Scene() as scene:
        planned(scene, on("n-1"), minutes=8)
        scene.clock.advance(60)
        scene.cycle()
        scene.clock.advance(60)
        planned(scene, on("n-1"), minutes=8)
        assert verdict(scene)["level"] == "ok"


def test_time_without_plans_does_not_count() -> None:
    """The last plan before the API server was away says nothing about kube-scheduler."""
    with Scene() as scene:
        planned(scene, on("n-1"), minutes=2)
        scene.clock.advance(1800)
        scene.cycle(error=ObservationError("the API server", "no answer"))
        assert "not-bound" not in {cause["kind"] for cause in verdict(scene)["causes"]}
        assert scene.metric(TROUBLE) == 0


def test_pod_that_waits_for_those_that_it_preempted_is_left_out() -> None:
    """They may take their whole grace period to end; kube-scheduler has nominated the node."""
    nominated = NodeName("n-1")
    pods = [make_pod("there", nominated_node_name=nominated), make_pod("plain")]
    elsewhere = [make_pod("elsewhere", nominated_node_name=NodeName("n-9"))]
    here = [Destination(node=nominated)]
    placements = Placements(
        [
            Dispatch(pods=pods, destinations=here, amounts=[2]),
            Dispatch(pods=elsewhere, destinations=here, amounts=[1]),
        ]
    )
    assert list(placements.on_existing_nodes()) == [
        (pods[1].key, nominated),
        (elsewhere[0].key, nominated),
    ]


def test_placements_in_groups_name_pods_on_existing_nodes() -> None:
    """Plans for many pods are made in groups; only these are looked at pod by pod."""
    pods = [make_pod(name) for name in ("a", "b", "c")]
    existing = Destination(node=NodeName("n-1"))
    new = Destination(fleet="primary-small", new_node=0)
    groups = (
        Dispatch(pods=pods[:2], destinations=[existing, new], amounts=[1, 1]),
        Dispatch(pods=pods[2:], destinations=[new], amounts=[1]),
    )
    placements = Placements(groups, [on("n-2")])
    assert list(placements.on_existing_nodes()) == [
        (STAYS, "n-2"),
        (pods[0].key, "n-1"),
    ]
