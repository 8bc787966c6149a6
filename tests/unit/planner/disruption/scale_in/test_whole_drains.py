"""Drains from the first timer to the last termination, carried out in the in-memory world."""

from dataclasses import replace
from typing import Any

from reconciler.adapters.memory import (
    BudgetShape,
    Delays,
    FleetShape,
    MemoryCloud,
    MemoryCluster,
    MemoryWorld,
)
from reconciler.executor.executor import LiveExecutor
from reconciler.executor.ports import Ports
from reconciler.model.cluster import Owner, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import PodKey
from reconciler.model.outcome import Outcome
from reconciler.observer.observe import observe
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import HOME, amounts, make_settings, make_spec, selecting
from tests.unit.planner.disruption.scale_in.scene import make_scene_fleet

FLEET = make_scene_fleet()


class Life:
    """A fleet of 4-CPU nodes under the planner and the executor."""

    def __init__(self, target: int, fleet: FleetSettings = FLEET, **settings: Any) -> None:
        delays = Delays(modify=0, launch=20, join=20, terminate=10, node_gone=10, pod_stop=5)
        self.world = MemoryWorld(cluster="c", delays=delays)
        self.cluster, self.cloud = MemoryCluster(self.world), MemoryCloud(self.world)
        shape = FleetShape(
            name=fleet.name,
            region=HOME,
            labels=fleet.labels,
            allocatable=amounts(cpu=4, memory="16Gi", pods=58),
        )
        self.fleet = self.world.add_fleet(shape, target)
        self.settings = make_settings(fleet, **settings)
        ports = Ports(cluster=self.cluster, clouds={"ec2-fleet": self.cloud})
        self.executor = LiveExecutor(ports, self.world.clock.monotonic_seconds)
        self.world.advance(60)
        self.outcomes: list[Outcome] = []

    def pod(self, name: str, cpu: str, node: int, **changed: Any) -> PodKey:
        """A running pod of a ReplicaSet."""
        known = self.world.nodes()[node]
        return self.world.add_pod(
            Pod(
                key=PodKey(namespace="ns", name=name),
                spec=make_spec(cpu, "64Mi"),
                owner=changed.pop("owner", Owner(kind="ReplicaSet", name=name)),
                node_name=known.name,
                phase="Running",
                ready=True,
                **changed,
            )
        )

    def run(self, minutes: float, step_seconds: int = 20) -> None:
        """Cycles for some minutes."""
        for _ in range(int(minutes * 60 / step_seconds)):
            snapshot = observe(self.cluster, [self.cloud], [HOME], self.world.clock)
            made = plan(snapshot, self.settings)
            self.executor.execute(made.actions, self.outcomes.append)
            self.world.advance(step_seconds)

    def evictions(self) -> list[str]:
        """Pods that were asked to go."""
        return [c.subject for c in self.world.calls if c.operation == "evict_pod"]


def test_under_used_node_leaves_and_its_pod_runs_elsewhere() -> None:
    """The parts work, but the scale-in as a whole would not end."""
    life = Life(2)
    life.pod("small", "500m", 0)
    life.pod("large", "2500m", 1)
    life.run(15)
    assert len(life.world.nodes()) == 1
    assert life.world.target(life.fleet) == 1
    assert {p.node_name for p in life.world.pods()} == {life.world.nodes()[0].name}
    assert len(life.evictions()) == 1
    assert all(o.settled for o in life.outcomes)


def test_budget_of_one_is_waited_for_pod_by_pod() -> None:
    """A node with two replicas of a strict budget would be drained half and given back."""
    life = Life(2)
    labels = FrozenMap({"app": "web"})
    life.pod("small", "500m", 0, labels=labels)
    life.pod("large", "2500m", 1, labels=labels)
    life.world.add_budget(
        BudgetShape(namespace="ns", name="web", selector=selecting(app="web"), min_available=1)
    )
    life.run(15)
    assert len(life.world.nodes()) == 1


def test_node_with_two_pods_of_a_budget_that_allows_one_leaves() -> None:
    """Two replicas on one node with maxUnavailable 1 would keep it however little it is used."""
    life = Life(2)
    labels = FrozenMap({"app": "web"})
    first = life.pod("first", "200m", 0, labels=labels)
    life.pod("second", "200m", 0, labels=labels)
    life.pod("large", "2500m", 1)
    life.world.add_budget(
        BudgetShape(namespace="ns", name="web", selector=selecting(app="web"), min_available=1)
    )
    life.run(20)
    assert len(life.world.nodes()) == 1
    assert len(life.evictions()) == 2
    assert life.evictions()[0] == str(first)
    assert all(o.settled for o in life.outcomes)


def test_running_job_keeps_its_node_for_as_long_as_it_runs() -> None:
    """Work in flight would be killed to save a node."""
    life = Life(2)
    job = life.pod("job", "500m", 0, owner=Owner(kind="Job", name="job"))
    life.pod("large", "2500m", 1)
    life.run(30)
    assert len(life.world.nodes()) == 2
    life.world.finish_pod(job)
    life.run(13)
    assert len(life.world.nodes()) == 1
    assert life.evictions() == []


def test_demand_during_a_drain_takes_the_node_back_and_lets_it_rest() -> None:
    """One node would be launched while another is ended, and both again a minute later."""
    life = Life(2)
    life.pod("small", "500m", 0)
    life.pod("large", "2500m", 1)
    life.run(10.5)
    assert life.evictions()
    drained = life.world.nodes()[0].name
    for number in range(2):
        spec = make_spec("2", "64Mi")
        key = PodKey(namespace="ns", name=f"new-{number}")
        life.world.add_pod(
            Pod(key=key, spec=spec, owner=Owner(kind="ReplicaSet", name=f"new-{number}"))
        )
    life.run(5)
    assert all(p.node_name for p in life.world.pods())
    assert len(life.world.nodes()) == 2
    assert drained in {n.name for n in life.world.nodes()} or life.world.target(life.fleet) == 2


def test_instances_that_never_join_are_replaced_until_the_fleet_rests() -> None:
    """A bad image would be paid for, again and again."""
    life = Life(1, replace(FLEET, min_capacity=2))
    life.pod("full", "3500m", 0)
    life.world.never_join(life.fleet)
    life.run(60)
    ended = [o for o in life.outcomes if o.action.policy == "stuck-instance"]
    assert 2 <= len(ended) <= 5
    assert life.world.target(life.fleet) == 2


def test_node_that_stops_answering_is_replaced_with_its_pods_on_it() -> None:
    """Its pods cannot be evicted: a last check for pods would keep the dead node for ever."""
    life = Life(2)
    life.pod("one", "2500m", 0)
    life.pod("two", "2500m", 1)
    silent = life.world.nodes()[0]
    now = life.world.clock.now()
    life.world.add_node(replace(silent, ready=False, ready_changed_at=now, created_at=now))
    life.run(20)
    assert silent.name not in {n.name for n in life.world.nodes()}
    assert len(life.world.nodes()) == life.world.target(life.fleet) == 2
    assert all(p.node_name for p in life.world.pods())
