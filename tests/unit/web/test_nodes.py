"""Nodes on the page: what it says of each agrees with `explain node`."""

import json
from dataclasses import replace

import pytest

from reconciler.model.cluster import Node
from reconciler.model.ids import InstanceId
from reconciler.model.snapshot import CloudState, Ignored, Snapshot
from reconciler.planner.explain.explain import explain
from reconciler.planner.planner import plan
from reconciler.web.nodes import node_rows
from tests.builders import (
    HOME,
    idle,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.web.scene import Scene, fleet

FLEET = make_fleet_settings()
GROUP = make_fleet_settings(
    "workers", provider="asg", auto_scaling_group="eks-workers-1", scale_in=idle(600)
)
SETTINGS = make_settings(FLEET, GROUP)


def nodes_of_all_kinds() -> Snapshot:
    """A used node of a fleet, of a group without our labels, of nobody, and one that ends."""
    ours, ending = make_node("of-fleet", FLEET), make_node("ending", FLEET)
    of_group = make_node("of-group")
    foreign = make_node("of-nobody", FLEET, instance_id=InstanceId("i-foreign"))
    one = make_fleet(FLEET, 2)
    group = make_fleet(GROUP, 1, id="eks-workers-1")
    instances = (
        make_instance(ours, one),
        make_instance(ending, one, state="shutting-down"),
        make_instance(of_group, group),
        make_instance(foreign, make_fleet(FLEET, id="fleet-of-another-team")),
    )
    nodes = (ours, ending, of_group, foreign)
    pods = (make_pod(f"on-{node.name}", node=node.name, cpu=3) for node in nodes)
    cloud = make_cloud(one, group, instances=instances)
    return make_snapshot(*nodes, *pods, cloud=cloud)


def test_page_and_explanation_agree_on_whose_each_node_is() -> None:
    """An operator who reads "never touched" does not protect a node that is drained next."""
    snapshot = nodes_of_all_kinds()
    made = plan(snapshot, SETTINGS)
    names = [node.name for node in snapshot.cluster.nodes]
    told = explain(snapshot, SETTINGS, made, nodes=names).nodes
    shown = {row.name: (row.fleet, row.verdict, row.code) for row in node_rows(snapshot, made)}
    assert shown == {
        node_explanation.node: (
            node_explanation.fleet,
            node_explanation.verdict,
            node_explanation.code,
        )
        for node_explanation in told
    }
    assert shown == {
        "of-fleet": ("primary-small", "used", "has-pods"),
        "ending": ("primary-small", "leaves", "instance-gone"),
        "of-group": ("primary-workers", "used", "has-pods"),
        "of-nobody": ("", "foreign", "no-fleet"),
    }


@pytest.mark.parametrize(
    ("node", "level"),
    [
        (make_node("a", FLEET, labels={"fleet": "batch"}), "ok"),
        (make_node("b", labels={"fleet": "batch"}), "degraded"),
    ],
)
def test_label_of_a_node_counts_only_where_no_fleet_of_ours_has_it(node: Node, level: str) -> None:
    """Nodes of a group may have a label `fleet` of their owner's, which names no fleet of ours."""
    denied = Ignored(code="unreadable", kind="Provider", name="asg", detail="Forbidden: no")
    cloud = CloudState(fleets=(make_fleet(FLEET, 1),), regions=frozenset({HOME}), ignored=(denied,))
    seen = make_snapshot(node, cloud=cloud)
    ours = plan(make_snapshot(make_node("a", FLEET)), make_settings(FLEET)).fleet_of_node
    with Scene() as scene:
        going = frozenset({"batch"})
        scene.board.config_loaded(replace(scene.board.view.config, allow_destroy=going))
        scene.cycle(nodes=seen.cluster.nodes, cloud=cloud, fleets=(fleet(),), fleet_of_node=ours)
        assert json.loads(scene.ask("/api/status")[2])["verdict"]["level"] == level
