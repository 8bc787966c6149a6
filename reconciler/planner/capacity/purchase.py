"""Buying capacity: deal, search, and carry the result into the what-if cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from reconciler.model.ids import FleetKey
from reconciler.planner.capacity import expander as expanders
from reconciler.planner.capacity.bound import FairPrices, fair_prices
from reconciler.planner.capacity.items import Dealt, OfferTable, Want, deal
from reconciler.planner.capacity.problem import (
    Offer,
    Packing,
    Problem,
    no_packing,
    state_problem,
)
from reconciler.planner.capacity.search import (
    Found,
    by_priority,
    cheapest,
    search,
    shortfall,
    within_budget,
    within_nodes,
)
from reconciler.planner.fleets.new_nodes import NewNode
from reconciler.planner.placement.arrays import UNLIMITED, FloatArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.domains import shared_keys
from reconciler.planner.placement.fill import fill, local_room, rules_room, tightness
from reconciler.planner.placement.kinds import HOSTNAME, ZONE, ZONE_KEYS
from reconciler.planner.placement.simulation import DEMAND, IN_HOPE, RowSpec, Simulation, Terms
from reconciler.planner.settings import Expander


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Taken:
    """Pods of a class on rows: `amounts[i]` of them on `rows[i]`."""

    pod_class: PodClass
    rows: IntArray
    amounts: IntArray


@dataclass(slots=True, eq=False)
class Purchase:
    """What was bought and what for."""

    rows: list[tuple[int, NewNode]]
    """New rows of the simulation, in order."""
    taken: list[Taken]
    left: list[Want]
    """What could not be served."""
    over_budget: bool
    """Something was left out because of cost, or of how many nodes may be bought."""
    worth: dict[int, float] = field(default_factory=dict)
    """By class number, what the search found a pod to be worth (billionths of a dollar); nothing
    when it ran out of effort and left rules out of it."""
    steady: dict[int, float] = field(default_factory=dict)
    """The same were pods and nodes divisible; nothing unless `divisible_nano_usd` is known."""
    divisible_nano_usd: float | None = None
    """The least that these classes cost from these offers were pods and nodes divisible."""
    optimal: bool = False
    """Nothing that serves these classes from these offers is cheaper."""
    nano_usd_least: int | None = None
    """A cost below which nothing serves these classes from these offers, where that was proven."""

    @property
    def nano_usd(self) -> int:
        """What the new nodes cost per hour."""
        return sum(node.nano_usd_per_hour for _, node in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much may be bought; None: as much as is asked for."""

    nano_usd_per_hour: int | None = None
    nodes: int | None = None

    def less(self, nano_usd_per_hour: int, nodes: int) -> "Budget":
        """What is left of it when so much is bought."""
        money, count = self.nano_usd_per_hour, self.nodes
        return Budget(
            nano_usd_per_hour=None if money is None else money - nano_usd_per_hour,
            nodes=None if count is None else count - nodes,
        )

    def allows(self, nano_usd_per_hour: int) -> bool:
        """Whether one more node at this price may be bought."""
        money = self.nano_usd_per_hour
        return (money is None or nano_usd_per_hour <= money) and (
            self.nodes is None or self.nodes > 0
        )


UNBOUNDED = Budget()
CHAIN_MAX = 16
"""So many links of pods that must be near others that must be near others one plan follows."""


def buy(
    sim: Simulation,
    wants: Sequence[Want],
    table: OfferTable,
    expander: Expander,
    budget: Budget,
    search_seconds: float,
) -> Purchase:
    """Serve `wants` from new nodes; rows and reservations stay in the simulation."""
    wanted = [want for want in wants if np.count_nonzero(table.feasible(want[0]))]
    dealt = deal(sim, wanted, table)
    problem = state_problem(table.offers, dealt.items, dealt.caps).as_compared()
    found, over_budget = _pack(problem, expander, budget, search_seconds)
    purchase = _Carrier(sim, table).carry(problem, found.packing)
    purchase.over_budget = over_budget
    whole_truth = _undealt(dealt, table) and not table.penalised
    purchase.optimal = found.optimal and not over_budget and whole_truth
    served: dict[int, int] = {}
    for taken in purchase.taken:
        number = taken.pod_class.number
        served[number] = served.get(number, 0) + int(taken.amounts.sum())
    rest = [(c, n - served.get(c.number, 0)) for c, n in wanted if n > served.get(c.number, 0)]
    whole = not rest and len(wanted) == len(wants) and _undealt(dealt, table)
    if whole and whole_truth:
        purchase.nano_usd_least = found.nano_usd_least
    if found.divisible is not None and whole and whole_truth:
        purchase.divisible_nano_usd = found.divisible.nano_usd
        purchase.steady = _by_class(problem, found.divisible.worth)
    if found.worth is not None and (found.settled or whole):
        purchase.worth = _by_class(problem, found.worth)
    if rest:
        _Singles(sim, table, purchase, budget.less(purchase.nano_usd, len(purchase.rows))).serve(
            rest
        )
    purchase.left += [want for want in wants if not np.count_nonzero(table.feasible(want[0]))]
    return purchase


