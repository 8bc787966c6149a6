"""One purchase in bulk: state the problem, search, put the result into the what-if cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.planner.capacity import expander as expanders
from reconciler.planner.capacity.balancing import evened_out
from reconciler.planner.capacity.bounds.fair_prices import FairPrices, fair_prices
from reconciler.planner.capacity.even_caps import EvenCaps
from reconciler.planner.capacity.follow_up import unserved
from reconciler.planner.capacity.one_by_one import NodeByNodePurchase
from reconciler.planner.capacity.placing import PackingPlacer
from reconciler.planner.capacity.problem.items import DealtItems, deal
from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.capacity.problem.problem import Problem, no_packing, state_problem
from reconciler.planner.capacity.problem.purchase import Purchase, PurchaseRequest, drop_empty
from reconciler.planner.capacity.refused_by_spreads import counts_daemons, withdraw_refused
from reconciler.planner.capacity.search import (
    SearchResult,
    by_priority,
    cheapest,
    refilled,
    shortfall,
    within,
)
from reconciler.planner.capacity.search_cache import known_or_packed, known_or_searched
from reconciler.planner.placement.arrays import UNLIMITED, FloatArray
from reconciler.planner.placement.simulation import Simulation
from reconciler.planner.settings import Expander


def buy_in_bulk(
    sim: Simulation, request: PurchaseRequest, even: EvenCaps | None = None
) -> Purchase:
    """Buy in bulk, and node by node for the pods that are left; return the purchase.

    Args:
        sim: The simulation; the new nodes and their pods stay in it.
        request: What to buy.
        even: How nodes are filled evenly by pods that spread by hostname; None if such a node has
            at most maxSkew of them.
    """
    table = request.table
    mark = sim.fork()
    wanted, refused = _parted_by_offers(request.wants, table)
    dealt = deal(sim, wanted, table)
    if even is not None:
        dealt = _capped(dealt, even)
    problem = state_problem(table.offers, dealt.items, dealt.caps).as_compared()
    search_result, over_limits = _pack(problem, request)
    purchase = PackingPlacer(sim, table).place(problem, search_result.packing)
    purchase.over_limits = over_limits
    short = bool((search_result.packing.served() < problem.counts).any())
    _withdraw_refused(sim, mark, table, purchase, short=short)
    rest = unserved(purchase, wanted)
    exact = _is_exact(dealt, table)
    whole = exact and not (rest or refused)
    if exact and not table.penalised:
        # Bounds ignore rules between kinds. They do not prove that a packing is the cheapest.
        purchase.optimal = search_result.optimal and not (dealt.stricter or over_limits or rest)
        _note_bounds(purchase, problem, search_result, whole=whole)
    if search_result.worth is not None and (search_result.settled or whole):
        purchase.worth = _by_class(problem, search_result.worth)
    if rest:
        limits = request.limits.less(purchase.nano_usd, len(purchase.rows))
        NodeByNodePurchase(sim, table, purchase, limits).serve(rest)
        drop_empty(sim, mark, table, purchase)
        # Pods that were bought for one by one may have opened a zone that the remaining ones lack.
        short = short or bool(purchase.left)
        purchase.leave(_withdraw_refused(sim, mark, table, purchase, short=short))
    purchase.left += refused
    return purchase


def _parted_by_offers(wants: Sequence[Want], table: OfferTable) -> tuple[list[Want], list[Want]]:
    """Return the pods that some offer takes, and those that none takes."""
    wanted: list[Want] = []
    refused: list[Want] = []
    for want in wants:
        (wanted if np.count_nonzero(table.feasible(want[0])) else refused).append(want)
    return wanted, refused


def _note_bounds(purchase: Purchase, problem: Problem, found: SearchResult, *, whole: bool) -> None:
    """Note what the search proved about the cost of the purchase, `optimal` of which is set.

    Args:
        purchase: What was bought.
        problem: The problem, without penalties, and with no placement rule simplified.
        found: The search's result.
        whole: Whether the purchase serves all pods that it was asked for.
    """
    if whole:
        purchase.nano_usd_least = found.nano_usd_least
    traces = _traces(problem)
    if traces:
        least = found.packing.cost(problem) if purchase.optimal else purchase.nano_usd_least
        purchase.nano_usd_least = None if least is None else max(0, least - traces)
        purchase.optimal = False
    elif whole and found.divisible is not None:
        purchase.divisible_nano_usd = found.divisible.nano_usd
        purchase.steady = _by_class(problem, found.divisible.worth)


def _traces(problem: Problem) -> int:
    """Return the largest difference between compared and real price of a penalty-free purchase.

    Nodes that cost nothing are compared by a trace of a price. A purchase has no more of them than
    pods.
    """
    most = np.minimum(problem.limits, problem.counts.sum())
    return int(((problem.prices - problem.costs) * most)[problem.useful()].sum())


def _withdraw_refused(
    sim: Simulation, mark: tuple[int, int], table: OfferTable, purchase: Purchase, *, short: bool
) -> list[Want]:
    """Remove pods that spreads refuse because they may count other pods than the dealing did.

    That happens if some pods are left out (`short`), by limits, or if a spread counts pods of
    daemons. In all other cases the packing satisfies the spreads.

    Returns:
        What was removed.
    """
    classes = (taken.pod_class for taken in purchase.taken)
    if short or counts_daemons(sim, classes, (node for _, node in purchase.rows)):
        return withdraw_refused(sim, mark, table, purchase)
    return []


def _capped(dealt: DealtItems, even: EvenCaps) -> DealtItems:
    """Return the dealt pods with the caps per node with which nodes are filled evenly.

    A cap that other classes have too stays as it is.
    """
    members: dict[int, list[int]] = {}
    for item in dealt.items:
        for group in item.groups:
            members.setdefault(group, []).append(item.pod_class.number)
    caps = list(dealt.caps)
    for group, numbers in members.items():
        if even.most.keys() >= set(numbers):
            caps[group] = max(caps[group], min(even.most[number] for number in numbers))
    items = [
        replace(
            item,
            slots=item.slots if even.offers is None else np.where(even.offers, item.slots, 0),
            groups=tuple(group for group in item.groups if caps[group] < UNLIMITED),
        )
        for item in dealt.items
    ]
    return replace(dealt, items=tuple(items), caps=tuple(caps))


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOnAllNodes:
    """Whether the given nodes hold all pods."""

    purchase: Purchase | None = None
    """The packing; None if none was found."""
    refuted: bool = False
    """Whether it is proven that there is no such packing."""


def serve_from_all(
    sim: Simulation, wants: Sequence[Want], table: OfferTable, search_seconds: float
) -> FitOnAllNodes:
    """Serve all `wants` from all nodes that the offers have.

    Rows and reservations stay in the simulation.
    """
    if not table.offers:
        return FitOnAllNodes()
    dealt = deal(sim, wants, table)
    problem = state_problem(table.offers, dealt.items, dealt.caps)
    if not problem.items or dealt.singly or problem.inflated or not problem.servable().all():
        return FitOnAllNodes()
    known = known_or_packed(problem, search_seconds)
    if known.packing is None:
        simplified = dealt.caps or _dealt_by_place(dealt, table)
        return FitOnAllNodes(refuted=known.refuted and not simplified)
    purchase = PackingPlacer(sim, table).place(problem, known.packing)
    served = sum(int(taken.amounts.sum()) for taken in purchase.taken)
    return FitOnAllNodes(purchase=purchase if served == sum(count for _, count in wants) else None)


def _by_class(problem: Problem, worth: FloatArray) -> dict[int, float]:
    """Return per class the worth of a pod: the least among the items of the class."""
    least: dict[int, float] = {}
    for item, value in zip(problem.items, worth.tolist(), strict=True):
        number = item.pod_class.number
        least[number] = min(least.get(number, value), value)
    return least


def _is_exact(dealt: DealtItems, table: OfferTable) -> bool:
    """Return whether no placement rule was simplified, so that bounds apply to the real problem."""
    if dealt.caps or dealt.singly or any(i.pod_class.volumes.shared for i in dealt.items):
        return False
    return not _dealt_by_place(dealt, table)


def _dealt_by_place(dealt: DealtItems, table: OfferTable) -> bool:
    """Return whether pods were dealt to only some of the offers that take them.

    Offers of which none may be bought do not count.
    """
    return any(
        (item.slots != table.slots(item.pod_class))[table.buyable].any() for item in dealt.items
    )


def _pack(problem: Problem, request: PurchaseRequest) -> tuple[SearchResult, bool]:
    """Return the packing to buy, and whether the limits left some nodes out."""
    if not problem.items or not problem.offers:
        return SearchResult(packing=no_packing(problem)), False
    fair, search_result = _choose(problem, request.expander, request.search_seconds)
    packing = search_result.packing
    missing = shortfall(problem, packing)
    if any(missing) and len(missing) > 1:
        packing = cheapest(problem, (packing, by_priority(problem, fair)))
    money, nodes = request.limits.nano_usd_per_hour, request.limits.nodes
    over_money = money is not None and packing.spent(problem) > money
    if over_money:
        packing = by_priority(problem, fair, money)
    over_limits = over_money or (nodes is not None and len(packing.bins) > nodes)
    affordable = within(problem, packing, request.limits)
    if len(affordable.bins) < len(packing.bins):
        # It was packed for all of its nodes: pods of higher priority may fit on these.
        packing = cheapest(problem, (affordable, refilled(problem, affordable)))
    optimal = search_result.optimal and packing is search_result.packing
    evened = evened_out(problem, packing)
    if money is None or evened.spent(problem) <= money:
        optimal = optimal and evened.cost(problem) <= packing.cost(problem)
        packing = evened
    return replace(search_result, packing=packing, optimal=optimal), over_limits


def _choose(
    problem: Problem, expander: Expander, search_seconds: float
) -> tuple[FairPrices, SearchResult]:
    """Return the fair prices of the items, and the packing that the expander chooses."""
    if expander == "cost":
        answer = known_or_searched(problem, search_seconds)
        return answer.fair, answer.found
    fair = fair_prices(problem)
    if expander == "priority":
        return fair, SearchResult(packing=expanders.by_fleet_priority(problem, search_seconds))
    return fair, SearchResult(packing=expanders.expand(problem, fair, expander))
