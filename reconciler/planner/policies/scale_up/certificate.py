"""The lower bound on the cost of a plan's purchases."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reconciler.model.ids import FleetKey
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.capacity.bounds.assignment import Existing, assignment_bound
from reconciler.planner.capacity.bounds.fair_prices import (
    FairPrices,
    fair_prices,
    lower_bound,
    round_up,
)
from reconciler.planner.capacity.patterns.bound_proof import proven_bound
from reconciler.planner.capacity.patterns.knapsack import PAIRS_MAX
from reconciler.planner.capacity.problem.dominance import undominated
from reconciler.planner.capacity.problem.effort import Effort
from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.capacity.problem.problem import Item, Offer, Problem, state_problem
from reconciler.planner.capacity.problem.purchase import Purchase
from reconciler.planner.placement.arrays import BoolArray, IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters import resources
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.reservations import WaitingClass

PROOF = 0.25
"""The budget of a proof, as a share of the search's budget."""
CAPPED_GROUPS = 8
"""How many anti-affinity groups the simple bound uses; each is a column of its program."""
UNDOMINATED_MAX = 200_000
"""Above this many items x offers only the simple bound is computed."""


@dataclass(slots=True, eq=False)
class PurchaseEvidence:
    """What the purchases for one group of sectors prove: their offers, and what pods were worth."""

    tables: list[OfferTable] = field(default_factory=list)
    worth: dict[int, float] = field(default_factory=dict)
    steady: dict[int, float] = field(default_factory=dict)
    """A pod's worth by class if pods and nodes were divisible."""
    optimal: bool = True
    """Whether each purchase was proven to be the cheapest."""
    uninflated: set[int] = field(default_factory=set)
    """Numbers of classes whose pods share a node that takes them by their bare requests."""

    divisible_nano_usd: float | None = None
    """A bound on all of it, if the only purchase has one."""
    nano_usd_least: int | None = None
    """A bound on all of it by whole nodes, if the only purchase has one."""

    def note(self, table: OfferTable, purchase: Purchase) -> None:
        """Remember one purchase."""
        self.tables.append(table)
        first = len(self.tables) == 1
        self.divisible_nano_usd = purchase.divisible_nano_usd if first else None
        self.nano_usd_least = purchase.nano_usd_least if first else None
        self.worth.update(purchase.worth)
        self.steady.update(purchase.steady)
        self.optimal &= purchase.optimal
        self.uninflated |= {
            taken.pod_class.number
            for taken in purchase.taken
            if purchase.lowered and not purchase.lowered.keys().isdisjoint(taken.rows.tolist())
        }

    def note_choice(self, table: OfferTable) -> None:
        """Remember offers of which each following purchase uses only a part."""
        self.tables.append(table)
        self.optimal = False


def distinct_offers(tables: Sequence[OfferTable]) -> list[Offer]:
    """Return the offers of several purchases, each fleet's at the time when most of it was left."""
    offers: dict[FleetKey, Offer] = {}
    for offer in (offer for table in tables for offer in table.offers):
        known = offers.get(offer.node.key)
        if known is None or offer.most > known.most:
            offers[offer.node.key] = offer
    return list(offers.values())


