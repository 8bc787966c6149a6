"""The order in which a rolling update chooses the nodes of its next batch."""

from collections.abc import Iterator

from reconciler.model.cluster import Node
from reconciler.planner.clocks import decided_at
from reconciler.planner.disruption.disruption_context import DisruptionContext
from reconciler.planner.disruption.drains.actions import last_failure
from reconciler.planner.disruption.replacement.consolidator import asked_for
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.updates.crash_loops import is_crashing
from reconciler.planner.fleets.updates.update import Update
from reconciler.planner.nodes.drain_taints import is_draining


def drifted_in_order(
    context: DisruptionContext, status: FleetStatus, update: Update
) -> Iterator[Node]:
    """Yield the drifted nodes in use: those that failed least often first, then the oldest.

    Until the version is proven, nodes with a pod in a crash loop come after those without: on the
    first new node such a pod would halt the update, as if the version were to blame.

    An empty node that its fleet can do without is removed by its idle time: it needs no
    replacement. One that is headroom counts as in use, because only a batch would end it.
    """
    view, kept_free = context.view, context.builder.kept_free
    now = decided_at(view.snapshot, status.nodes)

    def order(node: Node) -> tuple[object, ...]:
        failures, pods = _failures(context, node, update), view.pods_on.get(node.name, ())
        crashes = not update.canary.proven and any(is_crashing(pod, now) for pod in pods)
        return failures, crashes, node.created_at is None, node.created_at or view.at, node.name

    for node in sorted((view.nodes[name] for name in update.old), key=order):
        used = node.name in view.nodes_in_use or view.row_of[node.name] in kept_free
        if not is_draining(node) and (
            used or not context.removal_quota.allows(status.key, node.name)
        ):
            yield node


def _failures(context: DisruptionContext, node: Node, update: Update) -> int:
    """Return how often within a day a new node did not take the pods, or the drain failed."""
    noted = asked_for(context.view, node, update.version), last_failure(context.view, node)
    return max((each.count for each in noted if each is not None), default=0)
