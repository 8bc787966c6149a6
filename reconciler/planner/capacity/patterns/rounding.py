"""Turns fractional pattern counts into whole nodes, with new patterns for the rest.

Then the nodes that lose most are emptied and packed again, while effort lasts.
"""

from dataclasses import replace

import numpy as np

from reconciler.planner.capacity.packings.exact import exact
from reconciler.planner.capacity.packings.first_fit import best_offers, first_fit, item_order
from reconciler.planner.capacity.packings.right_size import right_size
from reconciler.planner.capacity.patterns.master import Master, MasterSolution
from reconciler.planner.capacity.patterns.pricing import Pricer
from reconciler.planner.capacity.problem.effort import (
    SECONDS_PER_REPACKING,
    SECONDS_PER_ROUNDING,
    Effort,
)
from reconciler.planner.capacity.problem.problem import Packing, Problem, no_packing
from reconciler.planner.placement.arrays import BoolArray, FloatArray, IntArray

STEPS_MAX = 400
"""The most steps of one rounding; each solves the program and fixes whole nodes."""
HALF = 0.5
"""In nodes: a pattern of which the solution takes at least this may be rounded up to one."""
USEFUL = 0.97
"""The share of a pattern's worth that pending pods must make up for it to be rounded up."""
SECONDS_OVER_EFFORT = 0.06
"""How much further effort a rounding may take without new patterns: first fit may need a third more
nodes for the pods that are left."""
AGAIN = (0.15, 0.3, 0.08, 0.6)
"""Which shares of the nodes, those that lose most first, are packed again, tried in turn."""
FAR = 1.05
"""In multiples of a good enough cost: more expensive packings are repacked a few nodes at a
time."""
REPACKED_STATES_MAX = 1_024
"""How many combinations of pods are tried when a few nodes are packed again exhaustively."""
REPACKED_NODES_MAX = 12
"""How many nodes at once are packed again exhaustively."""
AGAIN_MAX = 40
"""How many nodes at once are packed again by patterns."""


