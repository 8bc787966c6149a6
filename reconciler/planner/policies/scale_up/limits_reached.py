"""Why pods get no node that the rules would allow: limits on purchases, or higher priorities."""

from reconciler.model.text import counted_noun, rfc3339
from reconciler.model.unplaceable import ReasonKind
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.cost_limits import cost_limits
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.money import usd
from reconciler.planner.offers import purchase_limits
from reconciler.planner.policies.scale_up.closed_fleets import Found
from reconciler.planner.raise_limits import exhausted, raise_limits

_LEFT_OUT: Found = (
    "higher-priority",
    "with a node in this zone, spreads would refuse their places to pods of higher priority",
    "",
)


def limit_reached(
    builder: PlanBuilder, status: FleetStatus, *, over_limits: bool, left_out: bool
) -> Found | None:
    """Return the code, the numbers and the kind of what prevents one more node of the fleet.

    Args:
        builder: The plan so far.
        status: The fleet.
        over_limits: Whether a limit on purchases left something out.
        left_out: Whether pods were left out for the sake of higher priorities.
    """
    price = builder.view.offers[status.key].nano_usd_per_hour
    limits = purchase_limits(builder, status.settings.sector)
    if left_out and (not over_limits or limits.allows(price)):
        return _LEFT_OUT
    return _over_the_limit(builder, status) if over_limits else None


def _over_the_limit(builder: PlanBuilder, status: FleetStatus) -> Found:
    """Return the limit that does not allow one more node of the fleet."""
    price = builder.view.offers[status.key].nano_usd_per_hour
    limits = raise_limits(builder)
    costs = cost_limits(builder, status.settings.sector)
    limit = exhausted(limits, price)
    if limit is None or any(cost.left < price for cost in costs):
        shown = usd(price)
        return "max-cost", f"another node at {shown} USD per hour would exceed max_hourly_usd", ""
    most = f"{usd(limit.most)} USD per hour" if limit.money else counted_noun(limit.most, "node")
    span = "one plan" if limit.eases_at is None else "one hour"
    later = "the next plan continues"
    if limit.below_one_node(price):
        later = f"a node at {usd(price)} USD per hour is beyond that in every plan"
    elif limit.eases_at is not None:
        later = f"the first of them stop counting at {rfc3339(limit.eases_at)}"
    rise = f"targets may rise by {most} for pods and headroom in {span}"
    kind: ReasonKind = "below-one-node" if limit.below_one_node(price) else ""
    return "raise-limit", f"{rise} (raise_limits.{limit.key}); {later}", kind
