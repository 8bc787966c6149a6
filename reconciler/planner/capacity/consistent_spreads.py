"""Buys so that topology spreads are still met after all bought nodes have joined.

A node in a zone that had none makes the zone count for every spread over zones that counts such
nodes, including spreads of pods that may not go there. The least filled zone is then an empty one,
and kube-scheduler refuses pods for which nodes were bought. Such a purchase is made again with
these zones counted from the start. If that leaves pods of higher priority, those of lower priority
get no node in such a zone, also while nodes for the higher ones are launching. Nor is a node bought
there that no pending pod needs, such as headroom or a replacement.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.frozen import FrozenMap
from reconciler.planner.capacity.follow_up import fill_up, following, joined, unserved
from reconciler.planner.capacity.opened_room import buy_with_opened_room
from reconciler.planner.capacity.problem.offer_table import OfferTable, Want
from reconciler.planner.capacity.problem.problem import Offer
from reconciler.planner.capacity.problem.purchase import (
    PlacedPods,
    PodsWithReservation,
    Purchase,
    PurchaseRequest,
    fewer,
    priced_row,
    restore,
)
from reconciler.planner.capacity.refused_by_spreads import withdraw_refused
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters import topology_spread
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.simulation import RowSpec, Simulation

TRIES = 2
"""How often a purchase is made again; after that, pods that kube-scheduler would refuse stay
pending."""

_Opened = Mapping[str, Mapping[int, Offer]]
"""By topology key, the domains that a purchase opened, each with a node that did."""
_Domains = frozenset[tuple[str, int]]
"""Topology keys and their domains."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Refused:
    """Pods that a spread refuses because of domains that a purchase opened."""

    pod_class: PodClass
    count: int
    key: str
    openers: Mapping[int, Offer]
    """The domains, in which the pods may have no node, each with a node in it."""


def buy_with_consistent_spreads(sim: Simulation, request: PurchaseRequest) -> Purchase:
    """Buy as `buy_with_opened_room`, and reserve no place that a new zone would make invalid."""
    mark = sim.fork()
    purchase, refused = _counting_opened(sim, request)
    reserved = _refused_reservations(sim, request, _opened(sim, request, purchase, mark[1]))
    refused = [*refused, *reserved]
    level = max((each.pod_class.spec.priority for each in refused), default=None)
    if level is None or not any(want[0].spec.priority < level for want in request.wants):
        return purchase
    left = _with_lost_places(purchase.left, reserved)
    if {each.pod_class.number for each in refused}.isdisjoint(c.number for c, _ in left):
        return purchase
    sim.revert(mark)
    other = _lower_elsewhere(sim, request, level, _domains(refused))
    opened = _opened(sim, request, other, mark[1])
    if fewer(_with_lost_places(other.left, _refused_reservations(sim, request, opened)), left):
        other.note_left_out(purchase)
        return other
    restore(sim, mark, request.table, purchase)
    return purchase


def breaks_reservations(
    sim: Simulation, offer: Offer, reserved: Sequence[PodsWithReservation]
) -> bool:
    """Return whether one more node of the offer makes spreads reject pods with a reservation.

    Args:
        sim: The simulation; nothing is changed.
        offer: The node.
        reserved: Pods with places on nodes that have not joined yet.
    """
    if not reserved or not _opens(sim, offer):
        return False
    mark = sim.fork()
    opened = _opened_by(sim, [(sim.add_row(_empty_row(offer)), offer)], mark[1])
    refused = any(
        any(_refused(sim, pods_with_reservation.table, pods_with_reservation.taken, opened))
        for pods_with_reservation in reserved
    )
    sim.revert(mark)
    return refused


def _opens(sim: Simulation, offer: Offer) -> bool:
    """Return whether a node of the offer would be the first in one of its domains."""
    for key, topology in sim.topologies.items():
        domain = -1 if key == HOSTNAME else topology.place_of(offer.node.row.variants)
        if domain >= 0 and not (topology.domain == domain).any():
            return True
    return False


def _with_lost_places(left: Sequence[Want], refused: Sequence[_Refused]) -> list[Want]:
    """Return the pods that a purchase leaves and those that lose a reserved place."""
    return [*left, *((each.pod_class, each.count) for each in refused)]


def _domains(refused: Sequence[_Refused]) -> _Domains:
    return frozenset((each.key, domain) for each in refused for domain in each.openers)


def _counting_opened(
    sim: Simulation, request: PurchaseRequest
) -> tuple[Purchase, Sequence[_Refused]]:
    """Buy again and again, with the zones counted from the start because of which pods are refused.

    Returns:
        The purchase, and the pods that were refused while these zones did not count.
    """
    counted: dict[int, Offer] = {}
    mark = sim.fork()
    purchase = buy_with_opened_room(sim, request)
    opened = _opened(sim, request, purchase, mark[1])
    first = more = _refused_of(sim, request, purchase, opened)
    for _ in range(TRIES):
        if not more:
            break
        sim.revert(mark)
        counted.update((id(o.node), o) for each in more for o in each.openers.values())
        again = request.again(request.wants, request.table)
        purchase = _buy_beside(sim, again, list(counted.values()))
        opened = _opened(sim, request, purchase, mark[1])
        more = _refused_of(sim, request, purchase, opened)
    if more:
        purchase.leave(withdraw_refused(sim, mark, request.table, purchase))
    return purchase, first


