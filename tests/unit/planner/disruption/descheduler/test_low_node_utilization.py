"""LowNodeUtilization: which nodes count as over-used and under-used, and which pods go."""

from dataclasses import replace

from reconciler.model.actions import TaintNode
from reconciler.model.cluster import Node
from reconciler.planner.descheduler_settings import HighNodeUtilization, LowNodeUtilization
from tests.builders import ago, labelled, make_settings
from tests.unit.planner.disruption.descheduler.scene import FLEET, descheduling, evicted, nodes, old
from tests.unit.planner.disruption.scale_in.scene import planned

GPU = "nvidia.com/gpu"
LOW = LowNodeUtilization(thresholds={"cpu": 20}, target_thresholds={"cpu": 50})


def test_pods_that_are_being_deleted_do_not_make_a_node_over_used() -> None:
    """Pods of the last round take longer to end than `interval`: twice as many went."""
    settings = descheduling(LOW, interval_seconds=60)
    pods = [old("a", f"p{i}", cpu="500m", priority=i) for i in range(6)]
    assert set(evicted(planned(settings, *nodes("a", "b", "c"), *pods))) == {"p0", "p1"}
    leaving = [replace(pod, deleting=True, deletion_at=ago(-200)) for pod in pods[:2]]
    new = [old("b", f"n{i}", cpu="500m", seconds=100) for i in range(2)]
    assert evicted(planned(settings, *nodes("a", "b", "c"), *leaving, *pods[2:], *new)) == {}


def test_node_that_pods_are_about_to_leave_is_not_under_used_yet() -> None:
    """kube-scheduler counts them until they are gone, so the pods would come back."""
    pods = [old("a", f"p{i}", cpu="500m") for i in range(6)]
    leaving = replace(old("b", "leaving", cpu="3"), deleting=True, deletion_at=ago(-200))
    assert evicted(planned(descheduling(LOW), *nodes("a", "b"), *pods, leaving)) == {}


def test_pods_that_request_nothing_of_what_is_over_used_stay() -> None:
    """The pod that fills the node may not go, and the node stays as full without the others."""
    kept = labelled(**{"karpenter.sh/do-not-disrupt": "true"})
    large = old("a", "large", cpu="3", annotations=kept)
    small = [old("a", f"best-{i}", cpu="0") for i in range(5)]
    assert evicted(planned(descheduling(LOW), *nodes("a", "b"), large, *small)) == {}
    useful = old("a", "useful", cpu="500m")
    made = planned(descheduling(LOW), *nodes("a", "b"), large, *small, useful)
    assert list(evicted(made)) == ["useful"]


def test_every_pod_lowers_the_number_of_pods_of_a_node() -> None:
    """With a threshold of `pods` a pod without requests helps as much as any other."""
    policy = LowNodeUtilization(thresholds={"pods": 5}, target_thresholds={"pods": 10})
    offered = nodes("a")[0].allocatable["pods"]
    pods = [old("a", f"p{i}", cpu="0") for i in range(offered // 10 + 2)]
    assert len(evicted(planned(descheduling(policy), *nodes("a", "b"), *pods))) == 2


def with_gpus(name: str) -> Node:
    """A node of 4 CPUs and 4 GPUs."""
    (node,) = nodes(name)
    return replace(node, allocatable=type(node.allocatable)({**node.allocatable, GPU: 4}))


def test_node_without_gpus_is_not_an_under_used_gpu_node() -> None:
    """`numberOfNodes` counts GPU nodes with room, and only they relieve others."""
    policy = LowNodeUtilization(
        thresholds={GPU: 20}, target_thresholds={GPU: 50}, number_of_nodes=1
    )
    pods = [old("a", f"g{i}", cpu="100m", requests={GPU: 1}) for i in range(4)]
    gpu_nodes = with_gpus("a"), with_gpus("b")
    assert evicted(planned(descheduling(policy), *gpu_nodes, *nodes("c", "d"), *pods)) == {}
    made = planned(descheduling(policy), *gpu_nodes, with_gpus("c"), *pods)
    assert len(evicted(made)) == 2


def test_node_without_gpus_is_not_emptied_because_it_uses_none() -> None:
    """HighNodeUtilization would take the pods off CPU nodes that are full of them."""
    fleet = replace(FLEET, min_capacity=0)
    policy = HighNodeUtilization(thresholds={GPU: 20})
    settings = replace(
        make_settings(fleet), descheduler=descheduling(policy).descheduler, consolidation=False
    )
    used = [old("a", f"g{i}", cpu="100m", requests={GPU: 1}) for i in range(4)]
    full = old("b", cpu="3500m")
    made = planned(settings, with_gpus("a"), *nodes("b"), *used, full)
    assert [action for action in made.actions if isinstance(action, TaintNode)] == []
