"""Why pods get no node that the rules would allow: limits on purchases, or higher priorities."""

from typing import NamedTuple

from reconciler.model.text import counted_noun, rfc3339
from reconciler.model.unplaceable import ReasonKind
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.cost_limits import cost_limits
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.money import usd
from reconciler.planner.offers import limits_left
from reconciler.planner.policies.scale_up.closed_fleets import Found
from reconciler.planner.raise_limits import exhausted, raise_limits

_LEFT_OUT: Found = (
    "higher-priority",
    "with a node in this zone, spreads would refuse their places to pods of higher priority",
    "",
)


class LimitsReached:
    """The limits on purchases for one sector, after all purchases of the plan.

    Thousands of kinds of pods ask about hundreds of fleets: what all fleets share is found once.

    Args:
        builder: The plan so far.
        sector: The sector of the fleets.
        over_limits: Whether a limit on purchases left something out.
    """

    def __init__(self, builder: PlanBuilder, sector: str, *, over_limits: bool) -> None:
        self._builder = builder
        self._over_limits = over_limits
        self._raises = raise_limits(builder) if over_limits else ()
        self._costs = tuple(cost_limits(builder, sector)) if over_limits else ()
        self._left = limits_left(self._raises, self._costs)

    def of(self, status: FleetStatus) -> "FleetLimits":
        """Return what prevents one more node of the fleet."""
        price = self._builder.view.offers[status.key].nano_usd_per_hour
        limit = self._exceeded(price) if self._over_limits else None
        affordable = not self._over_limits or self._left.allows(price)
        return FleetLimits(limit=limit, limit_if_left_out=_LEFT_OUT if affordable else limit)

    def _exceeded(self, price: int) -> Found:
        """Return the limit that does not allow one more node at this price."""
        limit = exhausted(self._raises, price)
        if limit is None or any(cost.left < price for cost in self._costs):
            shown = usd(price)
            return (
                "max-cost",
                f"another node at {shown} USD per hour would exceed max_hourly_usd",
                "",
            )
        most = (
            f"{usd(limit.most)} USD per hour" if limit.money else counted_noun(limit.most, "node")
        )
        span = "one plan" if limit.eases_at is None else "one hour"
        later = "the next plan continues"
        if limit.below_one_node(price):
            later = f"a node at {usd(price)} USD per hour is beyond that in every plan"
        elif limit.eases_at is not None:
            later = f"the first of them stop counting at {rfc3339(limit.eases_at)}"
        rise = f"targets may rise by {most} for pods and headroom in {span}"
        kind: ReasonKind = "below-one-node" if limit.below_one_node(price) else ""
        return "raise-limit", f"{rise} (raise_limits.{limit.key}); {later}", kind


class FleetLimits(NamedTuple):
    """The code, the numbers and the kind of what prevents one more node of a fleet."""

    limit: Found | None
    """None if no limit does."""
    limit_if_left_out: Found | None
    """The same for pods that were left out for the sake of higher priorities."""
