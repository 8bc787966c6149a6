"""Policies about where pods are: violation made, violation gone, nothing else moved."""

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.model.cluster import Node, Owner, Pod, TopologySpreadConstraint
from reconciler.model.plan import Plan
from reconciler.planner.descheduler_settings import (
    HighNodeUtilization,
    InterPodAntiAffinity,
    LowNodeUtilization,
    PolicyArguments,
    RemoveDuplicates,
    TopologySpread,
)
from reconciler.planner.settings import Headroom
from tests.builders import (
    HOSTNAME,
    NOW,
    ZONE,
    ago,
    make_node,
    make_settings,
    near,
    selecting,
    spread,
)
from tests.unit.planner.disruption.descheduler.scene import (
    FLEET,
    Objects,
    descheduling,
    evicted,
    nodes,
    old,
    said,
)
from tests.unit.planner.disruption.scale_in.scene import make_scene_fleet, moves, planned, unneeded

LOW = LowNodeUtilization(thresholds={"cpu": 20}, target_thresholds={"cpu": 50})
HEADROOM = Headroom(sector="primary", cpu_milli=2500, memory_bytes=2**30)
WEB = Owner(kind="ReplicaSet", name="web", uid="1")


def after(made: Plan, objects: Objects) -> Objects:
    """The objects when the evicted pods run where the plan expects them."""
    places = {p.pod: p.node for p in made.placements if p.moved_from is not None}
    return [
        replace(each, node_name=places.get(each.key, each.node_name))
        if isinstance(each, Pod)
        else each
        for each in objects
    ]


def rests(policy: PolicyArguments, objects: Objects) -> bool:
    """Whether the policy moves nothing."""
    return not evicted(planned(descheduling(policy), *objects))


def zoned(name: str, zone: str) -> Node:
    """A node of a zone."""
    return make_node(name, FLEET, zone=zone)


def test_pods_that_must_not_share_a_node_are_parted() -> None:
    """Two replicas that came together while a rule was missing; one of them moves, once."""
    apart = (near(HOSTNAME, app="db"),)
    pods = [
        old("a", f"db-{i}", labels={"app": "db"}, pod_anti_affinity=apart, priority=2 - i)
        for i in range(2)
    ]
    objects: Objects = [*nodes("a", "b"), *pods, old("a", "web")]
    made = planned(descheduling(InterPodAntiAffinity()), *objects)
    assert evicted(made) == {"db-1": "RemovePodsViolatingInterPodAntiAffinity"}
    assert moves(made) == {"db-1": "b"}
    assert rests(InterPodAntiAffinity(), after(made, objects))


def test_pods_that_can_only_share_a_node_stay() -> None:
    """There is no other node: evicted, one of them would wait."""
    apart = (near(HOSTNAME, app="db"),)
    pods = [old("a", f"db-{i}", labels={"app": "db"}, pod_anti_affinity=apart) for i in range(2)]
    assert rests(InterPodAntiAffinity(), [*nodes("a"), *pods])


@pytest.mark.parametrize(("deleting", "moves_away"), [(True, False), (False, True)])
def test_pod_whose_excluded_neighbour_leaves_stays(deleting: bool, moves_away: bool) -> None:
    """The neighbour is being deleted, so the violation ends by itself."""
    web = old("a", "web", pod_anti_affinity=(near(ZONE, app="db"),))
    other = replace(
        old("b", "db", labels={"app": "db"}),
        deleting=deleting,
        deletion_at=ago(-30) if deleting else None,
    )
    objects: Objects = [zoned("a", "us-west-2a"), zoned("b", "us-west-2a"), web, other]
    made = planned(descheduling(InterPodAntiAffinity()), *objects, zoned("c", "us-west-2b"))
    assert bool(evicted(made)) is moves_away


def test_duplicates_are_spread_over_the_nodes_that_take_them() -> None:
    """Four replicas came up on the one node there was; now there are two."""
    pods = [old("a", f"web-{i}", owner=WEB, cpu="200m") for i in range(4)]
    objects: Objects = [*nodes("a", "b"), *pods, old("a", "other")]
    made = planned(descheduling(RemoveDuplicates()), *objects)
    assert sorted(evicted(made)) == ["web-0", "web-1"]
    assert set(moves(made).values()) == {"b"}
    assert rests(RemoveDuplicates(), after(made, objects))


def test_duplicates_of_an_excluded_owner_kind_stay() -> None:
    """`excludeOwnerKinds: [ReplicaSet]`."""
    pods = [old("a", f"web-{i}", owner=WEB) for i in range(2)]
    policy = RemoveDuplicates(exclude_owner_kinds=frozenset({"ReplicaSet"}))
    assert rests(policy, [*nodes("a", "b"), *pods])


