"""Rows of the what-if cluster for nodes that are launching already."""

from collections import Counter

from reconciler.model.ids import FleetKey
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.blockers.nodes import (
    instance_protection,
    replacement_blocker,
    termination_protection,
)


def plan_launching(builder: PlanBuilder) -> None:
    """Add a row for each launching node; for an unavailable fleet only for launched instances.

    Instances that never joined and are not replaced soon get none: EC2 launches no others for them
    meanwhile, and pods would wait without end.
    """
    view = builder.view
    dead = _never_to_come(builder)
    for status in view.inventory.fleets:
        coming = status.launching
        if status.max is not None:
            coming = max(0, min(status.current, status.max) - status.joined)
        coming = min(coming - dead[status.key], status.expected)
        if coming > 0:
            first = builder.sim.add_row(view.offers[status.key].row, coming)
            builder.plan_launching(status.key, range(first, first + coming))


def _never_to_come(builder: PlanBuilder) -> Counter[FleetKey]:
    """Return how many instances of each fleet never joined and are not replaced within the hour.

    None of them is while its fleet may end nothing, while it or its node is protected, or while
    pods may still run on it; those do not count towards the limit. One that is Ready and keeps a
    start-up taint leaves only when it may go as an idle node.
    """
    view, inventory = builder.view, builder.view.inventory
    if inventory.doubtful:
        return Counter()
    fleet_of = {
        stuck_instance.instance.id: stuck_instance.key for stuck_instance in inventory.stuck
    }
    left = {
        stuck_instance.instance.id
        for stuck_instance in inventory.stuck
        if view.statuses[stuck_instance.key].may_end_nothing
        or instance_protection(stuck_instance.instance)
        or termination_protection(view, stuck_instance.instance.id)
        or (
            stuck_instance.node is not None
            and (
                stuck_instance.node.ready
                or replacement_blocker(builder, stuck_instance.node, stuck_instance.key)
            )
        )
    }
    kept = builder.stuck_ends.kept_for_now([name for name in fleet_of if name not in left])
    return Counter(fleet_of[each] for each in [*sorted(left), *kept])
