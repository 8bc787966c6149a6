"""On which rows headroom is placed: rows that stay anyway first, cheap ones before expensive ones.

Nothing else ends a node that holds only headroom, so an expensive one would be paid for without
end: its headroom moves as soon as cheaper nodes can be bought for it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from reconciler.model.cluster import Node
from reconciler.model.ids import FleetKey
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.blockers.nodes import empty_node_blocker
from reconciler.planner.disruption.drains.actions import terms_of
from reconciler.planner.disruption.drains.idleness import is_empty
from reconciler.planner.disruption.limits.disruption_budgets import DisruptionBudgets
from reconciler.planner.disruption.saving import SAVING_NANO_USD_MIN, SAVING_PERCENT_MIN
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.fill import free_share
from reconciler.planner.rules import judge_of


def rows_in_order(builder: PlanBuilder) -> IntArray:
    """Return the rows in the order in which pieces are placed on them.

    The fullest first, as emptier ones can leave. Rows without pods count as equally full, whatever
    their size: of these the ones that their fleet's minimum keeps anyway come first, then the
    cheaper ones.
    """
    view, sim = builder.view, builder.sim
    owners = view.inventory.fleet_of_node
    kept = np.zeros(sim.rows, dtype=np.bool_)
    price = np.full(sim.rows, np.iinfo(np.int64).max)
    share = free_share(sim)
    keys = {row: owners[name] for name, row in view.row_of.items() if name in owners}
    keys |= {row: planned.key for row, planned in builder.planned_nodes.items()}
    for row, key in keys.items():
        offer = view.offers[key]
        price[row] = offer.compared_nano_usd if offer.priced else price[row]
        kept[row] = builder.size_of(key) <= view.statuses[key].min
        node = view.nodes.get(builder.row_name(row))
        if row not in builder.used_rows and (node is None or is_empty(builder, node)):
            share[row] = np.inf
    return np.lexsort((price, ~kept, share))


def could_be_cheaper(
    builder: PlanBuilder, usable: Sequence[FleetStatus], laid: Iterable[int]
) -> dict[int, int]:
    """Return which of these rows are empty nodes that could leave if the headroom were elsewhere.

    With consolidation these are rows for which a fleet has cheaper nodes; with spot return, nodes
    that stand in for a spot fleet that is back. The most expensive ones come first.

    Args:
        builder: The plan; the headroom on the rows is not noted in it yet.
        usable: The fleets that are asked for headroom.
        laid: Rows on which it would be placed.

    Returns:
        The price of each row, in nano-USD per hour.
    """
    view, found, going = builder.view, dict[int, int](), Counter[FleetKey]()
    returning = {
        n.node.name
        for spot_return in view.spot_returns
        if not spot_return.waits
        for n in spot_return.nodes
    }
    budgets: DisruptionBudgets | None = None
    for row in laid:
        name = builder.row_name(row)
        key = view.inventory.fleet_of_node.get(name)
        if key is None or not (view.settings.consolidation or name in returning):
            continue
        offer, status = view.offers[key], view.statuses[key]
        kept = builder.size_of(key) - going[key] <= status.min
        if kept or not offer.priced or not _could_leave(builder, view.nodes[name], status):
            continue
        if any(_costs_less(builder, each.key, offer.nano_usd_per_hour) for each in usable):
            budgets = budgets or DisruptionBudgets(view)
            if not budgets.allow_none(key, "empty"):
                found[row] = offer.nano_usd_per_hour
                going[key] += 1
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def is_worth(nano_usd_before: int, nano_usd_after: int) -> bool:
    """Return whether headroom is moved for this saving per hour."""
    saved = nano_usd_before - nano_usd_after
    least = max(SAVING_NANO_USD_MIN, nano_usd_before * SAVING_PERCENT_MIN // 100)
    return saved >= least


def _could_leave(builder: PlanBuilder, node: Node, status: FleetStatus) -> bool:
    """Return whether the node is removed by its idle time once it holds no headroom.

    A spare of `type_spares` is as well, after its `type_idle_threshold`.
    """
    scale_in = status.settings.scale_in
    if not (is_empty(builder, node) and scale_in.empty_at_once_max):
        return False
    judge = judge_of(terms_of(scale_in), builder.budgets.coverage, builder.view.at)
    return empty_node_blocker(builder.view, judge, node, status) is None


def _costs_less(builder: PlanBuilder, key: FleetKey, nano_usd: int) -> bool:
    """Return whether the fleet may have one more node, and it costs less than that."""
    offer, status = builder.view.offers[key], builder.view.statuses[key]
    if not offer.priced or (status.max is not None and builder.size_of(key) >= status.max):
        return False
    return is_worth(nano_usd, offer.nano_usd_per_hour)
