"""Pods that must be in one zone with other pods that wait, or spread beside them."""

from typing import Any

import pytest

from reconciler.model.cluster import Pod
from reconciler.model.ids import PodKey
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    HOME,
    HOSTNAME,
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
    near,
    spread,
)
from tests.unit.planner.placed import places, raises

A, B = "us-west-2a", "us-west-2b"


def fleet(zone: str, most: int | None = None, **changed: Any) -> FleetSettings:
    """A fleet of nodes of 4 CPU in one zone."""
    return make_fleet_settings(
        "four", zone=zone, max_capacity=most, over_subscription=0.0, **{"price": "0.20", **changed}
    )


def planned(*pods: Pod, fleets: tuple[FleetSettings, ...] = (fleet(A), fleet(B))) -> Plan:
    """The plan on an empty cluster."""
    cloud = make_cloud(*(make_fleet(each) for each in fleets))
    return plan(make_snapshot(*pods, cloud=cloud), make_settings(*fleets))


def leads(**changed: Any) -> tuple[Pod, ...]:
    """Pods without a rule between pods that count for that of the followers."""
    return make_pods(3, "lead", cpu="1900m", labels={"app": "lead", "group": "g"}, **changed)


def followers(**changed: Any) -> tuple[Pod, ...]:
    """Pods that must be in a zone with pods of the group, which they are of themselves."""
    rule = (near(ZONE, group="g"),)
    labels = {"app": "near", "group": "g"}
    return make_pods(5, "near", cpu="3800m", labels=labels, pod_affinity=rule, **changed)


@pytest.mark.parametrize(
    ("rules", "zone"),
    [
        ({}, A),
        ({"priority": 100}, A),
        ({"node_selector": {ZONE: B}}, B),
        ({"node_selector": {ZONE: B}, "priority": 100}, B),
        ({"node_selector": {ZONE: B}, "priority": -100}, B),
    ],
)
def test_group_is_bought_where_the_others_are_that_it_counts(
    rules: dict[str, Any], zone: str
) -> None:
    """kube-scheduler may bind those first: nodes in another zone would stay empty."""
    made = planned(*leads(**rules), *followers())
    assert raises(made) == {(f"primary-four-{zone}", HOME): 7}
    assert made.unplaceable == ()


def test_nothing_is_bought_again_when_the_others_are_bound_first() -> None:
    """The rest of the group has its nodes in that zone already."""
    pods = (*leads(node_selector={ZONE: B}, priority=100), *followers())
    fleets = {f"primary-four-{zone}": fleet(zone) for zone in (A, B)}
    made = planned(*pods, fleets=tuple(fleets.values()))
    at: dict[PodKey, str] = {
        p.pod: f"{p.fleet}-{p.new_node}" for p in made.placements if p.fleet is not None
    }
    nodes = [
        make_node(name, of := fleets[name.rsplit("-", 1)[0]], zone=of.zone)
        for name in sorted(set(at.values()))
    ]
    bound = leads(node_selector={ZONE: B}, priority=100, created_at=ago(60), started_at=ago(10))
    seated = [
        make_pod(
            p.key.name,
            spec=p.spec,
            labels=dict(p.labels),
            node=at[p.key],
            created_at=ago(60),
            started_at=ago(10),
        )
        for p in bound
    ]
    again = plan(make_snapshot(*nodes, *seated, *followers()), make_settings(*fleets.values()))
    assert raises(again) == {}
    assert len(places(again)) == 5


def test_group_goes_with_a_class_that_others_spread_before_it() -> None:
    """Leads in both zones by a rule of their own: the group is in one of these zones."""
    own = {"topology_spread": (spread(ZONE, app="lead"),)}
    made = planned(*leads(**own), *followers())
    assert made.unplaceable == ()
    assert len({p.fleet for p in made.placements if p.pod.name.startswith("near")}) == 1


def test_spread_counts_pods_that_have_no_choice_of_zone() -> None:
    """The five would be bound in zone a first, and the sixth could not join them there."""
    labels = {"group": "g"}
    pinned = make_pods(5, "plain", cpu="1900m", labels=labels, node_selector={ZONE: A})
    single = make_pod("s", cpu="100m", labels=labels, topology_spread=(spread(ZONE, group="g"),))
    made = planned(*pinned, single)
    assert raises(made) == {(f"primary-four-{A}", HOME): 3, (f"primary-four-{B}", HOME): 1}


