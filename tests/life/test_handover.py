"""A cluster that Cluster Autoscaler scaled is taken over, with what it left behind, and given back.

Taints and annotations are those that it writes (cluster-autoscaler/utils/taints, read 2026-11).
"""

from dataclasses import replace

import pytest

from reconciler.adapters.memory import Delays, FleetShape, MemoryWorld
from reconciler.model.actions import DRAINING_TAINT, UNNEEDED_SINCE, UNNEEDED_TAINT
from reconciler.model.cluster import Node, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName
from reconciler.simulation.process import Process
from tests.builders import HOME, idle, labelled, make_fleet_settings, make_pod, make_settings

TO_BE_DELETED = Taint(key="ToBeDeletedByClusterAutoscaler", value="1769860000", effect="NoSchedule")
CANDIDATE = Taint(
    key="DeletionCandidateOfClusterAutoscaler", value="1769860000", effect="PreferNoSchedule"
)
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
HOUR = 3600.0
SCALE_IN = idle(
    120,
    idle_threshold_explicit=True,
    unneeded_seconds=120,
    settle_seconds=60,
    consolidate_after_seconds=60,
)
SETTINGS = make_settings(
    make_fleet_settings(provider="asg", auto_scaling_group="primary-small", scale_in=SCALE_IN)
)


class Cluster:
    """A group of six nodes that Cluster Autoscaler has just been stopped on."""

    def __init__(self) -> None:
        delays = Delays(modify=0, launch=20, join=30, terminate=10, node_gone=10, pod_stop=5)
        self.world = MemoryWorld(cluster="c", delays=delays)
        fleet = SETTINGS.fleets()[0]
        shape = FleetShape(
            name=fleet.name,
            region=HOME,
            labels=labelled(**fleet.labels, **{"topology.kubernetes.io/region": HOME}),
            allocatable=fleet.options[0].resources,
            instance_type=fleet.options[0].instance_type,
            provider="asg",
            max_size=10,
        )
        self.group = self.world.add_fleet(shape, 6)
        self.world.advance(600)
        self.names = [node.name for node in self.world.nodes()]
        self.pods = 0
        self._leave_behind()
        self.world.advance(HOUR)

    def _leave_behind(self) -> None:
        ending, candidate, disabled, kept, busy, _ = self.names
        self.change(ending, taints=(TO_BE_DELETED,), unschedulable=True)
        self.change(candidate, taints=(CANDIDATE,))
        self.change(disabled, annotations=FrozenMap({SCALE_DOWN_DISABLED: "true"}))
        self.run_on(candidate, cpu="200m")
        self.run_on(kept, cpu="200m", annotations={SAFE_TO_EVICT: "false"})
        self.run_on(busy, cpu="2500m")

    def change(self, name: NodeName, **changed: object) -> None:
        """Somebody changes a node."""
        self.world.add_node(replace(self.node(name), **changed))  # type: ignore[arg-type] # by name

    def node(self, name: NodeName) -> Node:
        """A node that is there."""
        found = self.world.node(name)
        assert found is not None
        return found

    def run_on(
        self, name: NodeName | None, cpu: str, annotations: dict[str, str] | None = None
    ) -> str:
        """A pod of a ReplicaSet, on this node, or waiting; returns its uid."""
        self.pods += 1
        pod = make_pod(
            f"pod-{self.pods}", node=name, cpu=cpu, annotations=FrozenMap(annotations or {})
        )
        return self.world.add_pod(pod).uid

    def waiting(self) -> int:
        """Pods without a node."""
        return sum(pod.node_name is None for pod in self.world.pods())

    def calls(self, *operations: str) -> list[str]:
        """What was called on, by these operations."""
        return [call.subject for call in self.world.calls if call.operation in operations]

    @property
    def left(self) -> set[NodeName]:
        """Nodes that are still there."""
        return {node.name for node in self.world.nodes()}

    def in_balance(self) -> bool:
        """Whether the desired capacity is what the group holds: nothing comes or goes by itself."""
        record = self.world.fleets.records[self.group]
        return record.target == len(self.world.fleets.members(record))


@pytest.fixture
def cluster() -> Cluster:
    """As Cluster Autoscaler left it."""
    return Cluster()


