"""Headroom: room that is kept free for pods to come (docs/scale-up.md)."""

from dataclasses import replace
from decimal import Decimal
from random import Random  # noqa: TID251 - seeded
from typing import Any

import pytest

from reconciler.model.actions import (
    UNNEEDED_TAINT,
    SetCapacity,
    TaintNode,
    UntaintNode,
    begins_drain,
)
from reconciler.model.cluster import Pod, Taint
from reconciler.model.ids import Region
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, Headroom
from tests.builders import (
    HOME,
    HOSTNAME,
    ago,
    capacity_error,
    make_cloud,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    spread,
)
from tests.properties.reached import asked_for
from tests.unit.planner.disruption.interrupted_nodes import noticed
from tests.unit.planner.disruption.scale_in.scene import full, kept, on, unneeded
from tests.unit.planner.disruption.scale_in.scene import planned as on_cluster
from tests.unit.planner.placed import places, raises

GIB = 2**30
FLEET = make_fleet_settings(cpu=4)
LARGE = make_fleet_settings("large", cpu=16, memory="64Gi", price="0.42")
FOUR_CPU = Headroom(sector="primary", cpu_milli=4000, memory_bytes=8 * GIB)


def planned(*objects: Any, headroom: Headroom = FOUR_CPU, target: int = 0, **changed: Any) -> Plan:
    """A plan for one small fleet, or those given."""
    fleets = changed.pop("fleets", (FLEET,))
    clouds = [make_fleet(fleets[0], target), *(make_fleet(f, 0) for f in fleets[1:])]
    settings = make_settings(*fleets, headroom=(headroom,), **changed)
    return plan(make_snapshot(*objects, cloud=make_cloud(*clouds)), settings)


def missing(made: Plan) -> list[int]:
    """Missing pieces by item."""
    return [headroom_plan.missing for headroom_plan in made.headroom]


def begun(made: Plan) -> list[str]:
    """Nodes whose drain begins."""
    return [a.node for a in made.actions if isinstance(a, TaintNode) and begins_drain(a)]


def test_node_is_asked_for_while_nothing_waits() -> None:
    """The first pod would wait for a launch, which is what headroom is paid for."""
    made = planned()
    assert raises(made) == {("primary-small", HOME): 1}
    (raised,) = [a for a in made.actions if isinstance(a, SetCapacity)]
    assert (raised.policy, raised.because) == (
        "scale-up",
        "headroom of sector primary (4 CPU and 8Gi): 1 more node needs to come",
    )
    assert places(made) == {}
    assert made.unplaceable == ()


def test_room_that_is_there_or_coming_is_enough() -> None:
    """A node would be bought in every cycle."""
    assert raises(planned(make_node("n", FLEET), target=1)) == {}
    assert raises(planned(target=1)) == {}


def test_pods_that_wait_take_the_room_and_it_is_bought_anew() -> None:
    """Room that is never used, or never there again, is none."""
    made = planned(make_node("n", FLEET), make_pod(cpu=4), target=1)
    assert places(made) == {"pod": ("n",)}
    assert raises(made) == {("primary-small", HOME): 2}


def test_demand_and_headroom_say_each_what_they_raise() -> None:
    """Whoever reads the plan looks for the pods that asked for so many nodes."""
    made = planned(*make_pods(2, cpu=4))
    (raised,) = [a for a in made.actions if isinstance(a, SetCapacity)]
    assert raised.to_capacity == 3
    assert raised.because == (
        "2 pending pods need 2 more nodes; headroom of sector primary (4 CPU and 8Gi): 1 more node "
        "needs to come"
    )


def test_idle_node_that_is_headroom_stays_and_one_beyond_it_goes() -> None:
    """It would be ended, bought again, ended again; and room for one must not keep two."""
    settings = make_settings(FLEET, headroom=(FOUR_CPU,))
    assert begun(on_cluster(settings, unneeded("n", FLEET))) == []
    assert len(begun(on_cluster(settings, unneeded("a", FLEET), unneeded("b", FLEET)))) == 1
    assert begun(on_cluster(make_settings(FLEET), unneeded("n", FLEET))) == ["n"]


