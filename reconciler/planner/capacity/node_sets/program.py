"""Decides whether all pods fit a set of nodes with fractional patterns; if not, refutes the set."""

from dataclasses import dataclass

import highspy
import numpy as np

from reconciler.planner.capacity.bounds.lp import add_columns, new_solver
from reconciler.planner.capacity.node_sets.listing import Refutation
from reconciler.planner.capacity.patterns.knapsack import Knapsacks
from reconciler.planner.capacity.patterns.knapsack_search import FillResult, fill
from reconciler.planner.capacity.patterns.patterns import PatternProgram
from reconciler.planner.capacity.patterns.pricing import GreedyPricer
from reconciler.planner.capacity.problem.effort import (
    SECONDS_PER_AMOUNT,
    SECONDS_PER_LEVEL,
    SECONDS_PER_MASTER,
    SECONDS_PER_MASTER_CELL,
    SECONDS_PER_RELAXED_PAIR,
    Effort,
)
from reconciler.planner.capacity.problem.problem import Problem
from reconciler.planner.placement.arrays import FloatArray, IntArray

ROUNDS_MAX = 40
_UNIT = 1e9
"""Worth is searched in billionths, as prices are in nano-USD."""
_MARGIN = 1e-6
_NOTHING = 1e-7
"""Uncovered amounts up to this count as none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAnswer:
    """What the program says about a set.

    Both fields are None if the search for patterns was too narrow, or the effort ran out.
    """

    shares: FloatArray | None = None
    """(patterns,) how much of each, if all pods fit; else None."""
    refutation: Refutation | None = None
    """The refutation, if they do not fit; else None."""


class SetProgram(PatternProgram):
    """Minimises the worth of the pods that patterns of a set's nodes leave over.

    Kept in the solver.

    Rows are the items, then the offers (no more patterns than nodes). Columns are a pod of each
    item that is left over, then the patterns, which are kept from set to set.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(len(problem.items))
        self._problem = problem
        self._items, self._count = problem.slots.shape
        self._knapsacks = Knapsacks(problem)
        self._counts = problem.counts
        self._greedy = GreedyPricer(problem)
        self._solver = new_solver()
        self._begin()

    def _begin(self) -> None:
        nothing = np.array([])
        for count in self._counts.tolist():
            self._solver.addRow(float(count), highspy.kHighsInf, 0, nothing, nothing)
        for _ in range(self._count):
            self._solver.addRow(-highspy.kHighsInf, 0.0, 0, nothing, nothing)
        share = (self._problem.needs / np.maximum(self._problem.vectors, 1)).max(axis=2)
        size = np.where(self._problem.slots > 0, share, np.inf).min(axis=1)
        for item, worth in enumerate(size.tolist()):
            row = np.array([item], dtype=np.int32)
            self._solver.addCol(max(worth, _MARGIN), 0.0, highspy.kHighsInf, 1, row, np.ones(1))

    def _add_columns(self, offers: IntArray, amounts: IntArray) -> None:
        table = np.concatenate([amounts, offers[:, None] == np.arange(self._count)], axis=1)
        add_columns(self._solver, np.zeros(len(offers)), table)

    def demand(self, counts: IntArray) -> None:
        """Set how many pods of each item are pending, and update the bounds."""
        self._counts = counts
        for row, count in enumerate(counts.tolist()):
            self._solver.changeRowBounds(row, float(count), highspy.kHighsInf)
        self._knapsacks.demand(counts)
        self._greedy.demand(counts)

    def ask(self, nodes: IntArray, effort: Effort, widths: tuple[int, ...]) -> SetAnswer:
        """Return whether the pods fit (offers,) so many nodes.

        Args:
            nodes: The set.
            effort: The budget.
            widths: Widths of the search for patterns; the next is used if one neither finds nor
                proves anything.
        """
        for offer, count in enumerate(nodes.tolist()):
            self._solver.changeRowBounds(self._items + offer, -highspy.kHighsInf, float(count))
        easy, width = True, 0
        for _ in range(ROUNDS_MAX):
            duals = self._solve(effort)
            if duals is None or self._covered():
                break
            worth, rates = duals
            if easy:
                easy = bool(self.add(*self._greedy.patterns(worth, rates, effort)))
                if easy:
                    continue
            if width == len(widths):
                return SetAnswer()
            fill_result = self._search(worth, rates, nodes, widths[width], effort)
            refutation = Refutation(most=fill_result.most, worth=float(worth @ self._counts))
            if not refutation.allows(nodes[None])[0]:
                return SetAnswer(refutation=refutation)
            gainful = fill_result.amounts @ worth > rates[fill_result.offers] * (1 + _MARGIN)
            if not self.add(fill_result.offers[gainful], fill_result.amounts[gainful]):
                width += 1
        return SetAnswer(shares=self._shares())

    def _solve(self, effort: Effort) -> tuple[FloatArray, FloatArray] | None:
        """Return (items,) the worth of a pod and (offers,) that of a node.

        None once effort is spent.
        """
        if not effort.left:
            return None
        effort.spend(SECONDS_PER_MASTER + SECONDS_PER_MASTER_CELL * self.amounts.size)
        self._solver.run()
        duals = np.array(self._solver.getSolution().row_dual, dtype=np.float64) * _UNIT
        return np.maximum(duals[: self._items], 0), np.maximum(-duals[self._items :], 1)

    def _covered(self) -> bool:
        """Return whether the last solution leaves next to nothing uncovered."""
        optimal = self._solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return bool(optimal and self._solver.getInfo().objective_function_value <= _NOTHING)

    def _shares(self) -> FloatArray | None:
        if not self._covered():
            return None
        return np.array(self._solver.getSolution().col_value, dtype=np.float64)[self._items :]

    def _search(
        self, worth: FloatArray, rates: FloatArray, nodes: IntArray, width: int, effort: Effort
    ) -> FillResult:
        among = nodes.nonzero()[0]
        fill_result = fill(self._knapsacks, worth, rates, margin=_MARGIN, width=width, among=among)
        effort.spend(SECONDS_PER_RELAXED_PAIR * self._knapsacks.most.size)
        effort.spend(
            SECONDS_PER_LEVEL * fill_result.levels + SECONDS_PER_AMOUNT * fill_result.tried
        )
        return fill_result