def least_cost(
    builder: PlanBuilder,
    members: list[WaitingClass],
    evidence: PurchaseEvidence,
    free_before: IntArray,
    spent_nano_usd: int,
) -> int:
    """Return a lower bound on the cost of the purchase, wherever its pods could have gone.

    All served demand counts, including what found room on existing rows; the room of those rows is
    credited at the same fair prices if at least one of the classes fits there.
    """
    served = [(w.pod_class, w.done) for w in members if w.done]
    offers = distinct_offers(evidence.tables)
    table = evidence.tables[0] if len(evidence.tables) == 1 else OfferTable(builder.sim, offers)
    open_rows = _open_rows(builder, [pod_class for pod_class, _ in served], free_before)
    if evidence.optimal and len(evidence.tables) == 1 and not open_rows.any():
        return spent_nano_usd
    shapes = _shapes(builder, served, table, open_rows, evidence.uninflated)
    problem = _stated(offers, shapes, evidence.uninflated)
    bound = _bound_at_fair_prices(problem, free_before[open_rows])
    if bound < spent_nano_usd and problem.slots.size <= UNDOMINATED_MAX:
        problem = problem.only(undominated(problem))
        if open_rows.any():
            existing = _existing(shapes, open_rows, free_before, builder.sim.kinds)
            bound = max(bound, _divisible_bound(problem, existing))
        else:
            bound = max(bound, _bound_of_new_nodes(problem, evidence), evidence.nano_usd_least or 0)
            if evidence.worth and bound < spent_nano_usd and problem.slots.size <= PAIRS_MAX:
                effort = Effort(PROOF * builder.view.settings.search_budget_seconds)
                bound = max(bound, _bound_by_proof(problem, shapes, evidence, bound, effort))
    return min(bound, spent_nano_usd)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """Classes with the same requests that may go to the same offers and rows."""

    item: Item
    numbers: tuple[int, ...]
    """The number of pods of the classes."""
    admitted: BoolArray
    """(rows,) which of the open rows take one of its pods."""

    def worth(self, known: Mapping[int, float]) -> float:
        """Return a fair price of one of its pods; any price proves something."""
        return sum(known.get(number, 0.0) for number in self.numbers) / len(self.numbers)


def _shapes(
    builder: PlanBuilder,
    served: Sequence[tuple[PodClass, int]],
    table: OfferTable,
    open_rows: BoolArray,
    uninflated: Container[int],
) -> list[_Shape]:
    """Return the classes that some offer takes, merged by shape: far fewer than classes.

    Offers of which no node could be bought would weaken the bound.
    """
    shapes: dict[tuple[object, ...], _Shape] = {}
    groups: dict[int, int] = {}
    rows = open_rows.nonzero()[0]
    for pod_class, count in served:
        by_requests = pod_class.number in uninflated
        slots = table.slots_uninflated(pod_class) if by_requests else table.slots(pod_class)
        slots = np.where(table.buyable, slots, 0)
        if not slots.any():
            continue
        admitted = builder.sim.admitted(pod_class)[rows]
        apart = tuple(
            groups.setdefault(rule, len(groups)) for rule in _exclusive_rules(builder, pod_class)
        )
        needs = by_requests, pod_class.requests.tobytes()
        key = (needs, slots.tobytes(), admitted.tobytes(), apart)
        known = shapes.get(key)
        if known is not None:
            count += known.item.count  # noqa: PLW2901 - the sum replaces the part
        numbers = (*(known.numbers if known else ()), pod_class.number)
        item = Item(pod_class=pod_class, count=count, slots=slots, groups=apart)
        shapes[key] = _Shape(item=item, numbers=numbers, admitted=admitted)
    return list(shapes.values())


def _stated(
    offers: Sequence[Offer], shapes: Sequence[_Shape], uninflated: Container[int]
) -> Problem:
    """Return the problem of serving the shapes; those in `uninflated` need their bare requests."""
    caps = [1] * (1 + max((g for shape in shapes for g in shape.item.groups), default=-1))
    problem = state_problem(offers, [shape.item for shape in shapes], caps)
    for index, shape in enumerate(shapes):
        if any(number in uninflated for number in shape.numbers):
            problem.needs[index] = shape.item.pod_class.requests
    return problem


def _bound_at_fair_prices(problem: Problem, free: IntArray) -> int:
    """Return the bound by one price per resource, with the worth of free room credited."""
    fair = fair_prices(problem, CAPPED_GROUPS)
    return lower_bound(problem, fair, _credit(problem, fair, free) if len(free) else None)


def _divisible_bound(problem: Problem, existing: Existing | None = None) -> int:
    """Return the bound with divisible pods and nodes; 0 if the program would be too large."""
    solved = assignment_bound(problem, existing)
    return 0 if solved is None else round_up(solved.nano_usd, _prices(problem))