def test_no_pod_is_moved_into_headroom() -> None:
    """The room would be gone with the next consolidation, and bought again."""
    objects = (unneeded("a", FLEET), full("a"), unneeded("b", FLEET), on("b", cpu="1"))
    piece = Headroom(sector="primary", cpu_milli=1000)
    assert begun(on_cluster(make_settings(FLEET), *objects)) == ["b"]
    assert begun(on_cluster(make_settings(FLEET, headroom=(piece,)), *objects)) == []


@pytest.mark.parametrize(
    ("headroom", "pieces"),
    [
        (Headroom(sector="primary", cpu_milli=16_000), 1),
        (Headroom(sector="primary", cpu_milli=40_000, memory_bytes=GIB), 3),
        (Headroom(sector="primary", nodes=3), 3),
    ],
)
def test_it_is_kept_in_the_fewest_pieces_that_nodes_hold(headroom: Headroom, pieces: int) -> None:
    """A pod of 16 CPU would not find 16 free CPU on four nodes."""
    made = planned(headroom=headroom, fleets=(FLEET, LARGE))
    assert [headroom_plan.pieces for headroom_plan in made.headroom] == [pieces]
    assert missing(made) == [0]


def test_nodes_are_those_of_the_cheapest_fleet() -> None:
    """The config says how many, so the cheapest ones."""
    made = planned(headroom=Headroom(sector="primary", nodes=2), fleets=(FLEET, LARGE))
    assert raises(made) == {("primary-small", HOME): 2}


def test_percentage_is_of_what_the_sectors_pods_ask_for() -> None:
    """It grows and shrinks with the sector, whatever the size of its nodes."""
    running = [make_pod(f"p{i}", node=f"n{i}", cpu=4) for i in range(4)]
    nodes = [make_node(f"n{i}", FLEET) for i in range(4)]
    waiting = make_pods(4, cpu=4)
    half = Headroom(sector="primary", percent=50)
    made = planned(*running, *nodes, *waiting, headroom=half, target=4)
    assert raises(made) == {("primary-small", HOME): 12}
    assert raises(planned(headroom=half)) == {}


def test_what_cannot_be_bought_is_reported_and_refuses_no_pod() -> None:
    """Headroom comes after demand: it must not take a pod's place or its money."""
    fleet = make_fleet_settings(cpu=4, max_capacity=2)
    made = planned(*make_pods(2, cpu=4), fleets=(fleet,))
    assert raises(made) == {("primary-small", HOME): 2}
    (found,) = made.headroom
    assert (found.missing, found.because) == (1, "every fleet of the sector is at its max_capacity")
    group = make_fleet_settings(cpu=4, provider="asg", auto_scaling_group="workers")
    live = replace(make_fleet(group, id="workers"), name="workers", max_size=0)
    settings = make_settings(group, headroom=(Headroom(sector="primary", nodes=1),))
    (found,) = plan(make_snapshot(cloud=make_cloud(live)), settings).headroom
    assert found.because == "primary-small is at its group's maximum size of 0"
    dear = planned(make_pod(cpu=4), usd_per_hour_max=Decimal("0.15"))
    assert raises(dear) == {("primary-small", HOME): 1}
    assert missing(dear) == [1]


def test_it_stays_in_its_sector_and_tolerates_its_taints() -> None:
    """Free room of another sector is none for its pods."""
    tainted = make_fleet_settings(
        "small", "batch", cpu=4, taints=FLEET.taints, labels={"team": "data"}
    )
    headroom = Headroom(sector="batch", nodes=1)
    made = planned(make_node("n", FLEET), headroom=headroom, fleets=(FLEET, tainted), target=1)
    assert raises(made) == {("batch-small", HOME): 1}


