"""Uses room on existing nodes that a spread over zones opens as new nodes come elsewhere.

A spread over zones stops at the skew: rows in two zones take no more pods while the third is full.
Once new nodes bring that zone its share, the others have room again, which costs nothing.
"""

from collections.abc import Sequence

import numpy as np

from reconciler.planner.capacity.buy import buy_preferring
from reconciler.planner.capacity.one_by_one import CHAIN_MAX
from reconciler.planner.capacity.problem.offer_table import Want
from reconciler.planner.capacity.problem.purchase import (
    PlacedPods,
    Purchase,
    PurchaseRequest,
    by_class,
    restore,
    taken_by_row,
)
from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.domains import coordinates_of_rows, shared_keys
from reconciler.planner.placement.fill import fill, local_room, take_in_order, tightness
from reconciler.planner.placement.filters import topology_spread
from reconciler.planner.placement.simulation import Simulation


def buy_with_opened_room(sim: Simulation, request: PurchaseRequest) -> Purchase:
    """Buy as `buy_preferring` does, and once more without the pods for which room opens.

    The second purchase counts if it is cheaper, leaves no more pods and keeps the rules.
    """
    mark, rows = sim.fork(), sim.rows
    purchase = buy_preferring(sim, request)
    _use_for_left(sim, purchase, rows)
    moved = _moved(sim, purchase, rows)
    if not moved:
        return purchase
    sim.revert(mark)
    for each in moved:
        sim.place(each.pod_class, each.rows, each.amounts)
    rest = _without_moved(request.wants, moved)
    other = buy_preferring(sim, request.again(rest, request.table))
    _use_for_left(sim, other, rows)
    cheaper = other.compared_nano_usd < purchase.compared_nano_usd
    cheaper = cheaper and _no_more(other.left, purchase.left)
    if cheaper and all(_holds(sim, each) for each in moved):
        other.forget_proofs()
        other.taken = [*moved, *other.taken]
        return other
    restore(sim, mark, request.table, purchase)
    return purchase


def _use_for_left(sim: Simulation, purchase: Purchase, rows: int) -> None:
    """Put pods that the purchase left on older rows, and then on any, as far as they fit."""
    left = [n for n, (c, _) in enumerate(purchase.left) if sim.links(c).spread]
    if not (left and purchase.rows):
        return
    order = tightness(sim)
    parts = np.arange(sim.rows) < rows, np.ones(sim.rows, dtype=np.bool_)
    for _ in range(CHAIN_MAX):
        found = 0
        for number in left:
            for among in parts:
                pod_class, count = purchase.left[number]
                pairs = fill(sim, pod_class, count, among, order) if count else []
                purchase.taken += [taken_by_row(pod_class, pairs)] if pairs else []
                placed = sum(amount for _, amount in pairs)
                purchase.left[number] = pod_class, count - placed
                found += placed
        if not found:
            break
    purchase.left = [(pod_class, count) for pod_class, count in purchase.left if count]


def _moved(sim: Simulation, purchase: Purchase, rows: int) -> list[PlacedPods]:
    """Return the pods on new nodes that the first `rows` rows take in the same domains.

    The simulation is left with these pods moved.
    """
    moved: list[PlacedPods] = []
    if not (rows and purchase.rows):
        return moved
    order = tightness(sim)
    order = order[order < rows]
    for on_new in by_class(purchase, rows):
        pod_class = on_new.pod_class
        keys = shared_keys(sim.links(pod_class))
        if not (keys and sim.room_of_its_own(pod_class)[:rows].any()):
            continue
        sim.place(pod_class, on_new.rows, -on_new.amounts)
        found = _in_same_domains(sim, on_new, coordinates_of_rows(sim, keys), order)
        if found is None:
            sim.place(pod_class, on_new.rows, on_new.amounts)
        else:
            moved.append(found)
    return moved


def _in_same_domains(
    sim: Simulation, on_new: PlacedPods, coordinates: IntArray, order: IntArray
) -> PlacedPods | None:
    """Return places on rows of `order` for pods that were on others in the same domains."""
    room = local_room(sim, on_new.pod_class)
    pairs: list[tuple[int, int]] = []
    for place in np.unique(coordinates[on_new.rows], axis=0):
        if (place >= 0).all():
            here = (coordinates == place).all(axis=1)
            count = int(on_new.amounts[here[on_new.rows]].sum())
            rows, amounts = take_in_order(np.where(here, room, 0), order, count)
            pairs += zip(rows.tolist(), amounts.tolist(), strict=True)
    if not pairs:
        return None
    found = taken_by_row(on_new.pod_class, pairs)
    sim.place(found.pod_class, found.rows, found.amounts)
    return found


def _without_moved(wants: Sequence[Want], moved: Sequence[PlacedPods]) -> list[Want]:
    served = {each.pod_class.number: int(each.amounts.sum()) for each in moved}
    left = [(pod_class, count - served.get(pod_class.number, 0)) for pod_class, count in wants]
    return [(pod_class, count) for pod_class, count in left if count]


def _no_more(left: Sequence[Want], than: Sequence[Want]) -> bool:
    """Return whether no class has more pods left than before."""
    most = {pod_class.number: count for pod_class, count in than}
    return all(count <= most.get(pod_class.number, 0) for pod_class, count in left)


def _holds(sim: Simulation, moved: PlacedPods) -> bool:
    """Return whether the moved pods' rules still hold: neighbours, and pods per domain."""
    links = sim.links(moved.pod_class)
    if not all(counter.at_rows()[moved.rows].all() for counter in links.affinity):
        return False
    for rule in links.spread:
        topology_spread.refresh_domains(rule, sim.kinds, sim.topologies, sim.version)
        if (topology_spread.excess(rule, moved.rows) > 0).any():
            return False
    return True