def _lower_elsewhere(
    sim: Simulation, request: PurchaseRequest, level: int, closed: _Domains
) -> Purchase:
    """Buy for priorities from `level` up; for the others buy no nodes that open these domains."""
    mark = sim.fork()
    higher = [want for want in request.wants if want[0].spec.priority >= level]
    lower = [want for want in request.wants if want[0].spec.priority < level]
    first = Purchase(rows=[], taken=[], left=[], over_limits=False)
    if higher:
        first, _ = _counting_opened(sim, request.again(higher, request.table))
        fill_up(sim, first, lower, following(sim, request, first, lower).table)
        first.left = unserved(first, request.wants)
    first.forget_proofs()
    there = sim.fork()
    for _ in range(TRIES):
        rest = following(sim, request, first, lower)
        opened = _opened(sim, request, first, mark[1])
        closed_still = {(key, at) for key, at in closed if at not in opened.get(key, {})}
        rest = replace(rest, table=_offers_outside(sim, rest.table, closed_still))
        both = joined(first, buy_with_opened_room(sim, rest), request.wants)
        fill_up(sim, both, both.left)
        both.left = unserved(both, request.wants)
        opened = _opened(sim, request, both, mark[1])
        refused = [
            *_refused_of(sim, request, both, opened),
            *_refused_reservations(sim, request, opened),
        ]
        if not refused:
            return both
        closed |= _domains(refused)
        sim.revert(there)
    first.left = unserved(first, request.wants)
    return first


def _offers_outside(sim: Simulation, table: OfferTable, closed: set[tuple[str, int]]) -> OfferTable:
    """Return the offers whose nodes are in none of these domains."""
    keys = sorted({key for key, _ in closed})
    return OfferTable(
        sim,
        [
            offer
            for offer in table.offers
            if closed.isdisjoint(
                (key, sim.topologies[key].place_of(offer.node.row.variants)) for key in keys
            )
        ],
    )


def _empty_row(offer: Offer) -> RowSpec:
    """Return a row that only counts as a place: it takes no pod and has no hostname."""
    return priced_row(offer)._replace(allocatable=FrozenMap(), imagined=False)


def _buy_beside(sim: Simulation, request: PurchaseRequest, counted: Sequence[Offer]) -> Purchase:
    """Buy while empty nodes of some offers count.

    They are removed from the simulation afterwards.
    """
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


def _refused_of(
    sim: Simulation, request: PurchaseRequest, purchase: Purchase, opened: _Opened
) -> list[_Refused]:
    """Return the pods of the purchase that are refused because of domains that it opened."""
    return list(_refused(sim, request.table, purchase.taken, opened)) if opened else []


def _refused_reservations(
    sim: Simulation, request: PurchaseRequest, opened: _Opened
) -> list[_Refused]:
    """Return the pods with earlier places that are refused because of domains that it opened."""
    return [
        refused
        for reserved in (request.reserved() if opened else ())
        for refused in _refused(sim, reserved.table, reserved.taken, opened)
    ]


def _opened(sim: Simulation, request: PurchaseRequest, purchase: Purchase, rows: int) -> _Opened:
    """Return the domains in which the purchase has nodes and no earlier row is."""
    if not purchase.rows or sim.topologies.keys() <= {HOSTNAME}:
        return {}
    offers = {id(offer.node): offer for offer in request.table.offers}
    return _opened_by(sim, [(row, offers[id(node)]) for row, node in purchase.rows], rows)


def _opened_by(sim: Simulation, came: Sequence[tuple[int, Offer]], rows: int) -> _Opened:
    """Return the domains in which the new rows are and no earlier row is.

    Args:
        sim: The simulation.
        came: The new rows, and the offer of each.
        rows: The number of earlier rows.
    """
    new = np.array([row for row, _ in came], dtype=np.int64)
    found: dict[str, dict[int, Offer]] = {}
    for key, topology in sim.topologies.items():
        # Pods may name many keys that no node has.
        if key == HOSTNAME or not (topology.domain[new] >= 0).any():
            continue
        before = set(topology.domain[:rows].tolist())
        for row, offer in came:
            domain = int(topology.domain[row])
            if domain >= 0 and domain not in before:
                found.setdefault(key, {}).setdefault(domain, offer)
    return found


def _refused(
    sim: Simulation, table: OfferTable, taken: Sequence[PlacedPods], opened: _Opened
) -> Iterator[_Refused]:
    """Yield the pods that a spread refuses because of opened domains where they may have no node.

    Args:
        sim: The simulation.
        table: Which nodes the pods may have.
        taken: The pods and their places.
        opened: The opened domains.
    """
    for each in taken:
        for rule in sim.links(each.pod_class).spread:
            key = rule.counter.topology.key
            places = table.places(each.pod_class, (key,)) if key in opened else []
            foreign = opened.get(key, {}).keys() - {place[0] for place, _ in places}
            if not foreign:
                continue
            topology_spread.refresh_domains(rule, sim.kinds, sim.topologies, sim.version)
            counts, present = rule.counter.counts, set(rule.present.tolist())
            least = topology_spread.least_filled(rule)
            others = [int(counts[d]) for d in present - foreign]
            enough = len(others) >= rule.min_domains
            excess = topology_spread.excess(rule, each.rows)
            caused = excess <= (min(others, default=0) if enough else 0) - least
            refused = np.where(caused & (excess > 0), each.amounts, 0)
            if refused.any():
                empty = [d for d in sorted(foreign & present) if counts[d] == least]
                yield _Refused(
                    pod_class=each.pod_class,
                    count=int(np.minimum(refused, excess).sum()),
                    key=key,
                    openers={domain: opened[key][domain] for domain in empty},
                )