def _by_class(problem: Problem, worth: FloatArray) -> dict[int, float]:
    """Per class the least that a pod of its items is worth."""
    least: dict[int, float] = {}
    for item, value in zip(problem.items, worth.tolist(), strict=True):
        number = item.pod_class.number
        least[number] = min(least.get(number, value), value)
    return least


def _undealt(dealt: Dealt, table: OfferTable) -> bool:
    """Whether the problem is the whole truth: no rule was simplified on the way to it."""
    if dealt.caps or dealt.singly or any(i.pod_class.volumes.shared for i in dealt.items):
        return False
    return all((item.slots == table.slots(item.pod_class)).all() for item in dealt.items)


def _pack(
    problem: Problem, expander: Expander, budget: Budget, search_seconds: float
) -> tuple[Found, bool]:
    """The packing to buy, and whether the budget cut it short."""
    if not problem.items or not problem.offers:
        return Found(packing=no_packing(problem)), False
    fair = fair_prices(problem)
    found = _choose(problem, fair, expander, search_seconds)
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
    return replace(found, packing=packing, optimal=optimal), over_budget


def _choose(problem: Problem, fair: FairPrices, expander: Expander, search_seconds: float) -> Found:
    if expander == "cost":
        return search(problem, fair, search_seconds)
    if expander == "priority":
        return Found(packing=expanders.by_fleet_priority(problem, search_seconds))
    return Found(packing=expanders.expand(problem, fair, expander))


class _Carrier:
    """Adds the rows of a packing to the simulation and places the items on them."""

    def __init__(self, sim: Simulation, table: OfferTable) -> None:
        self._sim = sim
        self._table = table

    def carry(self, problem: Problem, packing: Packing) -> Purchase:
        """Place what fits by every rule; what does not stays unserved."""
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
        for item, begin, end in zip(problem.items, ends, ends[1:], strict=False):
            if begin < end:
                part = by_item[begin:end]
                rows = row_of[contents.nodes[part]]
                self._place(purchase, item.pod_class, rows, contents.pods[part])
        return purchase

    def _place(
        self, purchase: Purchase, pod_class: PodClass, rows: IntArray, amounts: IntArray
    ) -> None:
        """Resources were seen to when packing; rules between classes, only in part."""
        if pod_class.volumes.shared:
            amounts = np.minimum(amounts, local_room(self._sim, pod_class)[rows])
        elif not self._sim.links(pod_class).plain:
            most = np.full(self._sim.rows, UNLIMITED, dtype=np.int64)
            amounts = np.minimum(amounts, rules_room(self._sim, pod_class, most)[rows])
        rows, amounts = rows[amounts > 0], amounts[amounts > 0]
        self._sim.place(pod_class, rows, amounts)
        purchase.taken.append(Taken(pod_class=pod_class, rows=rows, amounts=amounts))


def priced_row(offer: Offer) -> RowSpec:
    """The row of a new node, on which requests count inflated."""
    row = offer.node.row
    return RowSpec(
        name=row.name,
        variants=row.variants,
        taints=row.taints,
        schedulable=row.schedulable,
        allocatable=row.allocatable,
        volume_limits=row.volume_limits,
        taken_ports=row.taken_ports,
        imagined=True,
        over_subscription=offer.over_subscription,
    )


