"""Scaling up ends: in the plan by a guard, over the cycles by quarantine."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.adapters.memory import Delays, FleetShape, MemoryCloud, MemoryCluster, MemoryWorld
from reconciler.executor.executor import LiveExecutor
from reconciler.executor.ports import Ports
from reconciler.loops.lease.saved_state import annotations_to_save
from reconciler.model.actions import DRAINING_TAINT
from reconciler.model.cluster import Taint
from reconciler.model.errors import InvariantViolated
from reconciler.model.ids import FleetId, InstanceId
from reconciler.model.plan import Plan
from reconciler.observer.observe import observe
from reconciler.planner.planner import decide, plan
from reconciler.planner.settings import FleetSettings
from reconciler.planner.target_check import check_target
from tests.builders import (
    HOME,
    amounts,
    capacity_error,
    idle,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pods,
    make_settings,
    make_snapshot,
)

FLEET = make_fleet_settings(labels={"team": "data"}, scale_in=idle(600))


def test_target_beyond_what_the_plan_names_is_refused() -> None:
    """A bug in arithmetic would be paid for by the hour."""
    snapshot = make_snapshot(*make_pods(3, cpu="3"), cloud=make_cloud(make_fleet(FLEET)))
    builder = decide(snapshot, make_settings(FLEET))
    (status,) = builder.view.inventory.fleets
    check_target(builder, status)
    more = builder.targets[status.key] + 1
    builder.raise_target(status.key, more, "scale-up", "one more")
    with pytest.raises(InvariantViolated, match="3 new nodes"):
        check_target(builder, status)


def test_minimum_of_a_failing_fleet_with_a_node_on_its_way_out_is_no_runaway() -> None:
    """The guard would end the process on a bad day, when it is needed most."""
    fleet = replace(FLEET, min_capacity=2)
    leaving = Taint(key=DRAINING_TAINT, value="interruption", effect="NoSchedule")
    nodes = [make_node("a", fleet), make_node("b", fleet, taints=(leaving,))]
    live = make_fleet(fleet, 2, launch_errors=(capacity_error(),))
    instances = [make_instance(node, live) for node in nodes]
    made = plan(
        make_snapshot(*nodes, cloud=make_cloud(live, instances=instances)), make_settings(fleet)
    )
    assert made.fleets[0].target == 3


class Life:
    """One fleet whose real nodes may differ from plan, under planner, executor and Lease."""

    def __init__(self, *fleets: FleetSettings, **shape: Any) -> None:
        delays = Delays(modify=0, launch=20, join=20, terminate=10, node_gone=10, pod_stop=5)
        self.world = MemoryWorld(cluster="c", delays=delays)
        self.cluster, self.cloud = MemoryCluster(self.world), MemoryCloud(self.world)
        self.settings = make_settings(*fleets)
        self.ids: dict[str, FleetId] = {}
        for fleet in fleets:
            made = {"labels": fleet.labels, "allocatable": amounts(cpu=4, memory="16Gi", pods=58)}
            self.ids[fleet.name] = self.world.add_fleet(
                FleetShape(name=fleet.name, region=HOME, **{**made, **shape})
            )
        self.plans: list[Plan] = []
        self.instances: set[InstanceId] = set()

    def run(self, minutes: float, step_seconds: int = 20) -> None:
        """Cycles for some minutes, the Lease written as the loop does."""
        ports = Ports(cluster=self.cluster, clouds={"ec2-fleet": self.cloud})
        executor = LiveExecutor(ports, self.world.clock.monotonic_seconds)
        for _ in range(int(minutes * 60 / step_seconds)):
            snapshot = observe(self.cluster, [self.cloud], [HOME], self.world.clock)
            made = plan(snapshot, self.settings)
            outcomes = executor.execute(made.actions, lambda _: None)
            kept = annotations_to_save(snapshot, made, outcomes)
            if kept:
                self.cluster.remember(kept)
            self.plans.append(made)
            self.instances |= set(self.world.fleets.instances)
            self.world.advance(step_seconds)

    def launched(self) -> int:
        """Instances that were ever launched."""
        return len(self.instances)

    def waiting(self) -> int:
        """Pods without a node."""
        return sum(pod.node_name is None for pod in self.world.pods())


def test_image_without_the_label_costs_two_tries_and_no_more() -> None:
    """Pods that never bind would buy nodes until somebody looks at the bill."""
    labels = {k: v for k, v in FLEET.labels.items() if k != "team"}
    life = Life(FLEET, labels=type(FLEET.labels)(labels))
    for pod in make_pods(3, cpu="3", node_selector={"team": "data"}, sector="primary"):
        life.world.add_pod(pod)
    life.run(60)
    assert life.launched() == 6
    assert life.world.target(life.ids[FLEET.name]) == 0
    assert {r.code for u in life.plans[-1].unplaceable for r in u.reasons} == {"no-progress"}
    assert life.waiting() == 3


def test_fixed_image_serves_quarantined_pods() -> None:
    """A quarantine that nobody can lift is an outage."""
    labels = {k: v for k, v in FLEET.labels.items() if k != "team"}
    life = Life(FLEET, labels=type(FLEET.labels)(labels))
    for pod in make_pods(1, cpu="3", node_selector={"team": "data"}, sector="primary"):
        life.world.add_pod(pod)
    life.run(20)
    assert life.plans[-1].quarantined == 1
    record = life.world.fleets.records[life.ids[FLEET.name]]
    record.shape, record.version = replace(record.shape, labels=FLEET.labels), "2"
    life.run(5)
    assert life.waiting() == 0
    assert life.plans[-1].demands == ()


def test_capacity_that_comes_back_is_preferred_and_nothing_is_moved_back() -> None:
    """Pods would be restarted to save cents, or stay on dear nodes for all time."""
    cheap = make_fleet_settings("small", price="0.10", scale_in=idle(600))
    dear = make_fleet_settings("large", price="0.50", scale_in=idle(600))
    life = Life(cheap, dear)
    life.world.refuse_launches(life.ids[cheap.name], "InsufficientInstanceCapacity")
    for pod in make_pods(2, "early", cpu="3", sector="primary"):
        life.world.add_pod(pod)
    life.run(5)
    assert life.waiting() == 0
    early = {p.key: p.node_name for p in life.world.pods()}
    assert life.world.target(life.ids[dear.name]) == 2
    life.world.refuse_launches(life.ids[cheap.name], None)
    life.run(40)
    for pod in make_pods(1, "late", cpu="3", sector="primary"):
        life.world.add_pod(pod)
    life.run(5)
    assert life.waiting() == 0
    assert life.world.target(life.ids[dear.name]) == 2
    assert life.world.target(life.ids[cheap.name]) == 1
    assert early.items() <= {p.key: p.node_name for p in life.world.pods()}.items()
    assert [c for c in life.world.calls if c.operation == "evict_pod"] == []


@pytest.mark.parametrize("over_subscription", [0.0, 0.3, 1.0])
def test_steady_demand_settles_and_never_swings(over_subscription: float) -> None:
    """What over-subscription buys, scale-in would take away, and so on for ever."""
    fleet = replace(FLEET, over_subscription=over_subscription, scale_in=idle(60))
    life = Life(fleet)
    for pod in make_pods(11, cpu="700m", sector="primary"):
        life.world.add_pod(pod)
    life.run(30)
    targets = [p.fleets[0].target for p in life.plans]
    turns = sum(
        (b - a) * (c - b) < 0 for a, b, c in zip(targets, targets[1:], targets[2:], strict=False)
    )
    assert life.waiting() == 0
    assert turns == 0
    risen = targets.index(max(targets))
    assert targets[risen:] == sorted(targets[risen:], reverse=True)
    before = life.launched()
    life.run(30)
    assert life.launched() == before


def test_nodes_of_a_deleted_fleet_leave_when_their_work_is_done_and_no_sooner() -> None:
    """Terraform replaces a fleet: its instances are billed for ever, or killed at work."""
    life = Life(FLEET)
    work = [life.world.add_pod(pod) for pod in make_pods(2, cpu="3", owner="Job", sector="primary")]
    life.run(3)
    old = life.ids[FLEET.name]
    assert [life.waiting(), life.world.target(old)] == [0, 2]
    shape = FleetShape(
        name=FLEET.name,
        region=HOME,
        labels=FLEET.labels,
        allocatable=amounts(cpu=4, memory="16Gi", pods=58),
    )
    new = life.world.add_fleet(shape)
    life.world.delete_fleet(old)
    life.run(60)
    assert len(life.world.nodes()) == 2
    assert life.plans[-1].orphans == 2
    assert life.world.target(new) == 0
    life.world.finish_pod(work[0])
    life.run(40)
    assert len(life.world.nodes()) == 1
    life.world.finish_pod(work[1])
    life.run(40)
    assert life.world.nodes() == []
    assert life.plans[-1].orphans == 0
    assert life.launched() == 2
