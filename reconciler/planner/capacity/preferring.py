"""Buying where some offers are preferred less: that may cost a little, and never a pod its node."""

from collections.abc import Sequence
from dataclasses import replace

from reconciler.planner.capacity.buy import buy
from reconciler.planner.capacity.problem.items import OfferTable, Want
from reconciler.planner.capacity.problem.purchase import Budget, Purchase
from reconciler.planner.placement.simulation import Simulation
from reconciler.planner.settings import Expander


def buy_preferring(
    sim: Simulation,
    wants: Sequence[Want],
    table: OfferTable,
    expander: Expander,
    budget: Budget,
    search_seconds: float,
) -> Purchase:
    """Serve `wants` as `buy` does, from offers without a penalty where that costs little more.

    Where limits leave pods without a node then, penalties are passed over.
    """
    mark = sim.fork()
    purchase = buy(sim, wants, table, expander, budget, search_seconds)
    short = purchase.over_budget or any(table.feasible(each).any() for each, _ in purchase.left)
    if not (table.penalised and short):
        return purchase
    sim.revert(mark)
    plain = OfferTable(sim, [replace(offer, penalty_nano_usd=0) for offer in table.offers])
    return buy(sim, wants, plain, expander, budget, search_seconds)