def test_node_that_is_to_be_replaced_is_no_headroom() -> None:
    """It could never be replaced while it holds the room."""
    old = make_node("n", make_fleet_settings(cpu=4, departing=True))
    made = planned(old, fleets=(make_fleet_settings(cpu=4, departing=True), LARGE), target=1)
    assert raises(made) == {("primary-large", HOME): 1}


def test_pods_are_asked_to_go_elsewhere_than_to_an_empty_node_that_is_headroom() -> None:
    """Moved pods would fill it, a new node be bought, and the one they left for it emptied."""
    settings = make_settings(FLEET, headroom=(FOUR_CPU,))
    made = on_cluster(settings, unneeded("a", FLEET), make_node("b", FLEET), full("b"))
    (taint,) = [a for a in made.actions if isinstance(a, TaintNode)]
    assert (taint.node, taint.taint.key, taint.taint.effect) == (
        "a",
        UNNEEDED_TAINT,
        "PreferNoSchedule",
    )
    soft = Taint(key=UNNEEDED_TAINT, value="scale-in", effect="PreferNoSchedule")
    marked = unneeded("a", FLEET, taints=(soft,))
    again = on_cluster(settings, marked, make_node("b", FLEET), full("b"))
    assert [a for a in again.actions if isinstance(a, TaintNode | UntaintNode)] == []


def test_room_on_a_node_that_no_fleet_brought_is_no_headroom() -> None:
    """Whoever owns it may end it, or fill it, and we may not even mark it."""
    foreign = make_node("f", labels={"sector": "primary"}, allocatable=FLEET.options[0].resources)
    made = planned(foreign)
    assert raises(made) == {("primary-small", HOME): 1}
    assert [a for a in made.actions if isinstance(a, TaintNode)] == []


SOFT_TAINT = Taint(key=UNNEEDED_TAINT, value="headroom", effect="PreferNoSchedule")
TENTH = Headroom(sector="primary", percent=10)
FOUR_FIFTHS = Headroom(sector="primary", percent=80)


def test_pods_that_get_no_place_ask_for_no_headroom() -> None:
    """One tenant's mistyped selector would buy thirty nodes that nobody can use."""
    served = make_pods(10, cpu=2)
    astray = make_pods(400, "astray", cpu=3, node_selector={"no-such-label": "x"})
    made = planned(*served, *astray, headroom=TENTH)
    assert len(made.unplaceable) == 400
    assert raises(made) == raises(planned(*served, headroom=TENTH))
    assert [headroom_plan.pieces for headroom_plan in made.headroom] == [1]


@pytest.mark.parametrize("cpu", ["1000000", "9000000000000000"])
def test_pod_of_any_size_ends_no_plan(cpu: str) -> None:
    """A tenth of eight exbibytes was looked for in pieces, which took terabytes of memory."""
    made = planned(make_pod("large", cpu=cpu, memory="7Ei"), make_pod(cpu=2), headroom=TENTH)
    assert [u.pod.name for u in made.unplaceable] == ["large"]
    assert [headroom_plan.pieces for headroom_plan in made.headroom] == [1]


def test_more_headroom_than_any_cluster_has_is_missing() -> None:
    """A config with some zeros too many would take the memory of as many nodes."""
    much = Headroom(sector="primary", cpu_milli=4_000_000_000_000)
    made = planned(headroom=much, fleets=(make_fleet_settings(cpu=4, max_capacity=3),))
    assert raises(made) == {("primary-small", HOME): 3}
    (found,) = made.headroom
    assert found.missing == found.pieces - 3
    assert "max_capacity" in found.because


def test_pods_that_an_interrupted_node_loses_count_once() -> None:
    """They run and they wait: headroom would be bought for both."""
    running = [on("n", cpu="2"), on("n", cpu="2")]
    made = on_cluster(
        make_settings(FLEET, headroom=(FOUR_FIFTHS,)), noticed("n", fleet=FLEET), *running
    )
    assert len(made.placements) == 2
    (found,) = made.headroom
    assert found.pieces == 1


