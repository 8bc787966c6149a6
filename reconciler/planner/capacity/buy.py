"""Buying capacity: a purchase in bulk, and other ways of buying if they may be better."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reconciler.planner.capacity.bulk import buy_in_bulk
from reconciler.planner.capacity.bundles import Bundle, Bundles, merged, stranded
from reconciler.planner.capacity.even_caps import EvenCaps, even_caps
from reconciler.planner.capacity.follow_up import fill_up, following, joined, unserved
from reconciler.planner.capacity.problem.offer_table import OfferTable
from reconciler.planner.capacity.problem.purchase import (
    Purchase,
    PurchaseRequest,
    fewer,
    leaves_fewer,
    restore,
)
from reconciler.planner.capacity.refused_by_spreads import withdraw_refused
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.filters.resources import CPU_AND_MEMORY
from reconciler.planner.placement.simulation import Simulation

SPLITS_MAX = 16
"""How often one purchase, and each part of it, is split by priority; see `CHAIN_MAX`."""
SPLITS_LEAST = 4
"""How often a purchase is split regardless of the number of its classes of pods."""
BUNDLING_MAX = 4
"""How often pods that must share nodes are bought for together, with those that this strands."""
USED_SHARE_MAX = 0.5
"""Above this share of use, nodes are not bought again for a more even spread by hostname."""
CLASSES_MAX = 4_000
"""The most classes of pods in all splits of a purchase together: each searches for almost all of
them."""


def buy(sim: Simulation, request: PurchaseRequest, splits: int | None = None) -> Purchase:
    """Serve pods from new nodes; rows and reservations stay in the simulation.

    Where pods are left although some of lower priority are served, the pods of that priority and
    above are bought for before the others, if that leaves fewer of them.

    Args:
        sim: The simulation.
        request: What to buy.
        splits: How often the parts into which priorities are split may be split again; None: as
            often as the number of classes allows.
    """
    if splits is None:
        splits = min(SPLITS_MAX, max(SPLITS_LEAST, CLASSES_MAX // max(1, len(request.wants))))
    mark = sim.fork()
    purchase = _at_once(sim, request)
    level = _left_behind(sim, request.table, purchase) if splits else None
    if level is None:
        return purchase
    sim.revert(mark)
    other = _higher_first(sim, request, level, splits - 1)
    if leaves_fewer(other, purchase):
        return other
    restore(sim, mark, request.table, purchase)
    return purchase


def _left_behind(sim: Simulation, table: OfferTable, purchase: Purchase) -> int | None:
    """Return the highest priority that is left while anything below it is served; else None.

    Pods that no node may be bought for, or whose neighbours have no place, do not count.
    """
    served = (t.pod_class.spec.priority for t in purchase.taken if np.count_nonzero(t.amounts))
    lowest = min(served, default=None)
    if lowest is None:
        return None
    behind = [
        pod_class.spec.priority
        for pod_class, _ in purchase.left
        if pod_class.spec.priority > lowest and _may_be_bought_for(sim, table, pod_class)
    ]
    return max(behind, default=None)


def _may_be_bought_for(sim: Simulation, table: OfferTable, pod_class: PodClass) -> bool:
    links = sim.links(pod_class)
    waits = links.fits_nowhere or links.lacks_neighbour
    return not waits and bool(table.feasible(pod_class).any())


def _higher_first(sim: Simulation, request: PurchaseRequest, level: int, splits: int) -> Purchase:
    """Buy for the priorities from `level` up, and for the others from what that leaves.

    Pods that are left in the end may be placed next to pods that came later, as some must be near
    these.
    """
    higher = [want for want in request.wants if want[0].spec.priority >= level]
    lower = [want for want in request.wants if want[0].spec.priority < level]
    mark = sim.fork()
    first = buy(sim, request.again(higher, request.table), splits)
    fill_up(sim, first, lower, following(sim, request, first, lower).table)
    first.left = unserved(first, request.wants)
    second = buy(sim, following(sim, request, first, lower), splits)
    both = joined(first, second, request.wants)
    fill_up(sim, both, both.left)
    withdraw_refused(sim, mark, request.table, both)
    both.left = unserved(both, request.wants)
    if leaves_fewer(first, both):
        # Nodes for the others may open a zone, because of which a spread refuses the higher ones.
        restore(sim, mark, request.table, first)
        first.over_limits = both.over_limits
        first.note_left_out(both)
        first.forget_proofs()
        return first
    return both


def _at_once(sim: Simulation, request: PurchaseRequest) -> Purchase:
    """Buy for all pods together.

    If pods are left that must share a node with others, these get one node together if that leaves
    fewer. As nodes for some may leave others without one, this is repeated a few times.
    """
    mark = sim.fork()
    best = latest = _cheaper_if_even(sim, request)
    bundles: list[Bundle] = []
    for _ in range(BUNDLING_MAX):
        more = merged(bundles, stranded(sim, request.wants, latest.left))
        if more == bundles:
            break
        bundles = more
        sim.revert(mark)
        found = _bundled(sim, request, bundles, mark)
        if found is None:
            restore(sim, mark, request.table, best)
            return best
        latest, waiting = found
        left = [want for want in latest.left if want[0].number not in waiting]
        best = latest if fewer(left, best.left) else best
    if latest is not best:
        restore(sim, mark, request.table, best)
    return best


def _bundled(
    sim: Simulation, request: PurchaseRequest, bundles: Sequence[Bundle], mark: tuple[int, int]
) -> tuple[Purchase, frozenset[int]] | None:
    """Buy nodes for the bundles first, and then for the rest.

    Returns:
        The purchase, and the numbers of classes that wait for the next plan; None if no node was
        found for a bundle.
    """
    together = Bundles(sim, request.table, request.wants, request.limits)
    together.buy(bundles)
    first = together.purchase
    if not first.rows:
        return None
    waiting = together.withheld(bundles)
    wants = [want for want in request.wants if want[0].number not in waiting]
    left = unserved(first, wants)
    fill_up(sim, first, [want for want in left if not sim.links(want[0]).shares_node])
    rest = buy_in_bulk(sim, following(sim, request, first, wants))
    other = joined(first, rest, request.wants)
    # Zones that the rest opens count for spreads of the pods that were placed first.
    other.leave(withdraw_refused(sim, mark, request.table, other))
    return other, waiting


def _cheaper_if_even(sim: Simulation, request: PurchaseRequest) -> Purchase:
    """Return a purchase.

    A cheaper one if spreads by hostname fill its nodes evenly.
    """
    even = even_caps(sim, request.wants, request.table)
    mark = sim.fork()
    purchase = buy_in_bulk(sim, request)
    if not even.most or len(purchase.rows) <= 1 or not _promises(sim, even, purchase):
        return purchase
    sim.revert(mark)
    other = buy_in_bulk(sim, request.again(request.wants, request.table), even)
    cheaper = other.compared_nano_usd < purchase.compared_nano_usd
    if cheaper and not leaves_fewer(purchase, other):
        other.forget_proofs()
        return other
    restore(sim, mark, request.table, purchase)
    return purchase


def _promises(sim: Simulation, even: EvenCaps, purchase: Purchase) -> bool:
    """Return whether nodes that are filled evenly may be cheaper; to try it takes as long again."""
    if even.nano_usd is not None:
        return even.nano_usd < purchase.compared_nano_usd
    return not even.unlimited or _used_share(sim, purchase) <= USED_SHARE_MAX


def _used_share(sim: Simulation, purchase: Purchase) -> float:
    """Return how much of the CPU or memory of all bought nodes is used, whichever is more."""
    rows = [row for row, _ in purchase.rows]
    offered = sim.allocatable[rows, :CPU_AND_MEMORY].sum(axis=0)
    free = sim.free[rows, :CPU_AND_MEMORY].sum(axis=0)
    return float((1 - free / np.maximum(offered, 1)).max())


def buy_preferring(sim: Simulation, request: PurchaseRequest) -> Purchase:
    """Buy as `buy` does, from offers without a penalty if that costs little more.

    If limits then leave pods without a node, penalties are ignored.
    """
    table = request.table
    mark = sim.fork()
    purchase = buy(sim, request)
    short = purchase.over_limits or any(
        table.feasible(pod_class).any() for pod_class, _ in purchase.left
    )
    if not (table.penalised and short):
        return purchase
    sim.revert(mark)
    plain = OfferTable(sim, [replace(offer, penalty_nano_usd=0) for offer in table.offers])
    return buy(sim, request.again(request.wants, plain))
