"""Pods that must share a node with others, and get nodes that take all of them."""

from collections import Counter
from dataclasses import replace

import pytest

from reconciler.model.cluster import Pod
from reconciler.planner.capacity.bundles import NODES_MAX
from reconciler.planner.planner import plan
from tests.builders import (
    HOSTNAME,
    ZONE,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
    spread,
)
from tests.unit.planner.placed import places


def store_and_web(replicas: int) -> list[Pod]:
    """The example of Kubernetes' page on affinity: a web server beside each store."""
    stores = make_pods(
        replicas,
        "store",
        cpu="500m",
        labels={"app": "store"},
        pod_anti_affinity=(near(HOSTNAME, app="store"),),
    )
    webs = make_pods(
        replicas,
        "web",
        cpu="1900m",
        labels={"app": "web"},
        pod_affinity=(near(HOSTNAME, app="store"),),
        pod_anti_affinity=(near(HOSTNAME, app="web"),),
    )
    return [*stores, *webs]


@pytest.mark.parametrize("replicas", [17, NODES_MAX, NODES_MAX + 10])
def test_followers_of_many_nodes_have_room(replicas: int) -> None:
    """From the 17th node on the store gets a node on which its web server never fits."""
    two = make_fleet_settings("two", cpu=2, price="0.10")
    four = make_fleet_settings("four", cpu=4, price="0.20")
    made = plan(make_snapshot(*store_and_web(replicas)), make_settings(two, four))
    too_small = [name for name, place in places(made).items() if place[0] == "primary-two"]
    assert not too_small
    # Those beyond what one plan buys may wait, but together.
    waiting = Counter(unplaceable.pod.name.partition("-")[2] for unplaceable in made.unplaceable)
    assert set(waiting.values()) <= {2}


def test_small_groups_are_not_torn() -> None:
    """Four groups that each fit on a node of two CPUs; one pod is left, for which no node helps."""
    fleets = [
        make_fleet_settings("two", cpu=2, price="0.10"),
        make_fleet_settings("four", cpu=4, price="0.20"),
        make_fleet_settings("eight", cpu=8, memory="32Gi", price="0.40"),
    ]
    groups = (("100m", "700m"), ("700m", "100m"), ("1", "700m"), ("100m", "300m", "300m"))
    pods = [
        make_pod(
            f"w{g}x{k}-0",
            cpu=cpu,
            memory="100Mi",
            labels={"group": f"g{g}"},
            pod_affinity=(near(HOSTNAME, group=f"g{g}"),),
        )
        for g, group in enumerate(groups)
        for k, cpu in enumerate(group)
    ]
    made = plan(make_snapshot(*pods), make_settings(*fleets))
    assert [unplaceable.pod.name for unplaceable in made.unplaceable] == []


@pytest.mark.parametrize("replicas", [2, 8])
def test_followers_that_are_spread_over_zones_get_nodes_in_each(replicas: int) -> None:
    """Each further node was bought where the first one was, and took no follower there."""
    zones = [
        make_fleet_settings(size, cpu=cpu, price=price, zone=f"us-west-2{zone}")
        for size, cpu, price in (("four", 4, "0.20"), ("two", 2, "0.10"))
        for zone in "ab"
    ]
    spread_webs = [
        replace(pod, spec=replace(pod.spec, topology_spread=(spread(ZONE, app="web"),)))
        if pod.key.name.startswith("web")
        else pod
        for pod in store_and_web(replicas)
    ]
    there = [make_node(each.name, each, zone=each.zone) for each in zones[:2]]
    used = [make_pod(f"used-{node.name}", node=node.name, cpu="3800m") for node in there]
    made = plan(make_snapshot(*there, *used, *spread_webs), make_settings(*zones))
    assert made.unplaceable == ()
    nodes = [place for name, place in places(made).items() if name.startswith("web")]
    assert Counter(place[0] for place in nodes) == {each.name: replicas // 2 for each in zones[:2]}
