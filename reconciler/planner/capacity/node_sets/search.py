"""The cheapest set of nodes that holds all pods of a small purchase, proven if effort allows.

Sets of nodes are listed in order of cost. Each is either refuted by a program over fractional
patterns (which may refute others as well), or whole patterns are fixed one after the other until
all pods have a node. The first set that holds them is the cheapest if all before it were refuted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.planner.capacity.bounds.assignment import AssignmentBound
from reconciler.planner.capacity.node_sets.greedy import fill_set
from reconciler.planner.capacity.node_sets.listing import (
    NodeSets,
    Refutation,
    by_resources,
    least_cost,
    list_sets,
)
from reconciler.planner.capacity.node_sets.program import SetProgram
from reconciler.planner.capacity.patterns.knapsack import Knapsacks
from reconciler.planner.capacity.patterns.knapsack_search import fill
from reconciler.planner.capacity.patterns.master import Master
from reconciler.planner.capacity.patterns.pricing import GreedyPricer
from reconciler.planner.capacity.problem.effort import SECONDS_PER_SET_FILLED, Effort
from reconciler.planner.capacity.problem.problem import Packing, Problem
from reconciler.planner.placement.arrays import FloatArray, IntArray

PODS_MAX = 60
"""The most pods of a purchase that is searched in this way."""
OFFERS_MAX = 64
"""The most offers that sets are made of."""
FIRST_STEP = 0.01
"""Share of the least cost: sets that cost up to this much more come first, then twice as much."""
STEP_LEAST = 1e-3
"""Share of the least cost: a step longer than this is quartered while it lists too many sets."""
OPEN_MAX = 12
"""The search ends with this many sets that were neither refuted nor filled."""
ROUNDS_MAX = 20
"""How many searches for patterns precede the first set."""
_WHOLE = 1e-6
"""In nodes: less than this of a pattern counts as none, and this close to a whole number as
whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SearchEffort:
    """How thoroughly a set is examined."""

    widths: tuple[int, ...]
    """Widths of the search for patterns; the next is used if one neither finds nor proves
    anything."""
    dive_widths: tuple[int, ...]
    """The same, if some nodes are filled already."""
    branches: int
    """How many patterns are tried in turn as the next one to fix."""
    asked_max: int
    """How many programs one dive may solve."""


