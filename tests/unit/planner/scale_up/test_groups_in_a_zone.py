"""Pods that must share a zone, or spread over zones, on fleets whose zone EC2 chooses."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from reconciler.adapters.memory import Delays, FleetShape, MemoryCloud, MemoryCluster, MemoryWorld
from reconciler.executor.executor import LiveExecutor
from reconciler.executor.ports import Ports
from reconciler.loops.lease.saved_state import annotations_to_save, with_raises
from reconciler.model.cluster import Node, Owner, Pod, PodSpec
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import PodKey
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.observer.observe import observe
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    HOME,
    HOSTNAME,
    ZONE,
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
    make_spec,
    near,
    spread,
)
from tests.unit.planner.placed import places, raises

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
SMALL = make_fleet_settings("small", cpu=5, price="0.10", zones=ZONES)
MEDIUM = make_fleet_settings("medium", cpu=9, price="0.20", zones=ZONES)
TOGETHER = (near(ZONE, app="a"),)


def group(count: int, key: str = ZONE) -> tuple[Pod, ...]:
    """Pods of 2 CPU that must be near each other."""
    return make_pods(count, cpu="2", labels={"app": "a"}, pod_affinity=(near(key, app="a"),))


def planned(*objects: Pod, fleets: tuple[FleetSettings, ...] = (SMALL, MEDIUM)) -> Plan:
    """The plan on an empty cluster."""
    cloud = make_cloud(*(make_fleet(fleet) for fleet in fleets))
    return plan(make_snapshot(*objects, cloud=cloud), make_settings(*fleets))


@pytest.mark.parametrize("key", [ZONE, HOSTNAME])
def test_group_gets_one_node_that_takes_all_of_it(key: str) -> None:
    """The cheapest node would take two of three, and the third wait in whatever zone that is."""
    made = planned(*group(3, key))
    assert raises(made) == {("primary-medium", HOME): 1}
    assert made.unplaceable == ()


def test_group_that_fits_a_cheaper_node_gets_that_one() -> None:
    """Room that nobody needs would be paid for."""
    assert raises(planned(*group(2))) == {("primary-small", HOME): 1}


def test_group_that_no_node_takes_begins_with_the_largest() -> None:
    """More pods than need be would wait until the zone of the first node is known."""
    made = planned(*group(6))
    assert raises(made) == {("primary-medium", HOME): 1}
    assert {r.code for u in made.unplaceable for r in u.reasons} == {"zone"}
    assert len(made.unplaceable) == 2


def test_group_prefers_a_fleet_in_one_zone_where_several_nodes_are_needed() -> None:
    """Half of it would wait for a lucky zone although a fleet has one that is certain."""
    fixed = make_fleet_settings("small", cpu=5, price="0.11", zone="us-west-2b")
    made = planned(*group(6), fleets=(SMALL, MEDIUM, fixed))
    assert raises(made) == {("primary-small-us-west-2b", HOME): 3}
    assert made.unplaceable == ()


@pytest.mark.parametrize(("most", "taken"), [((1, 3, 3), (1, 6)), ((1, 2, 1), (1, 4))])
def test_group_goes_to_the_zone_that_has_room_for_the_most_of_it(
    most: tuple[int, ...], taken: tuple[int, int]
) -> None:
    """It would begin in the first zone, and wait there for room that another zone has."""
    fleets = tuple(
        make_fleet_settings("small", cpu=5, price=price, zone=zone, max_capacity=nodes)
        for nodes, zone, price in zip(most, ZONES, ("0.10", "0.11", "0.12"), strict=True)
    )
    made = planned(*group(6), fleets=fleets)
    chosen, pods = taken
    assert raises(made) == {(f"primary-small-{ZONES[chosen]}", HOME): pods // 2}
    assert len(made.placements) == pods


BOTH = {"pod_affinity": TOGETHER, "topology_spread": (spread(ZONE, app="a"),)}
"""Near its own app by zone, and spread over zones."""


@pytest.mark.parametrize(
    ("others", "rules", "code"),
    [
        # Only zone b has a neighbour, and one more there exceeds the skew against the others.
        ((ZONES[0], ZONES[2]), BOTH, "topology-spread"),
        ((ZONES[2],), BOTH, "topology-spread"),
        # Without nodes in other zones there is nothing to exceed.
        ((), BOTH, ""),
        ((ZONES[0],), {"pod_affinity": TOGETHER}, ""),
        ((ZONES[0],), {"topology_spread": BOTH["topology_spread"]}, ""),
        # Each zone is refused by one of two spreads.
        (
            ZONES,
            {"topology_spread": (spread(ZONE, app="a"), spread(ZONE, app="z"))},
            "topology-spread",
        ),
        # The only neighbour is in a zone where the fleet launches nothing.
        (("us-west-2d",), {"pod_affinity": (near(ZONE, app="z"),)}, "pod-affinity"),
    ],
)
def test_node_is_bought_in_hope_only_where_one_zone_keeps_all_rules(
    others: tuple[str, ...], rules: dict[str, Any], code: str
) -> None:
    """Six nodes would be bought, one after the other, for a pod that no zone can take."""
    objects: list[Node | Pod] = [make_node("b", SMALL, zone=ZONES[1])]
    objects += make_pods(2, "there", node="b", cpu="2", labels={"app": "a"})
    for number, zone in enumerate(others):
        objects.append(make_node(f"n{number}", SMALL, zone=zone))
        if zone != ZONES[1]:
            here = f"n{number}"
            objects += make_pods(2, f"z{number}", node=here, cpu="2", labels={"app": "z"})
    waiting = make_pod("waits", cpu="4", labels={"app": "a"}, **rules)
    cloud = make_cloud(make_fleet(SMALL, 1 + len(others)))
    made = plan(make_snapshot(waiting, *objects, cloud=cloud), make_settings(SMALL))
    assert [r.code for u in made.unplaceable for r in u.reasons] == [code] * bool(code)
    assert len(raises(made)) == (not code)


def chain(*names: str) -> list[Pod]:
    """Pods each of which must share a node with the next one."""
    following = [*names[1:], ""]
    return [
        make_pod(
            name,
            cpu=f"{500 + 10 * at}m",
            labels={"app": name},
            pod_affinity=(near(HOSTNAME, app=after),) if after else (),
        )
        for at, (name, after) in enumerate(zip(names, following, strict=True))
    ]


@pytest.mark.parametrize("names", [("ui", "cache", "web", "db"), ("db", "web", "cache", "ui")])
def test_chain_of_pods_that_need_each_other_is_placed_by_one_plan(names: tuple[str, ...]) -> None:
    """Each plan would place one link, and the last pod wait for all of them."""
    pods = chain(*names)
    node = make_node("n", SMALL)
    cloud = make_cloud(make_fleet(SMALL, 1))
    made = plan(make_snapshot(*pods, node, cloud=cloud), make_settings(SMALL))
    assert places(made) == dict.fromkeys(names, ("n",))
    assert places(planned(*pods, fleets=(SMALL,))) == dict.fromkeys(
        names, ("primary-small", None, 0)
    )


def test_long_chain_is_followed_for_some_links_in_each_plan() -> None:
    """One tenant's chain of thousands would take the time of all others."""
    names = [f"p{n:02}" for n in range(40)]
    pods = chain(*names)
    node = make_node("n", make_fleet_settings(cpu=64))
    made = plan(make_snapshot(*pods, node), make_settings(make_fleet_settings(cpu=64)))
    assert 16 <= len(made.placements) <= 40


