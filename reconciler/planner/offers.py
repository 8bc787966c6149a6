"""What plans may buy: the next nodes of a fleet, and how much of them."""

from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.problem import Offer
from reconciler.planner.capacity.purchase import Budget
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.money import cost_limits
from reconciler.planner.placement.arrays import UNLIMITED
from reconciler.planner.placement.filters import resources
from reconciler.planner.raise_limits import raise_limits


def offer_of(builder: PlanBuilder, status: FleetStatus) -> Offer:
    """Return the fleet's next nodes as something to buy."""
    node = builder.view.offers[status.key]
    target = builder.size_of(status.key)
    return Offer(
        node=node,
        most=UNLIMITED if status.max is None else max(0, status.max - target),
        vector=builder.sim.offer_of(node.row),
        over_subscription=round(status.settings.over_subscription * resources.WHOLE),
        priority=status.settings.priority,
    )


def purchase_budget(builder: PlanBuilder, sector: str) -> Budget:
    """Return what may still be bought: by the cost limits of cluster and sector, and per plan."""
    raised = raise_limits(builder)
    money = [max(0, limit.left) for limit in cost_limits(builder, sector)]
    money += [limit.left for limit in raised if limit.money]
    nodes = [limit.left for limit in raised if not limit.money]
    return Budget(nano_usd_per_hour=min(money, default=None), nodes=min(nodes, default=None))
