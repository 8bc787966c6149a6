"""The master program of column generation, kept in the solver so that it starts warm."""

from dataclasses import dataclass

import highspy
import numpy as np

from reconciler.planner.capacity.bounds.lp import add_columns, new_solver
from reconciler.planner.capacity.patterns.patterns import PatternProgram
from reconciler.planner.capacity.problem.effort import (
    SECONDS_PER_MASTER,
    SECONDS_PER_MASTER_CELL,
    Effort,
)
from reconciler.planner.capacity.problem.problem import Problem
from reconciler.planner.placement.arrays import UNLIMITED, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterSolution:
    """An optimal solution of the master program."""

    worth: FloatArray
    """(items,) nano-USD per pod."""
    premiums: FloatArray
    """(offers,) what one more node of an offer at its limit would save."""
    shares: FloatArray
    """(patterns,) how much of each."""


class Master(PatternProgram):
    """Minimises the cost of patterns that cover all items within the offers' limits.

    Rows are the items, then the offers with a limit; columns are the patterns. Costs are in units
    of the most expensive offer.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(len(problem.items))
        self._rules = problem.rules
        self._prices = problem.prices
        self._unit = max(int(problem.prices.max()), 1)
        self._items = len(problem.items)
        self._limited = (problem.limits < UNLIMITED).nonzero()[0]
        self._row_of_limit = {int(o): self._items + i for i, o in enumerate(self._limited)}
        self._solver = new_solver()
        infinity = highspy.kHighsInf
        for count in problem.counts:
            self._solver.addRow(float(count), infinity, 0, np.array([]), np.array([]))
        for offer in self._limited:
            self._solver.addRow(
                -infinity, float(problem.limits[offer]), 0, np.array([]), np.array([])
            )

    def add(self, offers: IntArray, amounts: IntArray) -> int:
        """Add the patterns that are new, without pods that a rule keeps off the node."""
        if not self._rules:
            return super().add(offers, amounts)
        return sum(super(Master, self).add(offers, kept) for kept in self._rules.kept(amounts))

    def _add_columns(self, offers: IntArray, amounts: IntArray) -> None:
        table = np.concatenate([amounts, offers[:, None] == self._limited], axis=1)
        add_columns(self._solver, self._prices[offers] / self._unit, table)

    def demand(self, counts: IntArray, limits: IntArray) -> None:
        """Set other counts to cover, and other limits."""
        for row, count in enumerate(counts):
            self._solver.changeRowBounds(row, float(count), highspy.kHighsInf)
        for offer, row in self._row_of_limit.items():
            self._solver.changeRowBounds(row, -highspy.kHighsInf, float(limits[offer]))

    def solve(self, effort: Effort) -> MasterSolution | None:
        """Return the optimum over the patterns so far; None if limits are too tight."""
        effort.spend(SECONDS_PER_MASTER + SECONDS_PER_MASTER_CELL * self.amounts.size)
        self._solver.run()
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self._solver.getSolution()
        duals = np.array(solution.row_dual, dtype=np.float64) * self._unit
        premiums = np.zeros(len(self._prices))
        premiums[self._limited] = np.maximum(-duals[self._items :], 0)
        return MasterSolution(
            worth=np.maximum(duals[: self._items], 0),
            premiums=premiums,
            shares=np.array(solution.col_value, dtype=np.float64),
        )