@pytest.mark.parametrize("effect", ["PreferNoSchedule", None])
def test_pod_that_kube_scheduler_would_put_into_headroom_stays(effect: Any) -> None:
    """The room was bought again each time, and the pod evicted off the new node: without an end."""
    taints = (Taint(key="lifecycle", value="OnDemand", effect=effect),) if effect else ()
    objects: list[Any] = [
        unneeded("a", FLEET),
        make_node("b", FLEET, taints=(SOFT_TAINT,)),
        make_node("c", FLEET, taints=taints),
        on("a", cpu="1900m"),
        on("c", cpu="1"),
    ]
    one_node = Headroom(sector="primary", nodes=1)
    made = on_cluster(make_settings(FLEET, headroom=(one_node,)), *objects)
    assert begun(made) == ([] if effect else ["a"])
    if effect:
        assert next(each for each in made.kept if each.node == "a").code == "headroom"


def crowd(seed: int) -> list[Pod]:
    """Six services of random sizes, some of which want their pods on different nodes."""
    draw, found = Random(seed), list[Pod]()
    for number in range(6):
        name = f"svc{number}"
        apart = {"topology_spread": (spread(HOSTNAME, 1, app=name),)}
        rules: dict[str, Any] = apart if draw.random() < 0.3 else {}
        cpu = draw.choice(["400m", "900m", "1300m", "1900m", "2500m"])
        labels = {"app": name}
        count = draw.randint(2, 6)
        found += [make_pod(f"{name}-{n}", cpu=cpu, labels=labels, **rules) for n in range(count)]
    return found


@pytest.mark.parametrize("seed", [1, 2, 4, 5, 14])
@pytest.mark.parametrize(
    "headroom", [Headroom(sector="primary", nodes=1), Headroom(sector="primary", percent=10)]
)
def test_headroom_is_not_bought_again_while_its_node_launches(
    seed: int, headroom: Headroom
) -> None:
    """First fit put pods on it, and plan after plan bought one more until the nodes joined."""
    bought = raises(planned(*crowd(seed), headroom=headroom))
    asked = bought["primary-small", HOME]
    again = planned(*crowd(seed), headroom=headroom, target=asked)
    assert raises(again) == {}
    assert missing(again) == [0]
    assert again.unplaceable == ()


def test_two_items_of_headroom_are_not_bought_again_while_nodes_launch() -> None:
    """The smaller one took the only node that held the larger one, and one more was bought."""
    prices = {4: "0.2", 2: "0.1"}
    fleets = [make_fleet_settings(f"of-{n}", cpu=n, price=price) for n, price in prices.items()]
    pods = [make_pod(cpu, cpu=cpu, memory="1Gi") for cpu in ("1", "1500m", "500m")]
    one_node = Headroom(sector="primary", nodes=1)
    settings = make_settings(*fleets, headroom=(one_node, replace(FOUR_CPU, cpu_milli=3000)))
    first = make_snapshot(*pods, cloud=make_cloud(*(make_fleet(f, 0) for f in fleets)))
    made = plan(first, settings)
    again = plan(asked_for(first, made), settings)
    assert raises(again) == {}
    assert [headroom_plan.asked for headroom_plan in again.headroom] == ["1 node", "3 CPU and 8Gi"]
    assert missing(made) == missing(again) == [0, 0]


@pytest.mark.parametrize("waits_for", ["no-node", "another-sector", "the-maximum"])
@pytest.mark.parametrize("seed", [2, 4])
def test_pod_that_gets_no_place_does_not_let_headroom_be_bought_again(
    seed: int, waits_for: str
) -> None:
    """One pod with a selector that no node has, and each plan bought one more node for headroom."""
    headroom = Headroom(sector="primary", nodes=1)
    full_up = make_fleet_settings(sector="other", max_capacity=0)
    larger = make_fleet_settings("large", cpu=16, memory="64Gi", price="0.9", max_capacity=0)
    stuck = {
        "no-node": make_pod("stuck", cpu="1", node_selector={"no": "where"}),
        "another-sector": make_pod("stuck", cpu="1", node_selector={"sector": "other"}),
        "the-maximum": make_pod("stuck", cpu="8"),
    }[waits_for]
    fleets = (FLEET, full_up, larger)
    bought = raises(planned(*crowd(seed), stuck, headroom=headroom, fleets=fleets))
    asked = bought["primary-small", HOME]
    again = planned(*crowd(seed), stuck, headroom=headroom, target=asked, fleets=fleets)
    assert (raises(again), missing(again)) == ({}, [0])
    assert [unplaceable.pod.name for unplaceable in again.unplaceable] == ["stuck"]


