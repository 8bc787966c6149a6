"""Asks the planner whether a pod fits a node that exists, when nothing can be bought."""

from typing import Any

from reconciler.model.cluster import Node, Pod
from reconciler.planner.planner import plan
from tests.builders import make_fleet_settings, make_settings, make_snapshot

FLEET = make_fleet_settings(max_capacity=0)


def places(*objects: Node | Pod, **changed: Any) -> dict[str, str]:
    """Waiting pods to the nodes that take them."""
    made = plan(make_snapshot(*objects, **changed), make_settings(FLEET))
    return {p.pod.name: str(p.node) for p in made.placements}


def fits(pod: Pod, node: Node, *others: Node | Pod, **changed: Any) -> bool:
    """Whether the pod goes to the node, the others being there."""
    return places(pod, node, *others, **changed).get(pod.key.name) == node.name