class Rounding:
    """Makes packings of the patterns of a master, and of new patterns for the rest."""

    def __init__(
        self, problem: Problem, master: Master, pricer: Pricer, worth: FloatArray, effort: Effort
    ) -> None:
        self._problem = problem
        self._master = master
        self._pricer = pricer
        self._worth = worth
        self._effort = effort

    def round(self, aside: BoolArray, good: float) -> Packing:
        """Return a packing of all pods, improved while the effort lasts.

        Args:
            aside: (items,) those that the master left aside: they use up free room first.
            good: A cost that is close enough to the least.
        """
        best = self._serve(self._problem, aside)
        turn = 0
        failures = 0
        while self._effort.left and failures < len(AGAIN) and best.cost(self._problem) > good:
            other = self._repacked_by_patterns(best, AGAIN[turn % len(AGAIN)])
            turn += 1
            failures += 1
            if other.cost(self._problem) < best.cost(self._problem):
                best, failures = other, 0
        return self._repacked(best, good * FAR)

    def _repacked(self, best: Packing, far: float) -> Packing:
        """Pack a few nodes at a time exhaustively, while the cost is far from the least.

        The nodes that lose most come first; each turn begins with the next of them.
        """
        turn = 0
        while self._effort.left and turn < len(best.bins) and best.cost(self._problem) > far:
            other = self._few_again(best, turn)
            turn += 1
            if other.cost(self._problem) < best.cost(self._problem):
                best, turn = other, 0
        return best

    def _few_again(self, packing: Packing, turn: int) -> Packing:
        """Pack as many nodes again, from the one at `turn` on, as can be tried exhaustively."""
        amounts = packing.amounts
        loss = self._problem.prices[packing.bins] - amounts @ self._worth
        ranked = np.roll(np.lexsort((np.arange(len(loss)), -loss)), -turn)
        pods = np.cumsum(amounts[ranked[:REPACKED_NODES_MAX]], axis=0)
        states = (pods + 1.0).prod(axis=1)
        few = max(2, int(np.searchsorted(states, REPACKED_STATES_MAX, side="right")))
        apart, kept = np.sort(ranked[:few]), np.sort(ranked[few:])
        rest = self._problem.remainder(amounts[apart].sum(axis=0), packing.bins[kept])
        self._effort.spend(SECONDS_PER_REPACKING)
        again = exact(rest)
        if again is None or (again.served() < rest.counts).any():
            return packing
        return packing.only(kept).joined(again)

    def _serve(self, problem: Problem, aside: BoolArray) -> Packing:
        """Return nodes for the items that are not set aside, then for the rest of the others."""
        found, in_time = self._nodes(
            problem, np.where(aside, 0, problem.counts), fresh=not aside.any()
        )
        left = problem.counts - np.minimum(found.served(), problem.counts)
        if left.any():
            rest, rest_in_time = self._nodes(problem.remainder(left, found.bins), left, fresh=True)
            in_time += rest_in_time if in_time == len(found.bins) else 0
            found = found.joined(rest)
        packing = _completed(problem, found)
        if in_time == len(found.bins):
            return packing
        by_first_fit = _completed(problem, found.only(np.arange(in_time)))
        return min(
            (packing, by_first_fit),
            key=lambda p: (int((problem.counts - p.served()).sum()), p.cost(problem)),
        )

    def _repacked_by_patterns(self, packing: Packing, share: float) -> Packing:
        """Pack the pods of the nodes that lose most again, by patterns."""
        amounts = packing.amounts
        loss = self._problem.prices[packing.bins] - amounts @ self._worth
        count = min(AGAIN_MAX, max(2, round(share * len(loss))))
        ranked = np.lexsort((np.arange(len(loss)), -loss))
        apart, kept = np.sort(ranked[:count]), np.sort(ranked[count:])
        rest = self._problem.remainder(amounts[apart].sum(axis=0), packing.bins[kept])
        again = self._serve(rest, np.zeros(len(rest.items), dtype=np.bool_))
        if (again.served() < rest.counts).any():
            return packing
        return packing.only(kept).joined(again)

    def _nodes(self, problem: Problem, counts: IntArray, *, fresh: bool) -> tuple[Packing, int]:
        """Return whole nodes for (items,) counts; other pods of the problem use their free room.

        Also returns how many of them were chosen before the effort was spent, these first.
        """
        bins: list[IntArray] = []
        chosen: list[IntArray] = []
        left, wanted = problem.counts, replace(problem, counts=counts)
        in_time: int | None = None
        for step in range(STEPS_MAX):
            if not wanted.counts.any() or self._effort.seconds < -SECONDS_OVER_EFFORT:
                break
            master_solution = self._best_point(wanted, fresh=fresh or step > 0)
            if master_solution is None:
                break
            self._effort.spend(SECONDS_PER_ROUNDING)
            copies = np.floor(master_solution.shares + 1e-6).astype(np.int64)
            if not copies.any():
                if in_time is None and not self._effort.left:
                    in_time = sum(map(len, bins))
                copies = self._rounded(wanted, master_solution)
                if not copies.any():
                    break
            taken = copies.nonzero()[0]
            bins.append(np.repeat(self._master.offers[taken], copies[taken]))
            chosen.append(np.repeat(self._master.amounts[taken], copies[taken], axis=0))
            top_up(problem, bins[-1], chosen[-1], left)
            served = chosen[-1].sum(axis=0)
            left = np.maximum(left - served, 0)
            wanted = wanted.remainder(np.maximum(wanted.counts - served, 0), bins[-1])
        if not bins:
            return no_packing(problem), 0
        packing = Packing(bins=np.concatenate(bins), amounts=np.vstack(chosen))
        return packing, len(packing.bins) if in_time is None else in_time

    def _best_point(self, wanted: Problem, *, fresh: bool) -> MasterSolution | None:
        """Return the fractions of patterns that serve what is wanted at least cost.

        Args:
            wanted: The pods, and the nodes that are left of each offer.
            fresh: Whether to look for new patterns, if there is effort left.
        """
        self._master.demand(wanted.counts, wanted.limits)
        master_solution = self._master.solve(self._effort)
        if master_solution is None or not fresh or not self._effort.left:
            return master_solution
        self._pricer.demand(wanted.counts)
        costs = wanted.prices + master_solution.premiums
        patterns = self._pricer.patterns(master_solution.worth, costs, self._effort)
        if self._master.add(*patterns):
            return self._master.solve(self._effort) or master_solution
        return master_solution

    def _rounded(self, wanted: Problem, found: MasterSolution) -> IntArray:
        """Return one copy of each of the most used patterns if 97 % of its worth is still wanted.

        The first pattern is taken in any case if its offer has a node left: fractions of two
        patterns may make up one node of an offer that has no other.
        """
        amounts, offers = self._master.amounts, self._master.offers
        copies = np.zeros(len(amounts), dtype=np.int64)
        left, nodes_left = wanted.counts.copy(), wanted.limits.copy()
        ranked = np.argsort(-np.round(found.shares, 6), kind="stable")
        for pattern in ranked[: max(1, int((found.shares >= HALF).sum()))]:
            useful = float(np.minimum(amounts[pattern], left) @ found.worth)
            enough = useful >= USEFUL * float(amounts[pattern] @ found.worth)
            if nodes_left[offers[pattern]] > 0 and (enough or not copies.any()):
                copies[pattern] = 1
                left = np.maximum(left - amounts[pattern], 0)
                nodes_left[offers[pattern]] -= 1
        return copies


