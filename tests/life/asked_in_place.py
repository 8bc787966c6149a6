"""What a plan asks for in the place of nodes that are still there."""

import json

from reconciler.model.actions import (
    INTERRUPTION,
    REPLACEMENT_ASKED,
    REPLACEMENT_SET,
    AnnotateNode,
)
from reconciler.model.cluster import Node
from reconciler.model.plan import Plan


def new_nodes_of_sets(plan: Plan) -> int:
    """Count the new nodes that the plan asks for in the place of sets of nodes."""
    noted = {
        action.value
        for action in plan.actions
        if isinstance(action, AnnotateNode) and action.key == REPLACEMENT_SET and action.value
    }
    return sum(sum(json.loads(text)["new"].values()) for text in noted)


def is_taken_back(node: Node, plan: Plan) -> bool:
    """Whether EC2 takes the node back, as it or the plan says."""
    return INTERRUPTION in node.annotations or _notes(plan, node, INTERRUPTION)


def is_replaced(node: Node, plan: Plan) -> bool:
    """Whether new nodes are asked for in its place, by this plan or an earlier one."""
    return REPLACEMENT_ASKED in node.annotations or _notes(plan, node, REPLACEMENT_ASKED)


def _notes(plan: Plan, node: Node, key: str) -> bool:
    return any(
        isinstance(a, AnnotateNode) and a.node == node.name and a.key == key for a in plan.actions
    )