class Life:
    """Two fleets whose nodes come up in the zones given, one after the other."""

    def __init__(self, zones: tuple[str, ...]) -> None:
        delays = Delays(modify=0, launch=0, join=30, terminate=10, node_gone=10, pod_stop=5)
        self.world = MemoryWorld(cluster="c", delays=delays)
        self.cluster, self.cloud = MemoryCluster(self.world), MemoryCloud(self.world)
        self.zones = list(zones)
        for fleet in (SMALL, MEDIUM):
            shape = FleetShape(
                name=fleet.name,
                region=HOME,
                labels=fleet.labels,
                allocatable=fleet.options[0].resources,
                instance_type=fleet.options[0].instance_type,
                pools=tuple((fleet.options[0].instance_type, zone) for zone in ZONES),
            )
            self.world.add_fleet(shape, 0)
        self.settings = make_settings(SMALL, MEDIUM)
        ports = Ports(cluster=self.cluster, clouds={"ec2-fleet": self.cloud})
        self.executor = LiveExecutor(ports, self.world.clock.monotonic_seconds)
        self.bought = 0

    def pods(self, count: int, spec: PodSpec) -> None:
        """Pending pods of one ReplicaSet."""
        for number in range(count):
            key = PodKey(namespace="ns", name=f"p{number}", uid=f"u{number}")
            owner = Owner(kind="ReplicaSet", name="p")
            labels = FrozenMap({"app": "a"})
            self.world.add_pod(Pod(key=key, spec=spec, owner=owner, labels=labels))

    def run(self, minutes: float) -> None:
        """Cycles until no pod waits, or for some minutes; nodes come up in the zones in turn."""
        for _ in range(int(minutes * 6)):
            if not self.waiting:
                return
            wanted = self.zones[min(self.bought, len(self.zones) - 1)]
            for fleet, zone in product((SMALL, MEDIUM), ZONES):
                code = None if zone == wanted else "InsufficientInstanceCapacity"
                self.world.refuse_pool(HOME, fleet.options[0].instance_type, zone, code)
            snapshot = observe(self.cluster, [self.cloud], [HOME], self.world.clock)
            made = plan(snapshot, self.settings)
            outcomes: list[Outcome] = []
            self.executor.execute(made.actions, outcomes.append)
            kept = annotations_to_save(snapshot, with_raises(made, outcomes), outcomes)
            if kept:
                self.cluster.remember(kept)
            self.bought += sum(new.nodes for new in made.new_nodes)
            self.world.advance(10)

    @property
    def waiting(self) -> int:
        """Pods without a node."""
        return sum(pod.node_name is None for pod in self.world.pods())