def test_duplicates_stay_where_kube_scheduler_would_put_them_back() -> None:
    """The other node is nearly full: kube-scheduler prefers the first."""
    pods = [old("a", f"web-{i}", owner=WEB, cpu="100m") for i in range(2)]
    objects: Objects = [*nodes("a", "b"), *pods, old("b", "large", cpu="2500m")]
    settings = descheduling(RemoveDuplicates())
    assert evicted(planned(settings, *objects)) == {}
    assert "no-better-place" in said(settings, pods[0], *nodes("a", "b"), *objects[3:])


def test_duplicates_stay_where_kube_scheduler_sees_the_room_of_headroom() -> None:
    """Their node's free room is headroom, of which kube-scheduler knows nothing: they came back."""
    pods = [old("a", f"web-{i}", owner=WEB) for i in range(2)]
    others: Objects = [*nodes("a", "b"), old("b", "other", cpu="2")]
    settings = replace(descheduling(RemoveDuplicates()), headroom=(HEADROOM,))
    assert evicted(planned(settings, *pods, *others)) == {}
    why = "(no-better-place): kube-scheduler would put it on a"
    assert why in said(settings, pods[0], pods[1], *others)


def test_no_pod_is_moved_into_headroom() -> None:
    """The room would have to be bought again."""
    objects: Objects = [
        *nodes("a", "b"),
        *(old("a", f"web-{i}", owner=WEB, cpu="1700m") for i in range(2)),
    ]
    assert len(evicted(planned(descheduling(RemoveDuplicates()), *objects))) == 1
    kept_free = replace(descheduling(RemoveDuplicates()), headroom=(HEADROOM,))
    assert evicted(planned(kept_free, *objects)) == {}


def test_node_that_a_pod_came_to_a_short_time_ago_has_not_settled() -> None:
    """Where pods are still coming, balance is judged later."""
    pods = [old("a", f"web-{i}", owner=WEB, cpu="200m") for i in range(4)]
    young = old("a", "young", 200)
    objects: Objects = [*nodes("a", "b"), *pods, young]
    settings = descheduling(RemoveDuplicates(), interval_seconds=60)
    assert evicted(planned(settings, *objects)) == {}
    assert "settling" in said(settings, pods[0], *nodes("a", "b"), *objects[3:])


def test_uneven_spread_over_zones_is_evened_out() -> None:
    """A zone was gone for a while; its pods do not come back by themselves."""
    rule = (spread(ZONE, app="web"),)
    web = {"app": "web"}
    pods = [old("a", f"web-{i}", labels=web, topology_spread=rule, cpu="200m") for i in range(4)]
    objects: Objects = [zoned("a", "z1"), zoned("b", "z2"), *pods, old("a", "other")]
    made = planned(descheduling(TopologySpread()), *objects)
    assert sorted(evicted(made)) == ["web-0", "web-1"]
    assert set(moves(made).values()) == {"b"}
    assert rests(TopologySpread(), after(made, objects))


def test_spread_within_its_skew_is_let_alone() -> None:
    """Its maxSkew says how uneven it may be."""
    rule = (spread(ZONE, 2, app="web"),)
    pods = [old("a", f"web-{i}", labels={"app": "web"}, topology_spread=rule) for i in range(2)]
    assert rests(TopologySpread(), [zoned("a", "z1"), zoned("b", "z2"), *pods])


def test_soft_constraints_count_on_request_only() -> None:
    """`constraints: [ScheduleAnyway]`."""
    rule = TopologySpreadConstraint(
        topology_key=ZONE, max_skew=1, hard=False, selector=selecting(app="web")
    )
    pods = [
        old("a", f"web-{i}", labels={"app": "web"}, topology_spread=(rule,), cpu="200m")
        for i in range(4)
    ]
    objects: Objects = [zoned("a", "z1"), zoned("b", "z2"), *pods]
    assert rests(TopologySpread(), objects)
    assert evicted(planned(descheduling(TopologySpread(soft=True)), *objects))


def test_over_used_node_gives_pods_to_an_under_used_one() -> None:
    """Until it is at its target, and no further; pods of low priority go first."""
    pods = [old("a", f"p{i}", cpu="500m", priority=i) for i in range(6)]
    objects: Objects = [*nodes("a", "b"), *pods, old("b", "there", cpu="100m")]
    made = planned(descheduling(LOW), *objects)
    assert evicted(made) == dict.fromkeys(["p0", "p1"], "LowNodeUtilization")
    assert set(moves(made).values()) == {"b"}
    assert rests(LOW, after(made, objects))


def test_no_pod_moves_without_an_under_used_node() -> None:
    """It would only make the next node over-used."""
    pods = [old("a", f"p{i}") for i in range(6)]
    assert rests(LOW, [*nodes("a", "b"), *pods, old("b", "there", cpu="1500m")])
    few = replace(LOW, number_of_nodes=1)
    assert rests(few, [*nodes("a", "b"), *pods, old("b", "there", cpu="100m")])


