"""What plans may buy: the next nodes of each fleet, and how many."""

from collections.abc import Iterable

from reconciler.model.ids import FleetKey
from reconciler.model.saved_state import InterruptedPool
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.balancing import similar_offers
from reconciler.planner.capacity.problem.problem import Balanced, Offer
from reconciler.planner.capacity.problem.purchase import PurchaseLimits
from reconciler.planner.cost_limits import CostLimit, cost_limits
from reconciler.planner.fleets.interrupted_pools import interrupted_of, penalty_nano_usd
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.similar import likeness_of
from reconciler.planner.placement.arrays import UNLIMITED
from reconciler.planner.placement.filters import resources
from reconciler.planner.raise_limits import RaiseLimit, raise_limits
from reconciler.planner.reservations import WaitingClass
from reconciler.planner.view import ClusterView


def offer_of(builder: PlanBuilder, status: FleetStatus) -> Offer:
    """Return the fleet's next nodes as an offer."""
    node = builder.view.offers[status.key]
    target = builder.size_of(status.key)
    return Offer(
        node=node,
        most=UNLIMITED if status.max is None else max(0, status.max - target),
        vector=builder.sim.allocatable_of(node.row),
        over_subscription=round(status.settings.over_subscription * resources.WHOLE),
        priority=status.settings.priority,
        penalty_nano_usd=penalty_nano_usd(
            node.nano_usd_per_hour, *_pools(builder.view, status.key)
        ),
        balanced=_balanced(builder, status, target),
    )


def suits_class(builder: PlanBuilder, waiting: WaitingClass, status: FleetStatus) -> bool:
    """Return whether the fleet's new nodes fit the class, ignoring whether it is available."""
    node = builder.view.offers[status.key]
    if builder.sim.refusal(waiting.pod_class, builder.sim.node_kind_of(node.row)):
        return False
    offered = builder.sim.allocatable_of(node.row)
    return bool((waiting.pod_class.requests <= offered).all())


def _balanced(builder: PlanBuilder, status: FleetStatus, size: int) -> Balanced | None:
    balance = builder.view.settings.balance
    if balance is None:
        return None
    return Balanced(
        likeness=likeness_of(status, builder.view.offers[status.key], balance),
        any_resources=bool(balance.labels),
        size=size,
    )


def evened_out_with(builder: PlanBuilder, bought: FleetStatus) -> str:
    """Return in words with which fleets the sizes of one are balanced; empty if with none."""
    if builder.view.settings.balance is None:
        return ""
    others = [
        s
        for s in builder.view.inventory.fleets
        if s.key.region == bought.key.region and s != bought
    ]
    offers = [offer_of(builder, status) for status in (bought, *others)]
    names = [offers[i].node.key.name for i in similar_offers(offers, 0)[1:]]
    if not names:
        return ""
    more = f" and {len(names) - SHOWN_FLEETS} more" if len(names) > SHOWN_FLEETS else ""
    return f"; its size is balanced with {', '.join(names[:SHOWN_FLEETS])}{more}"


SHOWN_FLEETS = 3
"""How many similar fleets are named; the others are counted."""


def _pools(view: ClusterView, key: FleetKey) -> tuple[int, int]:
    """Return from how many spot pools a fleet launches, and how many of them were interrupted."""
    count, interrupted = _interrupted(view, key)
    return count, len(interrupted)


def _interrupted(view: ClusterView, key: FleetKey) -> tuple[int, tuple[InterruptedPool, ...]]:
    known = view.inventory.interrupted_pools
    if not known or not view.statuses[key].settings.spot:
        return 1, ()
    return interrupted_of(view.offers[key].row.variants, known)


SHOWN_POOLS = 2
"""How many pools are named; the others are counted."""


def preferred_less(builder: PlanBuilder, bought: FleetStatus) -> str:
    """Return in words which pools of other fleets of the sector were interrupted; empty if none."""
    view = builder.view
    if not view.inventory.interrupted_pools:
        return ""
    others = [
        status
        for status in view.inventory.fleets
        if status.settings.sector == bought.settings.sector and status.key != bought.key
    ]
    own = set(_interrupted(view, bought.key)[1])
    interrupted_pools = {
        pool for status in others for pool in _interrupted(view, status.key)[1]
    } - own
    named = [f"{pool.instance_type} in {pool.zone}" for pool in sorted(interrupted_pools)]
    if not named:
        return ""
    shown = ", ".join(named[:SHOWN_POOLS])
    more = f" and {len(named) - SHOWN_POOLS} more" if len(named) > SHOWN_POOLS else ""
    return f"; {shown}{more} preferred less, as EC2 interrupted spot instances there"


def purchase_limits(builder: PlanBuilder, *sectors: str) -> PurchaseLimits:
    """Return what may still be bought, by the cost limits of cluster and sectors, and per plan."""
    return limits_left(raise_limits(builder), cost_limits(builder, *sectors))


def limits_left(raised: Iterable[RaiseLimit], costs: Iterable[CostLimit]) -> PurchaseLimits:
    """Return what these limits leave."""
    raised = tuple(raised)
    money = [limit.left for limit in costs]
    money += [limit.left for limit in raised if limit.money]
    nodes = [limit.left for limit in raised if not limit.money]
    return PurchaseLimits(
        nano_usd_per_hour=min(money, default=None), nodes=min(nodes, default=None)
    )
