"""Of more candidates than one plan can look at every one has its turn (docs/scale-in.md)."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.model.actions import REPLACEMENT_ASKED, AnnotateNode, SetCapacity, TaintNode
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    NOW,
    ZONE,
    ago,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import (
    full,
    make_scene_fleet,
    on,
    planned,
    told,
    unneeded,
)

DAY = 86_400.0
STUCK = make_fleet_settings(
    "db", expire_after_seconds=DAY, zones=("us-west-2a", "us-west-2b"), max_capacity=30
)
AGING = make_scene_fleet(expire_after_seconds=DAY)


def aged(name: str, fleet: FleetSettings, days: float) -> Node:
    """A node of a certain age."""
    return make_node(name, fleet, created_at=ago(days * DAY), ready_changed_at=ago(days * DAY))


def stuck(count: int) -> list[Node | Pod]:
    """Expired nodes whose pods fit nowhere: their volumes are of one zone, the fleet is of two."""
    names = [f"db{number:02}" for number in range(count)]
    selector = {ZONE: "us-west-2a"}
    pods = [on(name, cpu="3900m", node_selector=selector) for name in names]
    return [*(aged(name, STUCK, 9) for name in names), *pods]


@pytest.mark.parametrize("apart_seconds", [2, 10, 30, 60])
@pytest.mark.parametrize("nodes", [25, 60])
@pytest.mark.parametrize("node", [unneeded("a", AGING), aged("a", AGING, 2)])
def test_nodes_that_can_never_be_replaced_leave_turns_for_the_others(
    node: Node, nodes: int, apart_seconds: int
) -> None:
    """Twenty of them, of one fleet, would end scale-in and replacements of all other fleets."""
    settings = make_settings(STUCK, AGING)
    objects = [*stuck(nodes), node, on("a", cpu="300m"), make_node("b", AGING), full("b")]
    times = [NOW + timedelta(seconds=number * apart_seconds) for number in range(40)]
    made = (
        planned(settings, *objects, at=at, previous_at=at - timedelta(seconds=apart_seconds))
        for at in times
    )
    assert any("a" in told(each, TaintNode) for each in made)


def test_node_in_whose_place_another_was_asked_for_is_looked_at_until_that_came() -> None:
    """Every turn would ask for one more, beyond what may be emptied at once."""
    fleets = [make_scene_fleet(size=f"w{n:02}", expire_after_seconds=DAY) for n in range(12)]
    nodes = {fleet.name: aged(fleet.name, fleet, 2) for fleet in fleets}
    pods = [on(name, cpu="3900m", node_selector={"fleet": name}) for name in nodes]
    targets = {**dict.fromkeys(nodes, 1), STUCK.name: 25}
    for number in range(30):
        objects = [*nodes.values(), *pods, *stuck(25)]
        at = NOW + timedelta(seconds=number * 10)
        for action in _planned(objects, [*fleets, STUCK], targets, at).actions:
            if isinstance(action, SetCapacity):
                targets[action.fleet] = action.to_capacity
            if isinstance(action, AnnotateNode) and action.value and action.node in nodes:
                node = nodes[action.node]
                noted = FrozenMap({**node.annotations, action.key: action.value})
                nodes[action.node] = replace(node, annotations=noted)
    assert sum(targets.values()) == 25 + 12 + 1
    assert len([n for n in nodes.values() if REPLACEMENT_ASKED in n.annotations]) == 1


def _planned(
    objects: list[Node | Pod], fleets: list[FleetSettings], targets: dict[str, int], at: datetime
) -> Plan:
    """The plan when EC2 has not launched anything that was asked for."""
    lives = {fleet.name: make_fleet(fleet, targets[fleet.name]) for fleet in fleets}
    nodes = [o for o in objects if isinstance(o, Node)]
    instances = [make_instance(node, lives[node.labels["fleet"]]) for node in nodes]
    cloud = make_cloud(*lives.values(), instances=instances, instances_known=True)
    before = at - timedelta(seconds=10)
    snapshot = make_snapshot(*objects, cloud=cloud, at=at, previous_at=before)
    return plan(snapshot, make_settings(*fleets))
