"""Buying capacity: state the problem, search, and put the result into the what-if cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.frozen import FrozenMap
from reconciler.planner.capacity import expander as expanders
from reconciler.planner.capacity.balancing import evened_out
from reconciler.planner.capacity.bounds.fair_prices import FairPrices, fair_prices
from reconciler.planner.capacity.bundles import Bundles, stranded
from reconciler.planner.capacity.one_by_one import Singles
from reconciler.planner.capacity.problem.dealing import WAVES_MAX
from reconciler.planner.capacity.problem.items import Dealt, deal
from reconciler.planner.capacity.problem.node_rules import most_beside_even
from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.capacity.problem.problem import (
    Packing,
    Problem,
    no_packing,
    state_problem,
)
from reconciler.planner.capacity.problem.purchase import (
    Budget,
    Purchase,
    Taken,
    drop_empty,
    leaves_fewer,
    priced_row,
    restore,
)
from reconciler.planner.capacity.search import (
    Found,
    by_priority,
    cheapest,
    shortfall,
    within_budget,
    within_nodes,
)
from reconciler.planner.capacity.search_cache import known_or_packed, known_or_searched
from reconciler.planner.placement.arrays import UNLIMITED, FloatArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.fill import local_room, rules_room
from reconciler.planner.placement.filters.inter_pod_affinity import affinity_room
from reconciler.planner.placement.simulation import Simulation
from reconciler.planner.settings import Expander

_AS_DEALT: Mapping[int, int] = FrozenMap()


def buy(
    sim: Simulation,
    wants: Sequence[Want],
    table: OfferTable,
    expander: Expander,
    budget: Budget,
    search_seconds: float,
) -> Purchase:
    """Serve `wants` from new nodes; rows and reservations stay in the simulation.

    Where pods are left that must share a node with others, those get one node together if that
    leaves fewer.
    """
    mark = sim.fork()
    purchase = _cheaper_if_even(sim, wants, table, expander, budget, search_seconds)
    bundles = stranded(sim, wants, purchase.left)
    if not bundles:
        return purchase
    sim.revert(mark)
    together = Bundles(sim, table, wants, budget)
    together.buy(bundles)
    if together.purchase.rows:
        together.fill_up(wants)
        rest = _buy(sim, *together.rest(wants), expander, together.budget, search_seconds)
        other = together.with_rest(rest)
        if leaves_fewer(other, purchase):
            return other
    restore(sim, mark, table, purchase)
    return purchase


def _cheaper_if_even(
    sim: Simulation,
    wants: Sequence[Want],
    table: OfferTable,
    expander: Expander,
    budget: Budget,
    search_seconds: float,
) -> Purchase:
    """Return a purchase, or a cheaper one whose nodes a spread by hostname fills like old nodes."""
    even = {c.number: most_beside_even(sim, c) for c, _ in wants}
    most = {number: cap for number, cap in even.items() if cap is not None}
    mark = sim.fork()
    purchase = _buy(sim, wants, table, expander, budget, search_seconds)
    if not most or len(purchase.rows) <= 1:
        return purchase
    sim.revert(mark)
    other = _buy(sim, wants, table, expander, budget, search_seconds, most)
    if other.nano_usd < purchase.nano_usd and not leaves_fewer(purchase, other):
        other.forget_proofs()
        return other
    restore(sim, mark, table, purchase)
    return purchase


def _evened(dealt: Dealt, most: Mapping[int, int]) -> Dealt:
    """Return what was dealt with other caps per node for some classes, by their numbers."""
    items = [
        replace(item, groups=(), slots=np.minimum(item.slots, most[item.pod_class.number]))
        if item.pod_class.number in most
        else item
        for item in dealt.items
    ]
    return replace(dealt, items=tuple(items))


def _buy(
    sim: Simulation,
    wants: Sequence[Want],
    table: OfferTable,
    expander: Expander,
    budget: Budget,
    search_seconds: float,
    most: Mapping[int, int] = _AS_DEALT,
) -> Purchase:
    """Return one purchase in bulk, and node by node for the pods that it leaves."""
    mark = sim.fork()
    wanted = [want for want in wants if np.count_nonzero(table.feasible(want[0]))]
    dealt = _evened(deal(sim, wanted, table), most)
    problem = state_problem(table.offers, dealt.items, dealt.caps).as_compared()
    found, over_budget = _pack(problem, expander, budget, search_seconds)
    purchase = _Carrier(sim, table).carry(problem, found.packing)
    purchase.over_budget = over_budget
    exact_problem = _is_exact(dealt, table) and not table.penalised
    served: dict[int, int] = {}
    for taken in purchase.taken:
        number = taken.pod_class.number
        served[number] = served.get(number, 0) + int(taken.amounts.sum())
    rest = [(c, n - served.get(c.number, 0)) for c, n in wanted if n > served.get(c.number, 0)]
    purchase.optimal = found.optimal and not over_budget and exact_problem and not rest
    whole = not rest and len(wanted) == len(wants) and _is_exact(dealt, table)
    if whole and exact_problem:
        purchase.nano_usd_least = found.nano_usd_least
    if found.divisible is not None and whole and exact_problem:
        purchase.divisible_nano_usd = found.divisible.nano_usd
        purchase.steady = _by_class(problem, found.divisible.worth)
    if found.worth is not None and (found.settled or whole):
        purchase.worth = _by_class(problem, found.worth)
    if rest:
        Singles(sim, table, purchase, budget.less(purchase.nano_usd, len(purchase.rows))).serve(
            rest
        )
        drop_empty(sim, mark, table, purchase)
    purchase.left += [want for want in wants if not np.count_nonzero(table.feasible(want[0]))]
    return purchase


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FromAll:
    """The answer to: do the given nodes hold all pods?"""

    purchase: Purchase | None = None
    """None where no way was found."""
    refuted: bool = False
    """Whether it is proven that there is none."""


def serve_from_all(
    sim: Simulation, wants: Sequence[Want], table: OfferTable, search_seconds: float
) -> FromAll:
    """Serve all `wants` from as many nodes as each offer has.

    Rows and reservations stay in the simulation.
    """
    if not table.offers:
        return FromAll()
    dealt = deal(sim, wants, table)
    problem = state_problem(table.offers, dealt.items, dealt.caps)
    if not problem.items or dealt.singly or problem.inflated or not problem.servable().all():
        return FromAll()
    known = known_or_packed(problem, search_seconds)
    if known.packing is None:
        simplified = dealt.caps or _dealt_by_place(dealt, table)
        return FromAll(refuted=known.refuted and not simplified)
    purchase = _Carrier(sim, table).carry(problem, known.packing)
    served = sum(int(taken.amounts.sum()) for taken in purchase.taken)
    return FromAll(purchase=purchase if served == sum(count for _, count in wants) else None)


def _by_class(problem: Problem, worth: FloatArray) -> dict[int, float]:
    """Return per class the worth of a pod, the least among the items of the class."""
    least: dict[int, float] = {}
    for item, value in zip(problem.items, worth.tolist(), strict=True):
        number = item.pod_class.number
        least[number] = min(least.get(number, value), value)
    return least


def _is_exact(dealt: Dealt, table: OfferTable) -> bool:
    """Return whether no placement rule was simplified: bounds then hold for the real problem."""
    if dealt.caps or dealt.singly or any(i.pod_class.volumes.shared for i in dealt.items):
        return False
    return not _dealt_by_place(dealt, table)


def _dealt_by_place(dealt: Dealt, table: OfferTable) -> bool:
    """Whether pods were dealt to some of the offers that take them; others might have done."""
    return any((item.slots != table.slots(item.pod_class)).any() for item in dealt.items)


def _pack(
    problem: Problem, expander: Expander, budget: Budget, search_seconds: float
) -> tuple[Found, bool]:
    """Return the packing to buy, and whether the budget left some nodes out."""
    if not problem.items or not problem.offers:
        return Found(packing=no_packing(problem)), False
    fair, found = _choose(problem, expander, search_seconds)
    packing = found.packing
    missing = shortfall(problem, packing)
    if any(missing) and len(missing) > 1:
        packing = cheapest(problem, (packing, by_priority(problem, fair)))
    money, nodes = budget.nano_usd_per_hour, budget.nodes
    too_dear = money is not None and packing.cost(problem) > money
    if money is not None and too_dear:
        packing = within_budget(problem, by_priority(problem, fair), max(0, money))
    too_many = nodes is not None and len(packing.bins) > nodes
    if nodes is not None and too_many:
        packing = within_nodes(problem, packing, max(0, nodes))
    over_budget = too_dear or too_many
    optimal = found.optimal and packing is found.packing
    evened = evened_out(problem, packing)
    if money is None or evened.cost(problem) <= money:
        optimal = optimal and evened.cost(problem) <= packing.cost(problem)
        packing = evened
    return replace(found, packing=packing, optimal=optimal), over_budget


def _choose(
    problem: Problem, expander: Expander, search_seconds: float
) -> tuple[FairPrices, Found]:
    """Fair prices of the items, and the packing that the expander chooses."""
    if expander == "cost":
        answer = known_or_searched(problem, search_seconds)
        return answer.fair, answer.found
    fair = fair_prices(problem)
    if expander == "priority":
        return fair, Found(packing=expanders.by_fleet_priority(problem, search_seconds))
    return fair, Found(packing=expanders.expand(problem, fair, expander))


class _Carrier:
    """Adds the rows of a packing to the simulation and places the items on them."""

    def __init__(self, sim: Simulation, table: OfferTable) -> None:
        self._sim = sim
        self._table = table

    def carry(self, problem: Problem, packing: Packing) -> Purchase:
        """Add the nodes and place the pods that fit by every rule; the others stay unserved."""
        purchase = Purchase(rows=[], taken=[], left=[], over_budget=False)
        row_of = np.zeros(len(packing.bins), dtype=np.int64)
        for number in sorted({int(b) for b in packing.bins}):
            offer = problem.offers[number]
            bins = (packing.bins == number).nonzero()[0]
            first = self._sim.add_row(priced_row(offer), len(bins))
            row_of[bins] = np.arange(first, first + len(bins))
            purchase.rows += [(first + i, offer.node) for i in range(len(bins))]
        contents = packing.contents
        by_item = np.argsort(contents.items, kind="stable")
        ends = np.searchsorted(contents.items[by_item], np.arange(len(problem.items) + 1))
        parts = [
            (item.pod_class, row_of[contents.nodes[entries]], contents.pods[entries])
            for item, begin, end in zip(problem.items, ends, ends[1:], strict=False)
            if len(entries := by_item[begin:end])
        ]
        # Pods that must be near others come after these.
        parts.sort(key=lambda part: bool(self._sim.links(part[0]).affinity))
        for _ in range(WAVES_MAX):
            later = [part for part in parts if not self._place(purchase, *part)]
            if not later or len(later) == len(parts):
                break
            parts = later
        return purchase

    def _place(
        self, purchase: Purchase, pod_class: PodClass, rows: IntArray, amounts: IntArray
    ) -> bool:
        """Place an item; return False while its pods must be near others that are nowhere yet.

        Packing has checked resources in full and rules between classes in part: check the rest
        here.
        """
        links = self._sim.links(pod_class)
        if links.lacks_neighbour:
            return False
        if pod_class.volumes.shared:
            amounts = np.minimum(amounts, local_room(self._sim, pod_class)[rows])
        elif not links.plain:
            most = np.full(self._sim.rows, UNLIMITED, dtype=np.int64)
            amounts = np.minimum(amounts, rules_room(self._sim, pod_class, most)[rows])
        if links.affinity:
            most = np.full(self._sim.rows, UNLIMITED, dtype=np.int64)
            amounts = np.minimum(amounts, affinity_room(links, most)[rows])
        rows, amounts = rows[amounts > 0], amounts[amounts > 0]
        self._sim.place(pod_class, rows, amounts)
        purchase.taken.append(Taken(pod_class=pod_class, rows=rows, amounts=amounts))
        return True