def test_pod_near_others_is_packed_together_with_all() -> None:
    """Bought for after the others, it would have a large node for itself."""
    fleets = (
        make_fleet_settings("large", cpu=8, memory="16Gi", price="0.38", zone=A),
        make_fleet_settings("small", cpu=2, memory="4Gi", price="0.104", zone=A),
    )
    follower = make_pod(
        "b", cpu="500m", memory="12000Mi", labels={"app": "b"}, pod_affinity=(near(ZONE, app="a"),)
    )
    pods = (
        *make_pods(3, "a", cpu="100m", memory="512Mi", labels={"app": "a"}),
        *make_pods(3, "d", cpu="1900m", memory="1Gi"),
    )
    made = planned(*pods, follower, fleets=fleets)
    assert raises(made) == {
        ("primary-large-us-west-2a", HOME): 1,
        ("primary-small-us-west-2a", HOME): 1,
    }
    assert made.unplaceable == ()


def test_links_of_a_chain_are_packed_together() -> None:
    """Each of the three must be near the next one, and all fit one node."""
    chain = [
        make_pod(name, cpu="1", labels={"app": name}, pod_affinity=(near(ZONE, app=other),))
        for name, other in (("x", "y"), ("y", "z"))
    ]
    made = planned(*chain, make_pod("z", cpu="1", labels={"app": "z"}))
    assert sum(raises(made).values()) == 1
    assert made.unplaceable == ()


def test_pods_with_a_choice_of_zone_leave_the_only_one_to_those_without() -> None:
    """The larger one would take zone a, and none of those that avoid it could go there."""
    large = make_pod("large", cpu="3", labels={"app": "large"})
    avoiding = make_pods(
        2,
        "avoiding",
        cpu="1",
        node_selector={ZONE: A},
        pod_anti_affinity=(near(ZONE, app="large"),),
    )
    made = planned(large, *avoiding)
    assert raises(made) == {(f"primary-four-{A}", HOME): 1, (f"primary-four-{B}", HOME): 1}


def test_group_is_begun_where_nothing_keeps_its_pods_out() -> None:
    """Zone a is the first for the large ones, which keep the followers out of it."""
    large = make_pods(
        2, "large", cpu="3800m", labels={"app": "x"}, pod_anti_affinity=(near(ZONE, app="near"),)
    )
    made = planned(*large, *leads(), *followers())
    assert made.unplaceable == ()
    assert raises(made) == {(f"primary-four-{A}", HOME): 2, (f"primary-four-{B}", HOME): 7}


def test_no_node_is_bought_for_followers_of_a_pod_that_money_does_not_allow() -> None:
    """Two nodes were asked for on which no pod could run."""
    cheap, dear = (
        make_fleet_settings(name, cpu=8, memory="32Gi", zone=A, price=price, labels={"role": name})
        for name, price in (("cheap", "0.10"), ("dear", "5.00"))
    )
    lead = make_pod("lead", cpu="6", labels={"app": "db"}, node_selector={"role": "dear"})
    follower: dict[str, Any] = {"cpu": "6", "node_selector": {"role": "cheap"}, "priority": 5}
    near_it = make_pods(2, "near-it", pod_affinity=(near(ZONE, app="db"),), **follower)
    made = plan(make_snapshot(lead, *near_it), make_settings(cheap, dear, usd_per_hour_max=1.0))
    assert raises(made) == {}
    assert len(made.unplaceable) == 3


@pytest.mark.parametrize("key", [ZONE, HOSTNAME])
@pytest.mark.parametrize("priority", [0, 1000])
def test_pod_that_counts_itself_follows_another_that_has_its_place_after_it(
    key: str, priority: int
) -> None:
    """A node was bought, or no place found, for a pod that kube-scheduler binds at once.

    Its group runs on a full node in another zone; the node with room joins the group when the
    smaller pod has its place there.
    """
    group = {"team": "t"}
    settings = fleet(A), fleet(B)
    full, free = (
        make_node(f"n-{setting.zone}", setting, zone=setting.zone) for setting in settings
    )
    runs = make_pod("c", cpu="3500m", labels=group, node=full.name)
    leads = make_pod("a", cpu="1500m", labels=group, node_selector={ZONE: B})
    rule = (near(key, **group),)
    follows = make_pod("b", cpu="1900m", labels=group, pod_affinity=rule, priority=priority)
    made = plan(make_snapshot(full, free, runs, leads, follows), make_settings(*settings))
    assert places(made) == {"a": (free.name,), "b": (free.name,)}
    assert raises(made) == {}