class _Singles:
    """Serves what bulk packing left, node by node: rare rules, and remainders of limits."""

    def __init__(
        self, sim: Simulation, table: OfferTable, purchase: Purchase, budget: Budget
    ) -> None:
        self._sim = sim
        self._table = table
        self._purchase = purchase
        self._budget = budget
        bought: dict[FleetKey, int] = {}
        for _, node in purchase.rows:
            bought[node.key] = bought.get(node.key, 0) + 1
        self._left = [o.most - bought.get(o.node.key, 0) for o in table.offers]

    def serve(self, wants: Sequence[Want]) -> None:
        """Place each class as far as rows, limits and money go; the rest is left.

        Pods that must be near those of a class after theirs are asked about again.
        """
        left = [count for _, count in wants]
        asked = list(range(len(wants)))
        for _ in range(CHAIN_MAX):
            before = sum(left)
            for number in asked:
                left[number] = self._serve(wants[number][0], left[number])
            asked = [n for n in asked if left[n] and self._follows_others(wants[n][0])]
            if not asked or sum(left) == before:
                break
        for number, (pod_class, _) in enumerate(wants):
            left[number] -= self._in_hope(pod_class, left[number])
            if left[number]:
                self._purchase.left.append((pod_class, left[number]))

    def _serve(self, pod_class: PodClass, count: int) -> int:
        """How many of the pods are left when the class has what it may have."""
        links = self._sim.links(pod_class)
        if links.hopeless or links.lacks_neighbour:
            return count
        left = self._on_bought(pod_class, count)
        while left > 0:
            placed = self._on_another(pod_class, left)
            if not placed:
                break
            left -= placed
        return left

    def _follows_others(self, pod_class: PodClass) -> bool:
        """Whether its pods must be near pods that are none of its own."""
        links = self._sim.links(pod_class)
        return bool(links.affinity) and not links.affinity_itself

    def _in_hope(self, pod_class: PodClass, left: int) -> int:
        """Buy one more node that may come up in the zone that the pods need; how many it takes.

        EC2 chooses the zone. The node is one try: the pods wait for it, the next one is bought
        when it has come elsewhere, and `scale_up.progress` says how often. Pods that must be in
        the zone of others' pods need a fleet with that zone.
        """
        links = self._sim.links(pod_class)
        if not left or self._follows_others(pod_class):
            return 0
        if not any(c.topology.key in ZONE_KEYS for c in links.obeyed()):
            return 0
        return self._on_another(pod_class, left, IN_HOPE)

    def _on_bought(self, pod_class: PodClass, count: int) -> int:
        """Use room on nodes bought already; how many pods are left."""
        among = np.zeros(self._sim.rows, dtype=np.bool_)
        among[[row for row, _ in self._purchase.rows]] = True
        if not among.any():
            return count
        taken = fill(self._sim, pod_class, count, among, tightness(self._sim))
        return count - self._note(pod_class, taken)

    def _note(self, pod_class: PodClass, taken: list[tuple[int, int]]) -> int:
        """Record pods that found rows; how many."""
        pairs = np.array(taken, dtype=np.int64).reshape(-1, 2)
        rows, amounts = pairs[:, 0], pairs[:, 1]
        self._purchase.taken.append(Taken(pod_class=pod_class, rows=rows, amounts=amounts))
        return int(amounts.sum())

    def _on_another(self, pod_class: PodClass, count: int, terms: Terms = DEMAND) -> int:
        """Buy one more node for the class, the cheapest that its rules accept."""
        prices = [o.node.nano_usd_per_hour for o in self._table.offers]
        places = self._table.places_of(shared_keys(self._sim.links(pod_class)))
        refused: set[int] = set()
        for index in self._in_order(pod_class, count):
            # An empty node that is large enough is refused by rules alone, which read its place.
            if self._left[index] <= 0 or places[index] in refused:
                continue
            if terms.hopeful and not self._has_zones(index):
                continue
            if not self._budget.allows(prices[index]):
                self._purchase.over_budget = True
                continue
            placed = self._try(pod_class, self._table.offers[index], count, terms)
            if placed:
                self._left[index] -= 1
                self._budget = self._budget.less(prices[index], 1)
                return placed
            if not pod_class.volumes.shared:
                refused.add(int(places[index]))
        return 0

    def _in_order(self, pod_class: PodClass, count: int) -> list[int]:
        """The offers that take the class, those to be tried first before the others.

        The first node of pods that must be near each other decides for all of them: where it is
        the only one, or its zone is not known yet, one that takes them all comes first, then the
        one that takes most. Elsewhere as many as are needed follow into its zone.
        """
        numbers: list[int] = self._table.feasible(pod_class).nonzero()[0].tolist()
        prices = [o.compared_nano_usd for o in self._table.offers]
        links = self._sim.links(pod_class)
        begun = any(counter.total for counter in links.affinity)
        if not links.affinity or begun or count < 2:
            return sorted(numbers, key=lambda i: (prices[i], i))
        slots = self._table.slots(pod_class)
        keys = tuple(sorted({c.topology.key for c in links.affinity}))
        alone = HOSTNAME in keys
        open_at = {
            i
            for place, allowed in self._table.places(pod_class, keys)
            if min(place) < -1
            for i in allowed.nonzero()[0].tolist()
        }

        def rank(index: int) -> tuple[int, int, int, int]:
            taken = min(count, int(slots[index]))
            if alone or index in open_at:
                missing = count - taken
                return missing, prices[index], prices[index], index
            nodes = -(-count // max(1, taken))
            return int(nodes > self._left[index]), nodes * prices[index], prices[index], index

        return sorted(numbers, key=rank)

    def _has_zones(self, index: int) -> bool:
        """Whether EC2 chooses among several zones for the offer's nodes."""
        variants = self._table.offers[index].node.row.variants
        return len({labels.get(ZONE, "") for labels in variants}) > 1

    def _try(self, pod_class: PodClass, offer: Offer, count: int, terms: Terms = DEMAND) -> int:
        mark = self._sim.fork()
        row = self._sim.add_row(priced_row(offer))
        among = np.zeros(self._sim.rows, dtype=np.bool_)
        among[row] = True
        taken = fill(self._sim, pod_class, count, among, np.array([row]), terms)
        if not taken:
            self._sim.revert(mark)
            return 0
        self._purchase.rows.append((row, offer.node))
        return self._note(pod_class, taken)
