"""How little a purchase could have cost: the lower bound that a plan states."""

from dataclasses import dataclass, field

import numpy as np

from reconciler.planner.capacity.assignment import assignment_bound
from reconciler.planner.capacity.bound import FairPrices, fair_prices, lower_bound, round_up
from reconciler.planner.capacity.bound_proof import proven_bound
from reconciler.planner.capacity.dominance import undominated
from reconciler.planner.capacity.effort import Effort
from reconciler.planner.capacity.items import OfferTable
from reconciler.planner.capacity.knapsack import PAIRS_MAX
from reconciler.planner.capacity.problem import Item, Problem, state_problem
from reconciler.planner.capacity.purchase import Purchase
from reconciler.planner.cycle import Cycle, WaitingClass
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters import resources

PROOF = 0.25
"""What a proof may take, as a share of the search's budget."""
UNDOMINATED_MAX = 200_000
"""Items x offers above which the simple bound has to do."""


@dataclass(slots=True, eq=False)
class Offered:
    """What was on offer in the purchases for one group of sectors, and what pods were worth."""

    tables: list[OfferTable] = field(default_factory=list)
    worth: dict[int, float] = field(default_factory=dict)
    optimal: bool = True
    """Each purchase was proven the cheapest one."""

    divisible_nano_usd: float | None = None
    """A bound on all of it, where the only purchase has one."""

    def note(self, table: OfferTable, purchase: Purchase) -> None:
        """Remember one purchase."""
        self.tables.append(table)
        first = len(self.tables) == 1
        self.divisible_nano_usd = purchase.divisible_nano_usd if first else None
        self.worth.update(purchase.worth)
        self.optimal &= purchase.optimal


def least_cost(
    cycle: Cycle,
    members: list[WaitingClass],
    offered: Offered,
    free_before: IntArray,
    spent_nano_usd: int,
) -> int:
    """Prove how little the purchase could have cost, whatever had gone where.

    All served demand counts, also what found room on existing rows; those rows' room is credited
    at the same fair prices, where at least one of the classes fits.
    """
    served = [(w.pod_class, w.done) for w in members if w.done]
    offers = [offer for table in offered.tables for offer in table.offers]
    table = offered.tables[0] if len(offered.tables) == 1 else OfferTable(cycle.sim, offers)
    items = [Item(pod_class=c, count=count, slots=table.slots(c)) for c, count in served]
    problem = state_problem(offers, [i for i in items if i.slots.any()], ())
    fair = fair_prices(problem)
    open_rows = _open_rows(cycle, [pod_class for pod_class, _ in served], free_before)
    if offered.optimal and len(offered.tables) == 1 and not open_rows.any():
        return spent_nano_usd
    bound = lower_bound(problem, fair, _credit(problem, fair, free_before[open_rows]))
    if bound >= spent_nano_usd or open_rows.any() or problem.slots.size > UNDOMINATED_MAX:
        return min(bound, spent_nano_usd)
    problem = problem.only(undominated(problem))
    prices = [int(price) for price in problem.prices]
    divisible = offered.divisible_nano_usd
    if divisible is None:
        solved = assignment_bound(problem)
        divisible = 0.0 if solved is None else solved.nano_usd
    bound = max(bound, round_up(divisible, prices))
    if offered.worth and bound < spent_nano_usd and problem.slots.size <= PAIRS_MAX:
        worth = np.array([offered.worth.get(i.pod_class.number, 0.0) for i in problem.items])
        effort = Effort(PROOF * cycle.settings.search_budget_seconds)
        bound = max(bound, round_up(proven_bound(problem, worth, bound, effort), prices))
    return min(bound, spent_nano_usd)


def _open_rows(cycle: Cycle, classes: list[PodClass], free: IntArray) -> BoolArray:
    """Rows on which at least one pod of the classes would have fitted."""
    open_rows = np.zeros(len(free), dtype=np.bool_)
    none = np.zeros(len(free), dtype=np.int64)
    for pod_class in classes:
        room = resources.room(free, free, none, pod_class.requests, pod_class.columns)
        open_rows |= (room > 0) & cycle.sim.admitted(pod_class)[: len(free)]
    return open_rows


def _credit(problem: Problem, fair: FairPrices, free: IntArray) -> float:
    """The most that pods on this room could be worth; on nodes that exist nothing is inflated."""
    inflation = 1 + max((o.over_subscription for o in problem.offers), default=0) / 10_000
    return float((np.maximum(free, 0) @ fair.weights).sum()) * inflation