QUICK = _SearchEffort(widths=(60, 960), dive_widths=(60, 240), branches=3, asked_max=16)
THOROUGH = _SearchEffort(widths=(240, 960, 3840), dive_widths=(60, 240), branches=3, asked_max=80)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapestSet:
    """What the search found."""

    packing: Packing
    nano_usd_least: int
    """No packing costs less; equal to the packing's cost if that is proven to be the cheapest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOnSet:
    """Whether all pods fit on a set of nodes."""

    packing: Packing | None
    """The packing; None if none was found."""
    refuted: bool = False
    """Whether it is proven that there is none."""


def suits(problem: Problem) -> bool:
    """Return whether the purchase is small enough, and fully described by needs and caps."""
    return bool(
        0 < int(problem.counts.sum()) <= PODS_MAX
        and len(problem.prices) <= OFFERS_MAX
        and problem.servable().all()
        and not problem.inflated
        and not problem.rules
    )


def cheapest_set(
    problem: Problem,
    known: Packing,
    patterns: Iterable[Packing],
    divisible: AssignmentBound,
    effort: Effort,
) -> CheapestSet:
    """Return the cheapest packing that serves all pods, at most as expensive as the known one."""
    return _Search(problem, known, patterns, divisible, effort).run()


def on_set(problem: Problem, nodes: IntArray, effort: Effort) -> FitOnSet:
    """Return whether all pods fit on (offers,) `nodes`, with a packing."""
    filled = fill_set(problem, nodes)
    if filled is not None:
        return FitOnSet(packing=filled)
    program = SetProgram(problem)
    for depth in (QUICK, THOROUGH):
        filled, refutation = _tried(problem, program, nodes, effort, depth)
        if filled is not None or refutation is not None:
            return FitOnSet(packing=filled, refuted=refutation is not None)
        if not effort.left:
            break
    return FitOnSet(packing=None)


class _Search:
    """One search; sets that were neither refuted nor filled stay open."""

    def __init__(
        self,
        problem: Problem,
        known: Packing,
        patterns: Iterable[Packing],
        divisible: AssignmentBound,
        effort: Effort,
    ) -> None:
        self._problem = problem
        self._best = known
        self._effort = effort
        self._open: list[tuple[int, IntArray]] = []
        self._unlisted: list[int] = []
        """The cost from which on sets were not listed."""
        self._program = SetProgram(problem)
        self._refutations = by_resources(problem)
        self._refutations.append(_by_worth(problem, divisible.worth))
        self._begin(patterns, divisible)

    def _begin(self, patterns: Iterable[Packing], divisible: AssignmentBound) -> None:
        """Find initial patterns, and the refutation by their worth."""
        master = Master(self._problem)
        for packing in patterns:
            master.add(packing.bins, packing.amounts)
        greedy = GreedyPricer(self._problem)
        master.add(*greedy.seeds(divisible.worth, self._effort))
        for _ in range(ROUNDS_MAX):
            master_solution = master.solve(self._effort)
            if master_solution is None or not self._effort.left:
                break
            costs = self._problem.prices + master_solution.premiums
            if not master.add(*greedy.patterns(master_solution.worth, costs, self._effort)):
                self._refutations.append(_by_worth(self._problem, master_solution.worth))
                break
        self._program.add(master.offers, master.amounts)

    def run(self) -> CheapestSet:
        """Examine sets in order of cost until one holds all pods, then those still open."""
        self._look()
        cost = self._best.cost(self._problem)
        left = self._look_again([each for each in self._open if each[0] < cost])
        cost = self._best.cost(self._problem)
        return CheapestSet(packing=self._best, nano_usd_least=min([cost, *left, *self._unlisted]))

    def _look(self) -> None:
        cost = self._best.cost(self._problem)
        start = least_cost(self._problem, self._refutations)
        least, step = 0, FIRST_STEP
        while least < cost:
            below = min(cost, int(max(start, least) * (1 + step)) + 1)
            listed = list_sets(self._problem, self._refutations, least, below, self._effort)
            if listed is None and step > STEP_LEAST and self._effort.left:
                step /= 4
                continue
            if listed is None or len(self._open) >= OPEN_MAX or not self._effort.left:
                self._unlisted.append(max(least, int(start)))
                return
            found = self._first_that_holds(listed)
            if found is not None:
                self._best = found
                return
            least, step = below, 2 * step

    def _first_that_holds(self, listed: NodeSets) -> Packing | None:
        """Return the first set that holds all pods.

        Sets that are skipped without a proof stay open.
        """
        while len(listed.sets):
            nodes, cost = listed.sets[0], int(listed.costs[0])
            if not self._effort.left or len(self._open) >= OPEN_MAX:
                self._unlisted.append(cost)
                return None
            left = np.arange(len(listed.sets)) > 0
            packing, refutation = self._try(nodes, QUICK)
            if packing is not None:
                return packing
            if refutation is None:
                self._open.append((cost, nodes))
            else:
                self._refutations.append(refutation)
                left &= refutation.allows(listed.sets)
            listed = listed.only(left)
        return None

    def _look_again(self, still_open: Sequence[tuple[int, IntArray]]) -> list[int]:
        """Examine open sets again, more thoroughly.

        Return the costs of those that stay undecided.
        """
        left: list[int] = []
        for cost, nodes in still_open:
            if any(not each.allows(nodes[None])[0] for each in self._refutations):
                continue
            packing, refutation = self._try(nodes, THOROUGH)
            if packing is not None:
                self._best = packing
                break
            if refutation is None:
                left.append(cost)
            else:
                self._refutations.append(refutation)
        return left

    def _try(
        self, nodes: IntArray, depth: "_SearchEffort"
    ) -> tuple[Packing | None, Refutation | None]:
        """Return a packing on these nodes, or what refutes them, or neither."""
        return _tried(self._problem, self._program, nodes, self._effort, depth)


def _tried(
    problem: Problem, program: SetProgram, nodes: IntArray, effort: Effort, depth: "_SearchEffort"
) -> tuple[Packing | None, Refutation | None]:
    """Return a packing on these nodes, or what refutes them, or neither."""
    answer = program.ask(nodes, effort, depth.widths)
    if answer.shares is None:
        return None, answer.refutation
    dive = _Dive(problem, program, effort, depth)
    try:
        return dive.fill(nodes, problem.counts, answer.shares), None
    finally:
        program.demand(problem.counts)


def _by_worth(problem: Problem, worth: FloatArray) -> Refutation:
    """Return the refutation that follows from this (items,) worth of a pod."""
    knapsacks = Knapsacks(problem)
    prices = np.maximum(problem.prices, 1).astype(np.float64)
    fill_result = fill(knapsacks, worth, prices, margin=0.0, width=60)
    return Refutation(most=fill_result.most, worth=float(worth @ problem.counts))


class _Dive:
    """Fixes whole patterns of a program's solution until greedy rules place the rest."""

    def __init__(
        self, problem: Problem, program: SetProgram, effort: Effort, depth: _SearchEffort
    ) -> None:
        self._problem = problem
        self._depth = depth
        self._program = program
        self._effort = effort
        self._asked = 0

    def fill(self, nodes: IntArray, counts: IntArray, shares: FloatArray) -> Packing | None:
        """Return a packing of all (items,) pods on (offers,) nodes; None if it finds none."""
        rest = self._problem.remainder(counts, np.zeros(0, dtype=np.int64))
        self._effort.spend(SECONDS_PER_SET_FILLED * int(counts.sum()))
        filled = fill_set(rest, nodes)
        if filled is not None:
            return filled
        for pattern in _ranked(shares, self._depth.branches):
            if self._asked >= self._depth.asked_max or not self._effort.left:
                return None
            copies = max(1, int(shares[pattern] + _WHOLE))
            packing = self._filled_with(pattern, copies, nodes, counts)
            if packing is not None:
                return packing
        return None

    def _filled_with(
        self, pattern: int, copies: int, nodes: IntArray, counts: IntArray
    ) -> Packing | None:
        """Fix `copies` nodes to this pattern and fill the rest; None if that fails."""
        offer = int(self._program.offers[pattern])
        fixed = _copies(self._program.amounts[pattern], copies, counts)
        left = counts - fixed.sum(axis=0)
        others = nodes.copy()
        others[offer] -= copies
        bins = np.full(copies, offer, dtype=np.int64)
        done = Packing(bins=bins, amounts=fixed)
        if not left.any():
            return done
        self._asked += 1
        self._program.demand(left)
        answer = self._program.ask(others, self._effort, self._depth.dive_widths)
        if answer.shares is None:
            return None
        rest = self.fill(others, left, answer.shares)
        return None if rest is None else done.joined(rest)


def _ranked(shares: FloatArray, most: int) -> Sequence[int]:
    """Return the patterns of which the solution takes most, whole nodes first."""
    ranked = np.argsort(-np.round(np.minimum(shares, 1), 6), kind="stable")[:most]
    return [int(pattern) for pattern in ranked if shares[pattern] > _WHOLE]


def _copies(pattern: IntArray, copies: int, counts: IntArray) -> IntArray:
    """Return (copies, items) the pattern that many times, as far as there are pods."""
    before = np.arange(copies)[:, None] * pattern
    return np.clip(counts - before, 0, pattern)