def test_utilization_policy_has_a_limit_per_node_of_its_own() -> None:
    """`evictionLimits: {node: 1}`."""
    pods = [old("a", f"p{i}") for i in range(6)]
    limited = replace(LOW, evictions_per_node_max=1)
    objects: Objects = [*nodes("a", "b"), *pods, old("b", "there", cpu="100m")]
    assert len(evicted(planned(descheduling(limited), *objects))) == 1


def test_thresholds_may_be_distances_from_the_mean() -> None:
    """The mean is 38 %: nodes below 28 % and above 48 % count."""
    deviation = LowNodeUtilization(
        thresholds={"cpu": 10}, target_thresholds={"cpu": 10}, deviation=True
    )
    pods = [old("a", f"p{i}", cpu="300m") for i in range(8)]
    objects: Objects = [*nodes("a", "b"), *pods, old("b", "there", cpu="600m")]
    assert rests(LowNodeUtilization(thresholds={"cpu": 10}, target_thresholds={"cpu": 90}), objects)
    made = planned(descheduling(deviation), *objects)
    assert len(evicted(made)) == 2
    assert rests(deviation, after(made, objects))


def test_distance_of_zero_below_the_mean_leaves_a_resource_out() -> None:
    """Pods moved for memory that nobody wanted balanced."""
    cpu_alone = LowNodeUtilization(
        thresholds={"cpu": 10, "memory": 0},
        target_thresholds={"cpu": 40, "memory": 5},
        deviation=True,
    )
    pods = [old("a", f"m{i}", cpu="250m", requests={"memory": 3 * 2**30}) for i in range(4)]
    few = [old("b", "busy", cpu="2"), old("c", cpu="100m")]
    objects: Objects = [*nodes("a", "b", "c"), *pods, *few]
    assert rests(cpu_alone, objects)
    both = replace(cpu_alone, thresholds={"cpu": 10, "memory": 1})
    assert not rests(both, objects)


def test_extended_resources_have_thresholds_too() -> None:
    """GPUs are what is short on GPU nodes."""
    gpu = "nvidia.com/gpu"
    offered = {**make_node("a", FLEET).allocatable, gpu: 4}
    ours = [
        replace(node, allocatable=type(FLEET.options[0].resources)(offered))
        for node in nodes("a", "b")
    ]
    policy = LowNodeUtilization(thresholds={gpu: 20}, target_thresholds={gpu: 50})
    pods = [old("a", f"p{i}", cpu="100m", requests={gpu: 1}) for i in range(4)]
    for pod in pods:
        assert pod.spec.requests
    made = planned(descheduling(policy), *ours, *pods)
    assert len(evicted(made)) == 2


@pytest.mark.parametrize(("timed", "moved"), [(False, True), (True, False)])
def test_nodes_with_timers_take_no_pods_between_their_turns(timed: bool, moved: bool) -> None:
    """They leave in time: the pods would be evicted twice."""
    fleet = make_scene_fleet()
    settings = replace(make_settings(fleet), descheduler=descheduling(LOW).descheduler)
    little = [
        unneeded(f"n{n:02}", fleet, 30) if timed else make_node(f"n{n:02}", fleet)
        for n in range(30)
    ]
    pods = [old("a", f"p{i}", cpu="500m") for i in range(6)]
    objects: Objects = [make_node("a", fleet), *little, *pods]
    objects += [old(node.name, cpu="100m") for node in little]
    made = planned(settings, *objects, at=NOW + timedelta(seconds=1), previous_at=NOW)
    assert bool(evicted(made)) is moved


def test_pods_are_gathered_on_nodes_above_the_threshold_only() -> None:
    """Of two under-used nodes neither takes the other's pods."""
    policy = HighNodeUtilization(thresholds={"cpu": 20})
    assert rests(policy, [*nodes("a", "b"), old("a", cpu="200m"), old("b", cpu="200m")])


def test_later_policy_sees_what_an_earlier_one_has_moved() -> None:
    """Pods went whose node the replicas' moves had brought to its target already."""
    replicas = [old("a", f"x-{n}", cpu="600m", priority=5, owner=WEB) for n in range(3)]
    owners = [Owner(kind="ReplicaSet", name=f"y-{n}", uid=f"y-{n}") for n in range(2)]
    singles = [old("a", owner.name, cpu="300m", owner=owner) for owner in owners]
    others = (old("b", "z", cpu="100m"), old("c", "z2", cpu="100m"))
    objects: Objects = [*nodes("a", "b", "c"), *replicas, *singles, *others]
    assert set(evicted(planned(descheduling(LOW), *objects))) == {"y-0", "y-1"}
    made = evicted(planned(descheduling(RemoveDuplicates(), LOW), *objects))
    assert set(made.values()) == {"RemoveDuplicates"}
    assert set(made) == {"x-0", "x-1"}
