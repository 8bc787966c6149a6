"""Timers of nodes that could go come to rest while nothing changes (docs/scale-in.md)."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random  # noqa: TID251 - clusters are named by their seed
from typing import Any

import pytest

from reconciler.model.actions import UNNEEDED_SINCE, AnnotateNode, AnyAction, TaintNode, UntaintNode
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, PlannerSettings
from tests.builders import (
    ZONE,
    ago,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
    near,
    spread,
)

SHAPES = (
    ("c-xl", 4, 8, "0.17"),
    ("m-xl", 4, 16, "0.192"),
    ("m-2xl", 8, 32, "0.384"),
    ("r-2xl", 8, 64, "0.504"),
    ("c-4xl", 16, 32, "0.68"),
    ("m-4xl", 16, 64, "0.768"),
)
SCALE_IN = ScaleInSettings(unneeded_seconds=600, settle_seconds=0, consolidate_after_seconds=0)
FLEETS = tuple(
    make_fleet_settings(
        size, cpu=cpu, memory=f"{memory_gi}Gi", pods=110, price=price, scale_in=SCALE_IN
    )
    for size, cpu, memory_gi, price in SHAPES
)
CAPACITY = {fleet.name: (cpu, gi) for fleet, (_, cpu, gi, _) in zip(FLEETS, SHAPES, strict=True)}
PLANS = 12


@dataclass(frozen=True)
class App:
    """Pods of one kind: a spread over zones or a node for each make nodes depend on each other."""

    name: str
    cpu_milli: int
    memory_mi: int
    rule: str

    def pod(self, name: str, node: str) -> Pod:
        """One of them, on a node."""
        more: dict[str, Any] = {}
        if self.rule == "zones":
            more["topology_spread"] = (spread(ZONE, app=self.name),)
        elif self.rule == "hosts":
            more["pod_anti_affinity"] = (near("kubernetes.io/hostname", app=self.name),)
        amounts = {"cpu": f"{self.cpu_milli}m", "memory": f"{self.memory_mi}Mi"}
        return make_pod(name, node=node, labels={"app": self.name}, **amounts, **more)


def random_cluster(seed: int) -> tuple[list[Node], list[Pod], PlannerSettings]:
    """Up to 14 nodes of six shapes in three zones, each filled up to a random share."""
    draw = Random(seed)
    apps = [
        App(
            f"app-{number}",
            draw.choice([250, 500, 700, 1500, 2500]),
            draw.choice([256, 1024, 3000, 6000]),
            draw.choice(["none", "none", "zones", "hosts"]),
        )
        for number in range(8)
    ]
    nodes: list[Node] = []
    pods: list[Pod] = []
    for number in range(draw.randint(4, 14)):
        name, fleet = f"n{number:02}", draw.choice(FLEETS)
        zone = f"us-west-2{draw.choice('abc')}"
        since = f"2026-01-31T11:5{draw.randint(1, 9)}:00Z" if draw.random() < 0.4 else None
        annotations = FrozenMap({UNNEEDED_SINCE: since} if since else {})
        nodes.append(make_node(name, fleet, zone=zone, annotations=annotations))
        pods += pods_of(draw, apps, name, fleet)
    return nodes, pods, make_settings(*FLEETS, consolidation=draw.random() < 0.8)


def pods_of(draw: Random, apps: list[App], node: str, fleet: FleetSettings) -> list[Pod]:
    """Pods that fit on the node and ask for a random share of its CPU."""
    cpu, memory_gi = CAPACITY[fleet.name]
    cpu_left, memory_left = cpu * 1000, memory_gi * 1024
    least_left = cpu_left * (1 - draw.random())
    found: list[Pod] = []
    used: set[str] = set()
    for number in range(12):
        app = draw.choice(apps)
        fits = app.cpu_milli <= cpu_left and app.memory_mi <= memory_left
        if not fits or cpu_left < least_left or (app.rule == "hosts" and app.name in used):
            continue
        cpu_left, memory_left = cpu_left - app.cpu_milli, memory_left - app.memory_mi
        used.add(app.name)
        found.append(app.pod(f"{app.name}-{node}-{number}", node))
    return found


def marked(nodes: dict[str, Node], action: AnyAction) -> None:
    """Carry out what an action does to a node's marks."""
    if isinstance(action, AnnotateNode):
        node = nodes[action.node]
        kept = {k: v for k, v in node.annotations.items() if k != action.key}
        added = {} if action.value is None else {action.key: action.value}
        nodes[node.name] = replace(node, annotations=FrozenMap({**kept, **added}))
    elif isinstance(action, TaintNode):
        node = nodes[action.node]
        nodes[node.name] = replace(node, taints=(*node.taints, action.taint))
    elif isinstance(action, UntaintNode):
        nodes[action.node] = replace(nodes[action.node], taints=())


def actions_of_each_plan(seed: int) -> list[tuple[AnyAction, ...]]:
    """Plan a cluster a second at a time in which nothing changes but the marks on its nodes."""
    first, pods, settings = random_cluster(seed)
    nodes = {str(node.name): node for node in first}
    own = Counter(node.labels["fleet"] for node in first)
    live = [make_fleet(fleet, own[fleet.name]) for fleet in FLEETS]
    found: list[tuple[AnyAction, ...]] = []
    for second in range(PLANS):
        cloud = make_cloud_of(nodes.values(), *live)
        at = ago(0) + timedelta(seconds=second)
        made = plan(make_snapshot(*nodes.values(), *pods, cloud=cloud, at=at), settings)
        found.append(made.actions)
        for action in made.actions:
            marked(nodes, action)
    return found


@pytest.mark.parametrize("seed", [*range(16), 198, 252, 268, 274])
def test_timers_come_to_rest_while_nothing_changes(seed: int) -> None:
    """Each start and stop is a write to the API server and wakes the next plan."""
    every = actions_of_each_plan(seed)
    only_marks = AnnotateNode | TaintNode | UntaintNode
    if all(isinstance(a, only_marks) for actions in every for a in actions):
        assert [actions for actions in every[-4:] if actions] == []