def _completed(problem: Problem, packing: Packing) -> Packing:
    """Return the packing without surplus pods, with free room used and the rest first-fitted."""
    amounts = packing.amounts
    for item in range(len(problem.items)):
        above = np.cumsum(amounts[:, item]) - int(problem.counts[item])
        amounts[:, item] -= np.clip(above, 0, amounts[:, item])
    used = np.asarray(amounts.any(axis=1))
    bins, amounts = packing.bins[used], amounts[used]
    top_up(problem, bins, amounts, problem.counts)
    missing = problem.counts - amounts.sum(axis=0)
    if not missing.any():
        return right_size(problem, Packing(bins=bins, amounts=amounts))
    rest = problem.remainder(missing, bins)
    order = item_order(rest, rest.needs.min(axis=1).max(axis=1).astype(np.float64))
    weights = 1.0 / np.maximum(rest.vectors.max(axis=0), 1)
    filled = first_fit(rest, order, best_offers(rest, weights, None))
    return right_size(problem, Packing(bins=bins, amounts=amounts).joined(filled))


def top_up(problem: Problem, bins: IntArray, amounts: IntArray, counts: IntArray) -> None:
    """Put pods that (nodes, items) `amounts` do not hold where there is room.

    Args:
        problem: The nodes and items.
        bins: (nodes,) the offer of each.
        amounts: What is on them; changed in place.
        counts: (items,) how many pods there are.
    """
    left = counts - amounts.sum(axis=0)
    waiting = (left > 0).nonzero()[0]
    if not len(waiting) or not len(bins):
        return
    room = problem.vectors[bins].copy()
    for item in np.asarray(amounts.any(axis=0)).nonzero()[0]:
        room -= problem.needs[item, bins] * amounts[:, item : item + 1]
    held = amounts @ problem.membership.astype(np.int64)
    size = (problem.needs[waiting].min(axis=1) / np.maximum(problem.vectors.max(axis=0), 1)).max(1)
    for item in waiting[np.argsort(-size, kind="stable")].tolist():
        needs = problem.needs[item, bins]
        space = problem.slots[item, bins] - amounts[:, item]
        for column in problem.items[item].pod_class.columns:
            np.minimum(space, room[:, column] // np.maximum(needs[:, column], 1), out=space)
        for group in problem.items[item].groups:
            np.minimum(space, problem.caps[group] - held[:, group], out=space)
        if problem.rules:
            np.minimum(space, problem.rules.room(amounts, item), out=space)
        np.maximum(space, 0, out=space)
        space -= np.clip(np.cumsum(space) - int(left[item]), 0, space)
        amounts[:, item] += space
        room -= needs * space[:, None]
        held += space[:, None] * problem.membership[item]
