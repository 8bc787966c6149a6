"""Spreads over zones where a limit leaves out nodes of one zone, or the daemons of nodes count."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.cluster import DaemonSet, Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, RaiseLimits
from tests.builders import (
    HOSTNAME,
    ZONE,
    make_cloud,
    make_daemon_set,
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

A, B, C = "us-west-2a", "us-west-2b", "us-west-2c"


def fleet(zone: str, most: int | None = None, price: str = "0.20") -> FleetSettings:
    """A fleet of nodes of 4 CPU in one zone."""
    return make_fleet_settings(
        zone=zone, name=zone, max_capacity=most, price=price, over_subscription=0.0
    )


def web(count: int, cpu: str | int = 4, **changed: Any) -> tuple[Pod, ...]:
    """Pods spread over the zones, which fill a node each."""
    rules = changed.pop("rules", (spread(ZONE, 1, app="web"),))
    return make_pods(count, "web", cpu=cpu, labels={"app": "web"}, topology_spread=rules, **changed)


def full_nodes(fleets: Sequence[FleetSettings]) -> tuple[Any, ...]:
    """In the zone of each fleet a node without room."""
    nodes = [make_node(f"n-{each.name}", each, zone=each.zone) for each in fleets]
    return (*nodes, *(make_pod(f"full-{n.name}", cpu=4, node=n.name) for n in nodes))


def planned(*objects: Any, fleets: Sequence[FleetSettings], **settings: Any) -> Plan:
    """The plan for these nodes and pods."""
    daemon_sets = settings.pop("daemon_sets", ())
    running = Counter(n.labels["fleet"] for n in objects if isinstance(n, Node))
    cloud = make_cloud(*(make_fleet(each, running[each.name]) for each in fleets))
    snapshot = make_snapshot(*objects, cloud=cloud, daemon_sets=daemon_sets)
    return plan(snapshot, make_settings(*fleets, **settings))


def bought(made: Plan) -> dict[str, int]:
    """New nodes by zone."""
    return {new.fleet: new.nodes for new in made.new_nodes}


def placed(made: Plan) -> set[str]:
    """The pods that have a place."""
    return {p.pod.name for p in made.placements}


@pytest.mark.parametrize(("most", "in_the_other"), [(10, 11), (1, 2)])
def test_zone_that_may_not_grow_on_bounds_what_is_bought_in_the_others(
    most: int, in_the_other: int
) -> None:
    """Half of the pods got nodes in the open zone, most of which no pod could use, for good."""
    made = planned(*web(100), fleets=(fleet(A), fleet(B, most)))
    assert bought(made) == {A: in_the_other, B: most}
    assert len(placed(made)) == in_the_other + most


def test_money_goes_to_zones_in_which_pods_may_be() -> None:
    """Both nodes that the money allows came up in one zone, where kube-scheduler wants one pod."""
    fleets = tuple(fleet(zone) for zone in (A, B, C))
    limit = {"usd_per_hour_max": Decimal("1.05")}
    made = planned(*full_nodes(fleets), *web(4), fleets=fleets, **limit)
    assert sorted(bought(made).values()) == [1, 1]
    assert len(placed(made)) == 2


def test_new_nodes_are_filled_as_the_spread_rises_from_zone_to_zone() -> None:
    """Each got as many pods as the others had then, and the rest was left to wait for money."""
    fleets = tuple(fleet(zone) for zone in (A, B, C))
    limit = {"usd_per_hour_max": Decimal("1.20")}
    made = planned(*full_nodes(fleets), *web(24, cpu=1), fleets=fleets, **limit)
    assert bought(made) == {A: 1, B: 1, C: 1}
    assert len(placed(made)) == 12


def test_nodes_of_one_plan_go_to_zones_in_which_pods_may_be() -> None:
    """The limit of nodes per plan left the last zone out, and the others had too many for it."""
    fleets = tuple(fleet(zone) for zone in (A, B, C))
    limit = {"raise_limits": RaiseLimits(nodes_per_cycle=3)}
    made = planned(*full_nodes(fleets), *web(6), fleets=fleets, **limit)
    assert bought(made) == {A: 1, B: 1, C: 1}


def test_zones_that_money_leaves_out_count_for_the_domains_that_a_spread_demands() -> None:
    """With fewer zones than minDomains each takes maxSkew pods, whatever the others have."""
    fleets = tuple(fleet(zone) for zone in (A, B, C))
    pods = web(6, rules=(spread(ZONE, 1, app="web", min_domains=3),))
    made = planned(*pods, fleets=fleets, usd_per_hour_max=Decimal("0.45"))
    assert sorted(bought(made).values()) == [1, 1]


def test_pods_apart_by_node_hold_their_spread_over_zones() -> None:
    """What a limit leaves out is left out of nodes with room, too, where each takes one pod."""
    pods = web(5, cpu=1, pod_anti_affinity=(near(HOSTNAME, app="web"),))
    made = planned(*pods, fleets=(fleet(A), fleet(B, 1)))
    assert bought(made) == {A: 2, B: 1}


def test_pods_of_a_spread_over_nodes_and_zones_need_no_idle_node() -> None:
    """A node was bought that no pod could use before the others had more than they may."""
    rules = (spread(ZONE, 1, app="web"), spread(HOSTNAME, 1, app="web"))
    made = planned(*web(5, cpu=1, rules=rules), fleets=(fleet(A), fleet(B, 1)))
    assert len(placed(made)) == 5
    assert sum(bought(made).values()) <= 3


def test_room_that_a_higher_priority_takes_in_a_zone_is_missed_in_the_others() -> None:
    """The other pods' only node went to a pod before them, and their spread was not asked again."""
    first = make_pod("first", cpu=4, priority=100)
    made = planned(first, *web(3), fleets=(fleet(A, 1), fleet(C, 2)))
    of_web = [p.fleet for p in made.placements if p.pod.name != "first"]
    assert max(Counter(of_web).values()) == 1
    assert len(made.placements) == sum(bought(made).values())


