"""Demand that gets nowhere is quarantined after two tries, and let go when something changes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.cluster import Node, Pod
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedDemandState
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    HOME,
    NOW,
    ZONE,
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    spread,
)
from tests.unit.planner.placed import bought

FLEET = make_fleet_settings(labels={"team": "data"})
POD = make_pod(node_selector={"team": "data"}, sector="primary")


def wrong(name: str, seconds_old: float = 60, **changed: Any) -> Node:
    """A node of the fleet on which the label is missing."""
    node = make_node(name, FLEET, created_at=ago(seconds_old), **changed)
    labels = {k: v for k, v in node.labels.items() if k != "team"}
    return replace(node, labels=type(node.labels)(labels))


def planned(
    *objects: Pod | Node,
    demands: tuple[SavedDemandState, ...] = (),
    fleet: FleetSettings = FLEET,
    **live: Any,
) -> Plan:
    """The plan of a cluster in which EC2 holds what has joined."""
    count = sum(isinstance(o, Node) for o in objects)
    cloud = make_cloud(make_fleet(fleet, count, **live))
    return plan(make_snapshot(*objects, cloud=cloud, demands=demands), make_settings(fleet))


def first_purchase() -> SavedDemandState:
    """What the first plan remembers, made five minutes ago."""
    (memory,) = planned(POD).demands
    return replace(memory, bought_at=ago(300))


def test_purchase_is_remembered_with_what_the_fleet_was() -> None:
    """Nobody would know that nodes were asked for in vain."""
    made = planned(POD)
    assert bought(made) == 1
    (memory,) = made.demands
    assert (memory.fleet, memory.bought_at, memory.strikes) == (FLEET.name, NOW, 0)


def test_node_that_joined_in_vain_counts_once_and_another_is_tried() -> None:
    """One unlucky node must not close a fleet."""
    made = planned(POD, wrong("a"), demands=(first_purchase(),))
    assert bought(made) == 1
    assert [(m.strikes, m.judged_at) for m in made.demands] == [(1, NOW)]


def test_purchase_noted_in_the_future_is_noted_anew() -> None:
    """No node would have come after it: nodes would be bought in vain until the clock caught up."""
    ahead = replace(first_purchase(), bought_at=ago(-9000), judged_at=ago(-9000))
    (memory,) = planned(POD, demands=(ahead,)).demands
    assert (memory.bought_at, memory.judged_at) == (NOW, NOW)


def test_node_that_was_counted_does_not_count_again() -> None:
    """The first node in vain would be the second one too, a cycle later."""
    memory = replace(first_purchase(), strikes=1, judged_at=ago(30))
    made = planned(POD, wrong("a"), demands=(memory,))
    assert (made.quarantined, made.demands) == (0, (memory,))


def test_pod_that_runs_on_a_node_of_the_first_try_ends_the_count() -> None:
    """A start-up taint that goes after a while would look like a node in vain."""
    running = make_pod("running", spec=POD.spec, node="a")
    first = make_node("a", FLEET, created_at=ago(60), unschedulable=True)
    memory = replace(first_purchase(), strikes=1, judged_at=ago(30))
    made = planned(POD, running, first, wrong("b", 10), demands=(memory,))
    assert (made.quarantined, [m.strikes for m in made.demands]) == (0, [0])


def test_second_node_in_vain_quarantines_the_pods_with_their_reason() -> None:
    """The runaway that cost others thousands of nodes: each cycle one more that nobody can use."""
    memory = replace(first_purchase(), strikes=1)
    made = planned(POD, wrong("a"), wrong("b", 400), demands=(memory,))
    assert bought(made) == 0
    (refused,) = made.unplaceable
    assert [r.code for r in refused.reasons] == ["no-progress"]
    assert "2 times" in refused.reasons[0].detail
    assert made.quarantined == 1


def quarantined() -> SavedDemandState:
    """A kind of pods that has had its chances."""
    return replace(first_purchase(), strikes=2, judged_at=ago(30))


def test_quarantine_lasts_over_cycles_and_restarts() -> None:
    """The next process would begin the runaway afresh."""
    made = planned(POD, wrong("a"), demands=(quarantined(),))
    assert bought(made) == 0
    assert made.demands == (quarantined(),)


@pytest.mark.parametrize("ends", [False, True])
def test_kind_of_pods_is_known_by_what_decides_their_place(*, ends: bool) -> None:
    """A new field of every spec let each quarantine go when the program was upgraded."""
    made = planned(replace(POD, spec=replace(POD.spec, ends_by_itself=ends)))
    assert [demand.demand for demand in made.demands] == ["84ed621cbbaf8d22"]


def test_changed_pods_are_tried_again() -> None:
    """A fixed template would wait without end."""
    fixed = make_pod(node_selector={"team": "data"}, sector="primary", cpu="600m")
    assert bought(planned(fixed, wrong("a"), demands=(quarantined(),))) == 1


@pytest.mark.parametrize(
    ("fleet", "live"),
    [
        (FLEET, {"launch_template_version": "2"}),
        (replace(FLEET, labels=type(FLEET.labels)({**FLEET.labels, "more": "x"})), {}),
    ],
)
def test_changed_fleet_is_tried_again(fleet: FleetSettings, live: dict[str, Any]) -> None:
    """A fixed image would never be used."""
    assert bought(planned(POD, wrong("a"), demands=(quarantined(),), fleet=fleet, **live)) == 1


def test_quarantine_outlasts_a_cycle_in_which_the_template_is_unknown() -> None:
    """One failed DescribeLaunchTemplates lifted it, and the next node was bought in vain."""
    told: dict[str, Any] = {"launch_template_version": "8"}
    word: dict[str, Any] = {"launch_template_version": "$Latest"}
    (bought_before,) = planned(POD, **told).demands
    known = replace(bought_before, bought_at=ago(300), strikes=2, judged_at=ago(30))
    made = planned(POD, wrong("a"), demands=(known,), **word)
    assert (made.quarantined, bought(made), made.demands) == (1, 0, (known,))
    later: dict[str, Any] = {"launch_template_version": "9"}
    assert bought(planned(POD, wrong("a"), demands=made.demands, **later)) == 1


def test_purchase_while_the_template_is_unknown_is_judged_when_it_is_known() -> None:
    """It would have been tried again with the first answer of EC2, and then never let go."""
    told: dict[str, Any] = {"launch_template_version": "8"}
    word: dict[str, Any] = {"launch_template_version": "$Latest"}
    (bought_before,) = planned(POD, **word).demands
    known = replace(bought_before, bought_at=ago(300), strikes=2, judged_at=ago(30))
    made = planned(POD, wrong("a"), demands=(known,), **told)
    assert (made.quarantined, bought(made)) == (1, 0)
    later: dict[str, Any] = {"launch_template_version": "9"}
    assert bought(planned(POD, wrong("a"), demands=made.demands, **later)) == 1


def test_other_pods_are_served_meanwhile() -> None:
    """One broken workload would close the fleet for all."""
    other = make_pod("other", sector="primary", cpu="3500m")
    full = make_pod("full", node="a", cpu="3")
    made = planned(POD, other, wrong("a"), full, demands=(quarantined(),))
    assert [p.pod.name for p in made.placements] == ["other"]
    assert bought(made) == 1


def test_pod_that_runs_on_such_a_node_ends_the_count() -> None:
    """Demand that keeps growing would look like demand that gets nowhere."""
    running = make_pod("running", spec=POD.spec, node="a")
    good = make_node("a", FLEET, created_at=ago(60), unschedulable=True)
    made = planned(POD, running, good, demands=(replace(first_purchase(), strikes=1),))
    assert [m.strikes for m in made.demands] == [0]


def test_node_that_others_filled_proves_nothing() -> None:
    """Pods of low priority would be quarantined because others were faster."""
    taken = make_pod("other", node="a", cpu="3800m")
    good = make_node("a", FLEET, created_at=ago(60))
    made = planned(POD, taken, good, demands=(replace(first_purchase(), strikes=1),))
    assert (bought(made), [m.strikes for m in made.demands]) == (1, [1])


def test_shared_node_with_room_that_refuses_counts() -> None:
    """A runaway whose nodes another workload trickles onto would never be seen."""
    taken = make_pod("other", node="a", cpu="100m")
    made = planned(POD, taken, wrong("a"), demands=(replace(first_purchase(), strikes=1),))
    assert (bought(made), made.quarantined) == (0, 1)


@pytest.mark.parametrize(
    "node",
    [
        wrong("a", 301),
        wrong("a", ready=False, ready_changed_at=None),
        wrong("a", unschedulable=True),
        wrong("a", draining=True),
    ],
)
def test_node_that_is_older_on_its_way_or_out_of_service_proves_nothing(node: Node) -> None:
    """Somebody cordons a node, and its pods would be quarantined."""
    memory = replace(first_purchase(), strikes=1)
    assert planned(POD, node, demands=(memory,)).demands[0].strikes == 1


def test_launching_nodes_are_waited_for() -> None:
    """Two of three nodes are late: that is no failure."""
    cloud = make_cloud(make_fleet(FLEET, 3))
    memory = replace(first_purchase(), strikes=1)
    snapshot = make_snapshot(POD, wrong("a"), cloud=cloud, demands=(memory,))
    made = plan(snapshot, make_settings(FLEET))
    assert (made.quarantined, made.demands) == (0, (memory,))


def test_quarantined_pods_that_are_gone_are_remembered_for_an_hour() -> None:
    """A controller that makes its pods anew each minute would begin the runaway anew."""
    (gone,) = planned(demands=(quarantined(),)).demands
    assert gone.gone_at == NOW
    later = replace(gone, gone_at=NOW - timedelta(minutes=59))
    assert bought(planned(POD, demands=(later,))) == 0
    late = replace(gone, gone_at=NOW - timedelta(minutes=61))
    assert planned(demands=(late,)).demands == ()


def test_purchase_of_pods_that_are_gone_is_forgotten() -> None:
    """The Lease would fill with every workload that ever scaled."""
    assert planned(demands=(first_purchase(),)).demands == ()


def test_plan_remembers_the_same_in_every_order() -> None:
    """A Lease that changes with every cycle would be written with every cycle."""
    pods = [make_pod(f"p{n}", sector="primary", cpu=f"{n + 1}00m") for n in range(4)]

    def remembered(*objects: Pod) -> tuple[SavedDemandState, ...]:
        snapshot: Snapshot = make_snapshot(*objects, cloud=make_cloud(make_fleet(FLEET)))
        return plan(snapshot, make_settings(FLEET)).demands

    assert remembered(*pods) == remembered(*reversed(pods))
    assert len(remembered(*pods)) == 4


def test_region_that_is_silent_once_forgets_no_quarantine() -> None:
    """Nodes would be bought in vain again after every lost answer."""
    before = replace(first_purchase(), strikes=2, judged_at=ago(60))
    for cloud in (make_cloud(silent=frozenset({HOME}), regions=frozenset()), make_cloud()):
        made = plan(make_snapshot(POD, cloud=cloud, demands=(before,)), make_settings(FLEET))
        assert [(m.fleet, m.strikes) for m in made.demands] == [(FLEET.name, 2)]


ZONAL = tuple(
    make_fleet_settings("small", zone=zone, labels={"team": "data"})
    for zone in ("us-west-2a", "us-west-2b")
)
SPREAD = make_pods(
    2,
    "spread",
    sector="primary",
    node_selector={"team": "data"},
    labels={"app": "s"},
    topology_spread=(spread(ZONE, app="s"),),
)


def zonal_plan(*objects: Pod | Node, demands: tuple[SavedDemandState, ...] = ()) -> Plan:
    """The plan of two fleets, each in a zone of its own."""
    nodes = [o for o in objects if isinstance(o, Node)]
    lives = [make_fleet(f, sum(n.labels["fleet"] == f.name for n in nodes)) for f in ZONAL]
    cloud = make_cloud(*lives)
    return plan(make_snapshot(*objects, cloud=cloud, demands=demands), make_settings(*ZONAL))


def zonal_node(fleet: FleetSettings, ready_seconds: float = 60, *, good: bool = False) -> Node:
    """A node of one of the two fleets; unless it is good the label is missing on it."""
    node = make_node(
        f"in-{fleet.zone}",
        fleet,
        zone=fleet.zone,
        created_at=ago(ready_seconds + 40),
        ready_changed_at=ago(ready_seconds),
    )
    labels = {k: v for k, v in node.labels.items() if good or k != "team"}
    return replace(node, labels=type(node.labels)(labels))


def bought_in_both_zones() -> tuple[SavedDemandState, ...]:
    """What the plan that asked both fleets remembers, made five minutes ago."""
    made = zonal_plan(*SPREAD)
    assert [m.fleet for m in made.demands] == [fleet.name for fleet in ZONAL]
    return tuple(replace(memory, bought_at=ago(300)) for memory in made.demands)


def test_one_purchase_from_two_zonal_fleets_is_one_strike() -> None:
    """Pods spread over two zones would be quarantined by their first purchase."""
    made = zonal_plan(*SPREAD, *map(zonal_node, ZONAL), demands=bought_in_both_zones())
    assert made.quarantined == 0
    assert [m.strikes for m in made.demands] == [1, 1]
    assert bought(made) == 2


def test_second_purchase_from_either_fleet_quarantines() -> None:
    """Two fleets that take turns would be asked for nodes without an end."""
    tried = tuple(replace(m, strikes=1, judged_at=ago(200)) for m in bought_in_both_zones())
    made = zonal_plan(*SPREAD, zonal_node(ZONAL[1]), demands=tried)
    assert (made.quarantined, bought(made)) == (1, 0)


def test_change_of_one_fleet_lifts_the_quarantine_of_pods_that_both_served() -> None:
    """Who fixes one of the images would see nothing happen."""
    first, second = (replace(m, strikes=2, judged_at=ago(30)) for m in bought_in_both_zones())
    changed = replace(first, version="of another launch template")
    made = zonal_plan(*SPREAD, *map(zonal_node, ZONAL), demands=(changed, second))
    assert (made.quarantined, bought(made)) == (0, 2)


@pytest.mark.parametrize(("seconds", "strikes"), [(7, 0), (29, 0), (31, 1)])
def test_kube_scheduler_has_its_backoff_before_a_node_counts(seconds: float, strikes: int) -> None:
    """Seven seconds after a node turned Ready its pods may still be in their backoff."""
    node = wrong("a", 90, ready_changed_at=ago(seconds))
    made = planned(POD, node, demands=(first_purchase(),))
    assert [m.strikes for m in made.demands] == [strikes]


def test_nothing_is_bought_for_pods_while_kube_scheduler_has_its_time() -> None:
    """A second node would be asked for each time that the first has not been judged yet."""
    node = wrong("a", 90, ready_changed_at=ago(7))
    made = planned(POD, node, demands=(first_purchase(),))
    assert (bought(made), made.quarantined) == (0, 0)
    (refused,) = made.unplaceable
    assert [(r.code, "kube-scheduler has until" in r.detail) for r in refused.reasons] == [
        ("no-progress", True)
    ]


def test_node_that_turns_ready_again_and_again_is_judged_in_the_end() -> None:
    """A flapping node would put off the count, and its pods, without an end."""
    fleet_of = replace(first_purchase(), bought_at=ago(1200))
    node = wrong("a", 1000, ready_changed_at=ago(5))
    assert [m.strikes for m in planned(POD, node, demands=(fleet_of,)).demands] == [1]


def test_node_that_this_plan_fills_is_no_strike() -> None:
    """Demand that grew while its first node came would look like a node that refuses it."""
    good = make_node("a", FLEET, created_at=ago(300), ready_changed_at=ago(60))
    more = make_pods(3, "more", sector="primary", node_selector={"team": "data"}, cpu="1500m")
    memory = replace(planned(*more).demands[0], bought_at=ago(400))
    made = planned(*more, good, demands=(memory,))
    assert [m.strikes for m in made.demands] == [0]
    assert bought(made) == 1


def test_node_from_which_a_spread_keeps_the_pod_is_not_waited_for() -> None:
    """A pod waited half a minute for a node in a zone that its spread closed, and then a launch."""
    old = make_node("old", ZONAL[0], zone=ZONAL[0].zone, created_at=ago(900))
    running, pending = replace(SPREAD[0], node_name=old.name, phase="Running"), SPREAD[1]
    here, there = (zonal_node(fleet, 7, good=True) for fleet in ZONAL)
    others = [make_pod(f"on-{n.name}", node=n.name, cpu="1") for n in (here, there)]
    full = make_pod("more", node=there.name, cpu="2900m")
    asked = bought_in_both_zones()
    made = zonal_plan(running, pending, old, here, there, *others, full, demands=asked)
    assert (bought(made), [m.strikes for m in made.demands]) == (1, [0, 0])
    room = zonal_plan(running, pending, old, here, there, *others, demands=asked)
    assert bought(room) == 0
