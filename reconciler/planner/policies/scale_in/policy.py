"""The order of scale-in (docs/scale-in.md)."""

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.soft_taints import mark_unneeded
from reconciler.planner.policies.scale_in.awaited import find_awaited
from reconciler.planner.policies.scale_in.candidates import find_candidates
from reconciler.planner.policies.scale_in.context import make_context
from reconciler.planner.policies.scale_in.empty import find_eligible, remove_empty
from reconciler.planner.policies.scale_in.under_used import remove_under_used
from reconciler.planner.policies.scale_in.under_way import finish_leaving


def propose(builder: PlanBuilder) -> None:
    """End what was being emptied, then begin with nodes that are empty, then with under-used."""
    context = make_context(builder, finish_leaving(builder))
    eligible = find_eligible(context)
    candidates = find_candidates(context)
    remove_empty(context, eligible, find_awaited(context, candidates, eligible))
    remove_under_used(context, candidates)
    mark_unneeded(builder, context.unneeded, context.not_looked_at, context.room.left)