def test_zone_that_another_pod_opens_within_the_limit_counts() -> None:
    """The money did not do for the dear zone, which is the least filled one once a pod opens it."""
    fleets = (
        *(fleet(zone, price="0.40" if zone == C else "0.20") for zone in (A, B, C)),
        make_fleet_settings("tiny", zone=C, cpu=1, price="0.20", over_subscription=0.0),
    )
    other = make_pod(
        "other",
        cpu=1,
        priority=1,
        labels={"app": "alone"},
        pod_affinity=(near(HOSTNAME, app="alone"),),
        node_selector={"size": "tiny"},
    )
    made = planned(*web(6), other, fleets=fleets, usd_per_hour_max=Decimal("1.00"))
    assert bought(made) == {A: 1, B: 1, "primary-tiny-us-west-2c": 1}
    assert len(placed(made)) == 3


def test_node_for_a_lower_priority_does_not_open_a_zone_that_refuses_higher_ones() -> None:
    """Each priority was bought for on its own: six nodes, of which two could be used, for good."""
    fleets = (
        *(fleet(zone, price="0.80" if zone == C else "0.20") for zone in (A, B, C)),
        make_fleet_settings("tiny", zone=C, cpu=1, price="0.20", over_subscription=0.0),
    )
    other = make_pod("other", cpu=1, priority=1, node_selector={"size": "tiny"})
    made = planned(*web(6, priority=2), other, fleets=fleets, usd_per_hour_max=Decimal("1.40"))
    assert bought(made) == {A: 3, B: 3}
    assert len(placed(made)) == 6


def test_zone_that_a_lone_pod_opens_counts_for_pods_that_keep_to_one_zone() -> None:
    """A node of the other zone was bought beside theirs, and their spread was not asked again."""
    together = web(6, cpu=2, priority=5, pod_affinity=(near(ZONE, app="web"),))
    labels = {"app": "lone"}
    lone = make_pods(6, "lone", cpu="500m", labels=labels, pod_affinity=(near(HOSTNAME, **labels),))
    made = planned(*together, *lone, fleets=(fleet(A, 1), fleet(C, 5)))
    of_web = Counter(p.fleet for p in made.placements if p.pod.name.startswith("web"))
    assert of_web == {A: 2}
    assert bought(made) == {A: 1}


AGENT = {"app": "agent"}


def agent() -> DaemonSet:
    """A DaemonSet whose pods the spread of others counts."""
    found = make_daemon_set(cpu="1m")
    return replace(found, namespace="ns", labels=FrozenMap(AGENT))


def beside_agents(fleets: Sequence[FleetSettings], count: int) -> Plan:
    """The plan for pods whose spread counts a daemon's pod on every node, all of which are full."""
    nodes = full_nodes(fleets)
    running = [
        make_pod(f"agent-{n.name}", node=n.name, cpu="1m", labels=AGENT, owner="DaemonSet")
        for n in nodes
        if isinstance(n, Node)
    ]
    pods = make_pods(
        count, "web", cpu=3, labels=AGENT, topology_spread=(spread(ZONE, 1, app="agent"),)
    )
    return planned(*nodes, *running, *pods, fleets=fleets, daemon_sets=(agent(),))


@pytest.mark.parametrize("pods", [1, 3])
def test_no_node_is_bought_whose_own_daemon_closes_the_zone(pods: int) -> None:
    """The daemon of the new node fills the zone to the skew: the pod was refused, the node idle."""
    made = beside_agents((fleet(A, 1), fleet(B)), pods)
    assert bought(made) == {}
    assert {r.code for u in made.unplaceable for r in u.reasons} == {"topology-spread"}


def test_pods_are_placed_beside_daemons_as_far_as_these_leave_them_room() -> None:
    """Nodes in both zones bring a daemon each, which leaves the spread as it was."""
    made = beside_agents((fleet(A), fleet(B)), 2)
    assert bought(made) == {A: 1, B: 1}
    assert placed(made) == {"web-0", "web-1"}
