"""Rules between pods and those of DaemonSets, which new nodes come with."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.cluster import DaemonSet, PodAffinityTerm
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, RaiseLimits
from tests.builders import (
    HOSTNAME,
    ZONE,
    make_daemon_set,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
)

FLEET = make_fleet_settings(cpu=4, memory="16Gi", over_subscription=0.0)


def cache(**changed: Any) -> DaemonSet:
    """A DaemonSet whose pods are labelled."""
    return replace(make_daemon_set(cpu="100m", **changed), labels=FrozenMap({"app": "cache"}))


def near_cache(key: str = HOSTNAME) -> tuple[PodAffinityTerm, ...]:
    """A rule about the DaemonSet's pods."""
    return (replace(near(key, app="cache"), namespaces=frozenset({"kube-system"})),)


def planned(daemon: DaemonSet, *objects: Any, fleet: Any = FLEET) -> Plan:
    """The plan with this DaemonSet."""
    return plan(make_snapshot(*objects, daemon_sets=(daemon,)), make_settings(fleet))


@pytest.mark.parametrize("key", [HOSTNAME, ZONE])
@pytest.mark.parametrize("running", [False, True])
def test_pods_near_a_daemons_pod_get_nodes(key: str, *, running: bool) -> None:
    """Each new node comes with one, but the pods stayed pending."""
    fleet = replace(FLEET, zone="us-west-2a")
    there: list[Any] = []
    if running:
        full = make_pod("full", node="n", cpu="3800m")
        there = [make_node("n", fleet), full]
    pods = make_pods(6, cpu="1200m", pod_affinity=near_cache(key))
    made = planned(cache(), *there, *pods, fleet=fleet)
    assert made.unplaceable == ()
    assert made.fleets[0].target == 2 + running


def test_pods_of_several_sizes_near_daemons_are_bought_for_together() -> None:
    """As the rule holds on every new node, it is no reason to buy node by node."""
    small = make_fleet_settings("small", cpu=2, price="0.10", over_subscription=0.0)
    large = make_fleet_settings("large", cpu=16, memory="64Gi", price="0.40", over_subscription=0.0)
    pods = make_pods(15, cpu=1, pod_affinity=near_cache())
    snapshot = make_snapshot(*pods, daemon_sets=(cache(),))
    made = plan(snapshot, make_settings(small, large))
    assert made.unplaceable == ()
    assert {fleet.fleet: fleet.target for fleet in made.fleets}["primary-large"] == 1


def test_pods_near_daemons_that_new_nodes_lack_wait() -> None:
    """The DaemonSet selects no node of the fleet."""
    made = planned(cache(node_selector={"disk": "fast"}), make_pod(pod_affinity=near_cache()))
    assert made.fleets[0].target == 0
    assert [r.code for r in made.unplaceable[0].reasons] == ["pod-affinity"]


def test_no_node_is_bought_for_pods_that_share_none_with_a_daemon() -> None:
    """Each new node comes with one: a node that could never help was bought."""
    made = planned(cache(), *make_pods(3, pod_anti_affinity=near_cache()))
    assert made.fleets[0].target == 0
    assert {r.code for u in made.unplaceable for r in u.reasons} == {"pod-anti-affinity"}


def test_no_node_is_bought_for_pods_that_a_daemon_keeps_away() -> None:
    """Its own anti-affinity counts on new nodes too."""
    apart = replace(near(HOSTNAME, app="web"), namespaces=frozenset({"ns"}))
    daemon = cache(pod_anti_affinity=(apart,))
    made = planned(daemon, make_pod("web", labels={"app": "web"}), make_pod("other"))
    assert made.fleets[0].target == 1
    assert [unplaceable.pod.name for unplaceable in made.unplaceable] == ["web"]


def test_labels_of_daemons_are_read_from_their_pods_where_nothing_else_says() -> None:
    """A snapshot may come without DaemonSets."""
    there = make_pod(
        "cache-1", node="n", namespace="kube-system", labels={"app": "cache"}, cpu="100m",
        owner="DaemonSet",
    )  # fmt: skip
    full = make_pod("full", node="n", cpu="3800m")
    waiting = make_pod("waiting", cpu=1, pod_affinity=near_cache())
    made = plan(make_snapshot(make_node("n", FLEET), there, full, waiting), make_settings(FLEET))
    assert made.unplaceable == ()
    assert made.fleets[0].target == 2


CHEAP = make_fleet_settings("small", cpu=4, price="0.10", zone="us-west-2a")
DEAR = make_fleet_settings("large", cpu=8, price="0.40", zone="us-west-2a")
KEPT_OFF_WEB = (replace(near(HOSTNAME, app="web"), namespaces=frozenset({"ns"})),)
ZONE_KEPT_OFF_WEB = (replace(near(ZONE, app="web"), namespaces=frozenset({"ns"})),)


def on(fleet: FleetSettings, **changed: Any) -> DaemonSet:
    """A DaemonSet that runs on the nodes of one fleet."""
    return cache(node_selector={"fleet": fleet.name}, **changed)


@pytest.mark.parametrize(
    ("daemon", "rules"),
    [
        (on(CHEAP), {"pod_anti_affinity": near_cache()}),
        (on(CHEAP), {"pod_anti_affinity": near_cache(ZONE)}),
        (on(CHEAP, pod_anti_affinity=KEPT_OFF_WEB), {}),
        (on(CHEAP, pod_anti_affinity=ZONE_KEPT_OFF_WEB), {}),
        (on(DEAR), {"pod_affinity": near_cache()}),
        (on(DEAR), {"pod_affinity": near_cache(ZONE)}),
    ],
)
@pytest.mark.parametrize("nodes", [1, None])
def test_fleet_whose_daemons_suit_the_pods_serves_them(
    daemon: DaemonSet, rules: dict[str, Any], nodes: int | None
) -> None:
    """The cheaper fleet's nodes in the same zone refuse the pods: these waited for ever.

    Under a limit the node that was dropped again had used it up.
    """
    pods = make_pods(2, "web", cpu="100m", labels={"app": "web"}, **rules)
    limits = RaiseLimits(nodes_per_cycle=nodes)
    snapshot = make_snapshot(*pods, daemon_sets=(daemon,))
    made = plan(snapshot, make_settings(CHEAP, DEAR, raise_limits=limits))
    assert made.unplaceable == ()
    assert {fleet.fleet: fleet.target for fleet in made.fleets} == {CHEAP.name: 0, DEAR.name: 1}


def test_bound_and_reasons_know_what_daemons_keep_off() -> None:
    """The reasons named a fleet that had none, and a bound below what any node costs."""
    pods = make_pods(2, "web", cpu="100m", labels={"app": "web"}, pod_anti_affinity=near_cache())
    full = replace(DEAR, max_capacity=0)
    snapshot = make_snapshot(*pods, daemon_sets=(on(CHEAP),))
    made = plan(snapshot, make_settings(CHEAP, DEAR))
    assert made.cost.hourly_usd_lower_bound == made.cost.hourly_usd_after > 0
    made = plan(snapshot, make_settings(CHEAP, full))
    assert {(r.fleet, r.code) for u in made.unplaceable for r in u.reasons} == {
        (CHEAP.name, "pod-anti-affinity"),
        (full.name, "max-capacity"),
    }