def test_what_cluster_autoscaler_left_behind_is_respected(cluster: Cluster) -> None:
    """Nodes that it was told to leave alone would be ended, or pods that must not move evicted."""
    ending, candidate, disabled, kept, busy, empty = cluster.names
    kept_pods = {p.key for p in cluster.world.pods() if p.node_name in {kept, busy}}
    Process(cluster.world, SETTINGS).run_for(HOUR)
    assert cluster.left == {disabled, kept, busy}
    assert kept_pods <= {pod.key for pod in cluster.world.pods()}
    assert cluster.waiting() == 0
    ended = cluster.calls("terminate_in_group")
    assert len(set(ended)) == len(ended) == 3
    assert cluster.world.fleets.chosen_by_group == []
    assert (cluster.world.target(cluster.group), cluster.in_balance()) == (3, True)
    assert {ending, candidate, empty}.isdisjoint(cluster.left)


def test_its_taints_and_annotations_are_left_to_whoever_set_them(cluster: Cluster) -> None:
    """Taking them off would be somebody else's decision; the page says how."""
    held = cluster.names[2]
    cluster.change(held, taints=(CANDIDATE,))
    Process(cluster.world, SETTINGS).run_for(HOUR)
    node = cluster.node(held)
    assert node.taints == (CANDIDATE,)
    assert node.annotations[SCALE_DOWN_DISABLED] == "true"


def test_node_that_it_was_about_to_end_takes_no_pod_and_is_not_counted_on(
    cluster: Cluster,
) -> None:
    """A pod would be planned for a node that kube-scheduler does not give it."""
    for name in cluster.names[1:]:
        cluster.change(name, unschedulable=True)
    cluster.run_on(None, cpu="1500m")
    Process(cluster.world, SETTINGS).run_for(200)
    assert cluster.waiting() == 0
    assert len(cluster.calls("set_target_capacity")) == 1


def _is_ours(taint: Taint) -> bool:
    return taint.key in {DRAINING_TAINT, UNNEEDED_TAINT}


def clean_up(world: MemoryWorld) -> None:
    """The two commands of the page, about our taints and about the timer."""
    for node in world.nodes():
        annotations = {k: v for k, v in node.annotations.items() if k != UNNEEDED_SINCE}
        taints = tuple(taint for taint in node.taints if not _is_ours(taint))
        world.add_node(replace(node, taints=taints, annotations=FrozenMap(annotations)))


def test_cluster_that_is_given_back_amid_a_drain_is_whole_after_the_two_commands(
    cluster: Cluster,
) -> None:
    """Nodes would take no pods and nobody know why; or a group would go on shrinking."""
    process = Process(cluster.world, SETTINGS)
    drained: list[Node] = []
    while not drained and process.now < 3 * HOUR:
        process.run_for(5)
        drained = [
            node
            for node in cluster.world.nodes()
            if any(taint.key == DRAINING_TAINT for taint in node.taints)
        ]
    assert drained
    assert cluster.in_balance()
    made = cluster.world.log.made
    clean_up(cluster.world)
    cluster.world.advance(HOUR)
    assert cluster.world.log.made == made
    assert cluster.in_balance()
    left = {taint.key for node in cluster.world.nodes() for taint in node.taints}
    assert left <= {TO_BE_DELETED.key, CANDIDATE.key}
    free = [node for node in cluster.world.nodes() if not (node.unschedulable or node.taints)]
    for _ in free:
        cluster.run_on(None, cpu="500m")
    cluster.world.advance(60)
    assert cluster.waiting() == 0


def test_timers_start_from_zero_when_the_cluster_is_taken_over_again(cluster: Cluster) -> None:
    """A node at work since would be ended at once for a timer of the first time."""
    empty = cluster.names[5]
    Process(cluster.world, SETTINGS).run_for(60)
    assert UNNEEDED_SINCE in cluster.node(empty).annotations
    clean_up(cluster.world)
    cluster.world.advance(24 * HOUR)
    again = Process(cluster.world, SETTINGS)
    again.run_for(110)
    assert empty in cluster.left
    again.run_for(HOUR)
    assert empty not in cluster.left
    assert cluster.world.fleets.chosen_by_group == []
    assert cluster.in_balance()
