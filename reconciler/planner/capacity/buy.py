"""Buying capacity: a purchase in bulk, and other ways to buy the same where they may be better."""

from dataclasses import replace

from reconciler.planner.capacity.bulk import buy_in_bulk
from reconciler.planner.capacity.bundles import Bundles, stranded
from reconciler.planner.capacity.problem.node_rules import most_beside_even
from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.capacity.problem.purchase import (
    Purchase,
    PurchaseRequest,
    leaves_fewer,
    restore,
)
from reconciler.planner.placement.simulation import Simulation


def buy(sim: Simulation, request: PurchaseRequest) -> Purchase:
    """Serve pods from new nodes; rows and reservations stay in the simulation.

    Where pods are left that must share a node with others, those get one node together if that
    leaves fewer.
    """
    mark = sim.fork()
    purchase = _cheaper_if_even(sim, request)
    bundles = stranded(sim, request.wants, purchase.left)
    if not bundles:
        return purchase
    sim.revert(mark)
    together = Bundles(sim, request.table, request.wants, request.budget)
    together.buy(bundles)
    if together.purchase.rows:
        together.fill_up(request.wants)
        rest = replace(request.again(*together.rest(request.wants)), budget=together.budget)
        other = together.with_rest(buy_in_bulk(sim, rest))
        if leaves_fewer(other, purchase):
            return other
    restore(sim, mark, request.table, purchase)
    return purchase


def _cheaper_if_even(sim: Simulation, request: PurchaseRequest) -> Purchase:
    """Return a purchase, or a cheaper one whose nodes a spread by hostname fills like old nodes."""
    even = {c.number: most_beside_even(sim, c) for c, _ in request.wants}
    most = {number: cap for number, cap in even.items() if cap is not None}
    mark = sim.fork()
    purchase = buy_in_bulk(sim, request)
    if not most or len(purchase.rows) <= 1:
        return purchase
    sim.revert(mark)
    other = buy_in_bulk(sim, request.again(request.wants, request.table), most)
    if other.nano_usd < purchase.nano_usd and not leaves_fewer(purchase, other):
        other.forget_proofs()
        return other
    restore(sim, mark, request.table, purchase)
    return purchase


def buy_preferring(sim: Simulation, request: PurchaseRequest) -> Purchase:
    """Buy as `buy` does, from offers without a penalty where that costs little more.

    Where limits leave pods without a node then, penalties are passed over.
    """
    table = request.table
    mark = sim.fork()
    purchase = buy(sim, request)
    short = purchase.over_budget or any(table.feasible(each).any() for each, _ in purchase.left)
    if not (table.penalised and short):
        return purchase
    sim.revert(mark)
    plain = OfferTable(sim, [replace(offer, penalty_nano_usd=0) for offer in table.offers])
    return buy(sim, request.again(request.wants, plain))
