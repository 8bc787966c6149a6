"""Purchases whose spreads hold beside the nodes that are bought for other pods.

A node in a zone that had none makes the zone count for every spread over zones that counts such
nodes, also of pods that may not go there: the least filled zone is then an empty one, and
kube-scheduler refuses pods for which nodes were bought. Such a purchase is made again, with
these zones counted from the start.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from reconciler.model.frozen import FrozenMap
from reconciler.planner.capacity.opened_room import buy_with_opened_room, by_class
from reconciler.planner.capacity.problem.problem import Offer
from reconciler.planner.capacity.problem.purchase import (
    Purchase,
    PurchaseRequest,
    Taken,
    drop_empty,
    priced_row,
    restore,
)
from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.counters import SpreadRule
from reconciler.planner.placement.filters import topology_spread
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.simulation import RowSpec, Simulation

TRIES = 2
"""Times a purchase is made again; then pods that kube-scheduler would refuse are left to wait."""

_Opened = Mapping[str, Mapping[int, Offer]]
"""By topology key, the domains that a purchase opened, and a node that did it."""


def buy_holding_spreads(sim: Simulation, request: PurchaseRequest) -> Purchase:
    """Buy as `buy_with_opened_room` does, and promise no place that a new zone takes away."""
    counted: list[Offer] = []
    mark = sim.fork()
    purchase = _buy_beside(sim, request, counted)
    for _ in range(TRIES):
        more = _openers(sim, request, purchase, mark[1])
        if not more:
            return purchase
        sim.revert(mark)
        counted += more
        purchase = _buy_beside(sim, request.again(request.wants, request.table), counted)
    _withdraw(sim, request, purchase, mark)
    return purchase


def _empty_row(offer: Offer) -> RowSpec:
    """A node of the offer that only counts as a place: it takes no pod and has no hostname."""
    return replace(priced_row(offer), allocatable=FrozenMap(), imagined=False)


def _buy_beside(sim: Simulation, request: PurchaseRequest, counted: Sequence[Offer]) -> Purchase:
    """Buy while empty nodes of some offers count, which are gone from the simulation after it."""
    if not counted:
        return buy_with_opened_room(sim, request)
    mark, more = sim.fork(), len(counted)
    for offer in counted:
        sim.add_row(_empty_row(offer))
    purchase = buy_with_opened_room(sim, request)
    purchase.rows = [(row - more, node) for row, node in purchase.rows]
    purchase.lowered = {row - more: over for row, over in purchase.lowered.items()}
    purchase.taken = [
        replace(each, rows=np.where(each.rows < mark[1], each.rows, each.rows - more))
        for each in purchase.taken
    ]
    restore(sim, mark, request.table, purchase)
    return purchase


def _openers(
    sim: Simulation, request: PurchaseRequest, purchase: Purchase, rows: int
) -> list[Offer]:
    """Return the nodes whose domains, opened by the purchase, leave pods of it refused."""
    opened = _opened(sim, request, purchase, rows)
    found: dict[int, Offer] = {}
    for _, rule, _, foreign in _refused(sim, request, purchase, opened):
        key = rule.counter.topology.key
        found.update((id(opened[key][d].node), opened[key][d]) for d in foreign)
    return list(found.values())


def _opened(sim: Simulation, request: PurchaseRequest, purchase: Purchase, rows: int) -> _Opened:
    """Return the domains in which the purchase has nodes and the rows before it had none."""
    if not purchase.rows:
        return {}
    offers = {id(offer.node): offer for offer in request.table.offers}
    found: dict[str, dict[int, Offer]] = {}
    for key, topology in sim.topologies.items():
        if key != HOSTNAME:
            before = set(topology.domain[:rows].tolist())
            for row, node in purchase.rows:
                domain = int(topology.domain[row])
                if domain >= 0 and domain not in before:
                    found.setdefault(key, {}).setdefault(domain, offers[id(node)])
    return found


def _refused(
    sim: Simulation, request: PurchaseRequest, purchase: Purchase, opened: _Opened
) -> Iterator[tuple[Taken, SpreadRule, IntArray, list[int]]]:
    """Yield pods of the purchase that opened domains leave refused.

    Yields:
        The pods of a class, the rule, by how many pods each of their rows' domains exceeds it,
        and the domains that do this: those where the class itself may have no node.
    """
    for taken in purchase.taken:
        for rule in sim.links(taken.pod_class).spread if opened else ():
            key = rule.counter.topology.key
            places = request.table.places(taken.pod_class, (key,)) if key in opened else []
            foreign = opened.get(key, {}).keys() - {place[0] for place, _ in places}
            if not foreign:
                continue
            topology_spread.refresh_domains(rule, sim.kinds, sim.topologies, sim.version)
            counts, present = rule.counter.counts, set(rule.present.tolist())
            least = topology_spread.least_filled(rule)
            others = [int(counts[d]) for d in present - foreign]
            enough = len(others) >= rule.min_domains
            excess = rule.counter.at_rows()[taken.rows] - rule.max_skew - least
            caused = excess <= (min(others, default=0) if enough else 0) - least
            excess = np.where(caused & (taken.amounts > 0), np.maximum(excess, 0), 0)
            if excess.any():
                low = [d for d in sorted(foreign & present) if counts[d] == least]
                yield taken, rule, excess, low


def _withdraw(
    sim: Simulation, request: PurchaseRequest, purchase: Purchase, mark: tuple[int, int]
) -> None:
    """Leave the pods that are refused all the same, and the nodes that only they needed."""
    opened = _opened(sim, request, purchase, mark[1])
    left = {pod_class.number: (pod_class, count) for pod_class, count in purchase.left}
    purchase.taken = by_class(purchase, 0)
    for place, taken in enumerate(purchase.taken):
        while found := next(_refused(sim, request, _only(purchase, place), opened), None):
            _, rule, excess, _ = found
            amounts = _first(purchase.taken[place], rule, excess)
            sim.place(taken.pod_class, taken.rows, -amounts)
            kept = purchase.taken[place].amounts - amounts
            purchase.taken[place] = replace(taken, amounts=kept)
            number, count = taken.pod_class.number, int(amounts.sum())
            known = left.get(number, (taken.pod_class, 0))[1]
            left[number] = taken.pod_class, known + count
    if purchase.left != (rest := list(left.values())):
        purchase.left = rest
        purchase.taken = [
            replace(each, rows=each.rows[each.amounts > 0], amounts=each.amounts[each.amounts > 0])
            for each in purchase.taken
        ]
        purchase.forget_proofs()
        drop_empty(sim, mark, request.table, purchase)


def _first(taken: Taken, rule: SpreadRule, most: IntArray) -> IntArray:
    """(rows,): of its pods the first ones in each domain of the rule, as many as its rows say.

    All domains at once: with fewer pods in one, those in another are no longer refused because of
    an empty zone alone.
    """
    domains = rule.counter.topology.domain[taken.rows]
    found = np.zeros_like(taken.amounts)
    for domain in np.unique(domains[most > 0]).tolist():
        here = domains == domain
        before = np.cumsum(taken.amounts[here]) - taken.amounts[here]
        found[here] = np.clip(most[here].max() - before, 0, taken.amounts[here])
    return found


def _only(purchase: Purchase, place: int) -> Purchase:
    """Return the purchase with one of its classes' pods alone."""
    return replace(purchase, taken=[purchase.taken[place]])
