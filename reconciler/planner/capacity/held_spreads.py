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
from reconciler.planner.capacity.opened_room import buy_with_opened_room
from reconciler.planner.capacity.problem.problem import Offer
from reconciler.planner.capacity.problem.purchase import (
    Purchase,
    PurchaseRequest,
    priced_row,
    restore,
)
from reconciler.planner.capacity.refused_by_spreads import withdraw_refused
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
    more = _openers(sim, request, purchase, mark[1])
    for _ in range(TRIES):
        if not more:
            break
        sim.revert(mark)
        counted += more
        purchase = _buy_beside(sim, request.again(request.wants, request.table), counted)
        more = _openers(sim, request, purchase, mark[1])
    if more:
        purchase.leave(withdraw_refused(sim, mark, request.table, purchase))
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
    for rule, foreign in _refused(sim, request, purchase, opened):
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
) -> Iterator[tuple[SpreadRule, list[int]]]:
    """Yield rules by which opened domains leave pods of the purchase refused.

    Yields:
        The rule and the domains that do this: those where the pods' class may have no node.
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
            excess = topology_spread.excess(rule, taken.rows)
            caused = excess <= (min(others, default=0) if enough else 0) - least
            if (caused & (taken.amounts > 0) & (excess > 0)).any():
                yield rule, [d for d in sorted(foreign & present) if counts[d] == least]