EXPIRING = make_fleet_settings(cpu=4, expire_after_seconds=3600)


def of_expired(*others: Any, target: int, fleet: FleetSettings = EXPIRING, **changed: Any) -> Plan:
    """The plan of a fleet whose only nodes with headroom are too old."""
    settings = make_settings(fleet, headroom=(FOUR_CPU,))
    old = make_node("old", fleet, created_at=ago(7200))
    return on_cluster(settings, old, *others, target=target, **changed)


def test_expired_node_with_headroom_goes_when_the_one_in_its_place_takes_pods() -> None:
    """The room would be missing for a launch, or for as long as EC2 has no capacity."""
    asked = of_expired(target=1)
    assert (raises(asked), begun(asked)) == ({("primary-small", HOME): 2}, [])
    assert kept(asked) == {"old": "replacement"}
    launching = of_expired(target=2)
    assert (raises(launching), begun(launching)) == ({}, [])
    starting = make_node("new", EXPIRING, created_at=ago(20), ready=False)
    joined = of_expired(starting, target=2)
    assert (raises(joined), begun(joined)) == ({}, [])
    there = of_expired(make_node("new", EXPIRING, created_at=ago(900)), target=2)
    assert begun(there) == ["old"]


def test_expired_nodes_wait_only_for_as_much_headroom_as_they_hold() -> None:
    """All old nodes of a sector would stay for one small piece."""
    other = make_node("older", EXPIRING, created_at=ago(9000))
    assert len(begun(of_expired(other, target=3))) == 1


def test_expired_node_with_headroom_goes_first_where_its_fleet_is_at_its_maximum() -> None:
    """Nothing could come in its place, and it would stay for good."""
    full_fleet = make_fleet_settings(cpu=4, expire_after_seconds=3600, max_capacity=1)
    assert begun(of_expired(target=1, fleet=full_fleet)) == ["old"]


def test_expired_node_with_headroom_stays_while_no_capacity_is_to_be_had() -> None:
    """The headroom would be missing until EC2 has capacity again."""
    old = make_node("old", EXPIRING, created_at=ago(7200))
    live = make_fleet(EXPIRING, 1, launch_errors=(capacity_error(60),))
    made = of_expired(target=1, cloud=make_cloud_of([old], live))
    assert (raises(made), begun(made), missing(made)) == ({}, [], [1])
    assert kept(made) == {"old": "replacement"}


def test_expired_node_with_headroom_goes_from_a_region_in_which_none_is_bought() -> None:
    """It stayed for good where the fleet is at its maximum at home: nothing ever came for it."""
    away = Region("us-east-1")
    fleet = make_fleet_settings(
        cpu=4, expire_after_seconds=3600, max_capacity=2, regions=(HOME, away)
    )
    home = [make_node(f"home-{n}", fleet, created_at=ago(600)) for n in range(2)]
    far = make_node("far", fleet, region=away, zone="us-east-1a", created_at=ago(7200))
    lives = make_fleet(fleet, 2), make_fleet(fleet, 1, region=away)
    instances = [*(make_instance(n, lives[0]) for n in home), make_instance(far, lives[1])]
    pods = [on(node.name, cpu="3900m") for node in home]
    settings = make_settings(fleet, headroom=(FOUR_CPU,), regions=(HOME, away))
    cloud = make_cloud(*lives, instances=instances)
    made = plan(make_snapshot(*home, far, *pods, cloud=cloud), settings)
    assert (raises(made), missing(made), begun(made)) == ({}, [1], ["far"])
