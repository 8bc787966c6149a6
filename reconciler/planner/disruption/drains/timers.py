"""The timer `unneeded-since`: started when a node becomes unneeded, removed once it is needed."""

from reconciler.model.actions import UNNEEDED_SINCE
from reconciler.model.cluster import Node
from reconciler.model.text import rfc3339
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.drains.actions import annotate


def start_timer(builder: PlanBuilder, node: Node, because: str) -> None:
    """Start the timer of the node at the time of the plan."""
    noted = rfc3339(builder.view.at)
    builder.change_nodes(annotate(node, UNNEEDED_SINCE, noted, "scale-in", because))


def stop_timer(builder: PlanBuilder, node: Node, because: str = "the node is used again") -> None:
    """Stop the timer of a node that is needed, if one runs."""
    if UNNEEDED_SINCE in node.annotations:
        builder.change_nodes(annotate(node, UNNEEDED_SINCE, None, "scale-in", because))