A, B, C = ZONES


@pytest.mark.parametrize("zones", [(A, A), (A, B, A), (B, A, C, B), (C, A, A, B, A, C)])
def test_group_too_large_for_a_node_is_complete_when_the_zone_has_come(
    zones: tuple[str, ...],
) -> None:
    """Four of six pods would wait without an end although EC2 gives their zone now and then."""
    life = Life(zones)
    life.pods(6, make_spec("2", "64Mi", pod_affinity=TOGETHER))
    life.run(30)
    assert life.waiting == 0
    assert life.bought == len(zones)


def test_zone_that_never_comes_ends_the_purchases() -> None:
    """Nodes would be bought in wrong zones without an end."""
    life = Life((A, *[B] * 30))
    life.pods(6, make_spec("2", "64Mi", pod_affinity=TOGETHER))
    life.run(20)
    assert life.waiting > 0
    assert life.bought <= 1 + 6


@pytest.mark.parametrize("zones", [(A, B, C), (A, A, B, C), (A, A, A, B)])
def test_spread_over_zones_is_served_whatever_the_zones(zones: tuple[str, ...]) -> None:
    """Pods beyond the skew would wait although another zone is to be had."""
    life = Life(zones)
    life.pods(9, make_spec("2", "64Mi", topology_spread=(spread(ZONE, app="a"),)))
    life.run(30)
    assert life.waiting == 0


TOGETHER_ON_A_NODE = {"labels": {"app": "g"}, "pod_affinity": (near(HOSTNAME, app="g"),)}
"""Pods that must share one node."""
LITTLE = make_fleet_settings("little", cpu=2, price="0.12")
LARGE = make_fleet_settings("large", cpu=16, price="0.88")


def test_group_that_shares_a_node_does_not_begin_in_room_for_one() -> None:
    """The first pod took what another purchase had left, and no node could take the others."""
    pods = make_pods(4, "g", cpu="1500m", **TOGETHER_ON_A_NODE)
    made = planned(*pods, make_pod("other", cpu="100m"), fleets=(LITTLE, LARGE))
    assert made.unplaceable == ()
    assert len({(p.fleet, p.new_node) for p in made.placements if p.pod.name != "other"}) == 1


def test_group_that_shares_a_node_uses_bought_room_for_all_of_it() -> None:
    """A node of its own would be paid for."""
    pods = make_pods(4, "g", cpu="1500m", **TOGETHER_ON_A_NODE)
    made = planned(*pods, make_pod("other", cpu="8"), fleets=(LITTLE, LARGE))
    assert raises(made) == {("primary-large", HOME): 1}
    assert made.unplaceable == ()


@pytest.mark.parametrize("most", [None, 0])
def test_draining_node_is_taken_back_only_for_as_much_of_a_group_as_a_new_node(
    most: int | None,
) -> None:
    """It was taken back for one pod, and the others waited for room on that node for ever."""
    large = replace(LARGE, max_capacity=most)
    draining = make_node("n0", LITTLE, draining=True)
    load = make_pod("b", node="n0", cpu="100m", created_at=ago(3000), started_at=ago(3000))
    pods = make_pods(4, "g", cpu="1500m", **TOGETHER_ON_A_NODE)
    made = plan(
        make_snapshot(*pods, draining, load),
        make_settings(replace(LITTLE, max_capacity=most and 1), large),
    )
    nodes = {p.node or p.fleet for p in made.placements if p.pod.name.startswith("g")}
    assert nodes == {"n0" if most == 0 else "primary-large"}
    assert len(made.unplaceable) == (3 if most == 0 else 0)


def test_group_that_no_money_is_left_for_uses_the_room_there_is() -> None:
    """A node that could not be bought kept the pods from one that could be taken back."""
    fleet = make_fleet_settings(cpu=8, memory="32Gi", over_subscription=0.0, price="0.10")
    node = make_node("n", fleet, draining=True)
    running = make_pod("running", node="n", cpu="4", created_at=ago(3_000), started_at=ago(3_000))
    group = make_pods(6, "g", cpu="1", labels={"app": "g"}, pod_affinity=(near(HOSTNAME, app="g"),))
    cloud = make_cloud_of((node,), make_fleet(fleet, 1))
    settings = make_settings(fleet, usd_per_hour_max=0.12)
    made = plan(make_snapshot(*group, node, running, cloud=cloud), settings)
    assert {placement.node for placement in made.placements} == {"n"}
    assert len(made.unplaceable) == 2