def _bound_of_new_nodes(problem: Problem, evidence: PurchaseEvidence) -> int:
    """Return that bound if no pod fits on existing rows.

    Where there was only one purchase, its search may have computed it.
    """
    if evidence.divisible_nano_usd is None:
        return _divisible_bound(problem)
    return round_up(evidence.divisible_nano_usd, _prices(problem))


def _bound_by_proof(
    problem: Problem,
    shapes: Sequence[_Shape],
    evidence: PurchaseEvidence,
    known: int,
    effort: Effort,
) -> int:
    """Return a bound by whole nodes, from what the search found pods to be worth.

    No more is done than is needed to exceed the bound that is `known`.
    """
    worth = np.array([shape.worth(evidence.worth) for shape in shapes])
    steady = np.array([shape.worth(evidence.steady) for shape in shapes])
    proven = proven_bound(problem, worth, known, effort, steady if evidence.steady else None)
    return round_up(proven, _prices(problem))


def _prices(problem: Problem) -> list[int]:
    """Return the offers' prices; every cost is a sum of some of them."""
    return [int(price) for price in problem.prices]


def _exclusive_rules(builder: PlanBuilder, pod_class: PodClass) -> list[int]:
    """Return the rules by which a pod of the class shares a node with no other that obeys them.

    Of the hostname rules only these hold whatever else is bought: a spread allows a second pod on a
    node as soon as every node has one.
    """
    return [
        id(counter)
        for counter, itself in builder.sim.links(pod_class).anti
        if itself and counter.topology.key == HOSTNAME
    ]


def _existing(
    shapes: Sequence[_Shape], open_rows: BoolArray, free: IntArray, kinds: IntArray
) -> Existing:
    """Return the open rows, merged if they admit the same shapes.

    Args:
        shapes: What is served.
        open_rows: Which rows are open.
        free: (rows, dimensions) what is free of each.
        kinds: The kind of each row, which decides what it admits.
    """
    rows = open_rows.nonzero()[0]
    _, firsts, kind = np.unique(kinds[rows], return_index=True, return_inverse=True)
    admitted = np.array([shape.admitted[firsts] for shape in shapes])
    masks, group_of_kind = np.unique(admitted, axis=1, return_inverse=True)
    group, free = group_of_kind.reshape(-1)[kind], free[rows]
    room = np.zeros((masks.shape[1], free.shape[1]), dtype=np.int64)
    np.add.at(room, group, np.maximum(free, 0))
    slots = np.zeros((len(shapes), masks.shape[1]), dtype=np.int64)
    none = np.zeros(len(rows), dtype=np.int64)
    for index, shape in enumerate(shapes):
        pod_class = shape.item.pod_class
        fits = resources.room(free, free, none, pod_class.requests, pod_class.columns)
        most = 1 if shape.item.groups else shape.item.count
        fits = np.where(shape.admitted, np.clip(fits, 0, most), 0)
        np.add.at(slots[index], group, fits)
    needs = np.array([shape.item.pod_class.requests for shape in shapes], dtype=np.int64)
    return Existing(room=room, slots=slots, needs=needs)


def _open_rows(builder: PlanBuilder, classes: list[PodClass], free: IntArray) -> BoolArray:
    """Return rows on which at least one pod of the classes would have fitted."""
    open_rows = np.zeros(len(free), dtype=np.bool_)
    none = np.zeros(len(free), dtype=np.int64)
    alike = {(each.requests.tobytes(), each.static): each for each in classes}
    for pod_class in alike.values():
        room = resources.room(free, free, none, pod_class.requests, pod_class.columns)
        open_rows |= (room > 0) & builder.sim.admitted(pod_class)[: len(free)]
    return open_rows


def _credit(problem: Problem, fair: FairPrices, free: IntArray) -> float:
    """Return the most that pods in this room could be worth; nothing is inflated there."""
    inflation = 1 + max((o.over_subscription for o in problem.offers), default=0) / resources.WHOLE
    resources_worth = float((np.maximum(free, 0) @ fair.weights).sum()) * inflation
    return resources_worth + float((problem.caps @ fair.places) * len(free))
