"""Every offer's node as a knapsack: resources, and hostname rules as further resources.

Divisible pods make one linear program of all knapsacks, solved warm. It gives each offer a rate
per resource, from which follow an upper bound on what a node can hold and which pods pay there.
"""

from dataclasses import dataclass

import highspy
import numpy as np

from reconciler.planner.capacity.bounds.lp import new_solver
from reconciler.planner.capacity.problem.problem import Problem
from reconciler.planner.placement.arrays import FloatArray, IntArray
from reconciler.planner.placement.filters.resources import CPU_AND_MEMORY

PAIRS_MAX = 12_000
"""The most items x offers; larger programs take longer than they help."""


RESOURCES_MAX = 16
"""With more resources, those that only one item asks for are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaxedKnapsacks:
    """The solved knapsacks with divisible pods, for one worth per pod."""

    rates: FloatArray
    """(offers, resources): worth of a node's whole resource."""
    surplus: FloatArray
    """(offers, items): a pod's worth less that of the resources that it takes."""
    bound: FloatArray
    """(offers,): an upper bound on the worth of the pods on one node."""


class Knapsacks:
    """The knapsacks of a problem, kept in the solver so that the next worths start warm."""

    def __init__(self, problem: Problem) -> None:
        self.offers, self.items = len(problem.prices), len(problem.items)
        needs, room = _contested(*problem.with_caps())
        self.needs: IntArray = needs
        """(items, offers, resources)."""
        self.room: IntArray = room
        """(offers, resources)."""
        self.scale: FloatArray = np.maximum(self.room, 1).astype(np.float64)
        self.share: FloatArray = self.needs.swapaxes(0, 1) / self.scale[:, None, :]
        """(offers, items, resources): of a node."""
        self._slots = problem.slots
        self.most: IntArray = np.minimum(problem.slots, problem.counts[:, None]).T
        """(offers, items): how many pods a node takes, of the pending ones."""
        self._solver = self._program()

    def demand(self, counts: IntArray) -> None:
        """Set how many pods of each item are pending, and update the bounds."""
        self.most = np.minimum(self._slots, counts[:, None]).T
        columns = self.most.size
        self._solver.changeColsBounds(
            columns, _numbers(columns), np.zeros(columns), self.most.ravel().astype(np.float64)
        )

    def relax(self, worth: FloatArray) -> RelaxedKnapsacks:
        """Solve all knapsacks with divisible pods.

        Any rates give a bound, the solver's the best one.
        """
        unit = float(worth.max()) or 1.0
        columns = self.most.size
        self._solver.changeColsCost(columns, _numbers(columns), np.tile(worth / unit, self.offers))
        self._solver.run()
        duals = np.array(self._solver.getSolution().row_dual, dtype=np.float64)
        rates = np.maximum(duals.reshape(self.offers, -1), 0) * unit
        surplus = worth[None, :] - (self.share @ rates[:, :, None])[:, :, 0]
        full = (rates * (self.room / self.scale)).sum(axis=1)
        bound = full + (np.maximum(surplus, 0) * self.most).sum(axis=1)
        return RelaxedKnapsacks(rates=rates, surplus=surplus, bound=bound * (1 + 1e-9))

    def _program(self) -> highspy.Highs:
        """Build the program: maximise worth.

        A block of rows (resources) and columns (items) per offer.
        """
        resources = self.room.shape[1]
        columns, rows = self.most.size, self.room.size
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = columns, rows
        model.sense_ = highspy.ObjSense.kMaximize
        model.col_cost_ = np.zeros(columns)
        model.col_lower_ = np.zeros(columns)
        model.col_upper_ = self.most.ravel().astype(np.float64)
        model.row_lower_ = np.full(rows, -highspy.kHighsInf)
        model.row_upper_ = (self.room / self.scale).ravel()
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = _numbers(columns + 1) * resources
        first = np.repeat(_numbers(self.offers), self.items) * resources
        model.a_matrix_.index_ = (first[:, None] + _numbers(resources)).ravel()
        model.a_matrix_.value_ = self.share.ravel()
        solver = new_solver()
        solver.passModel(model)
        return solver


def _numbers(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.int32)


def _contested(needs: IntArray, room: IntArray) -> tuple[IntArray, IntArray]:
    """Return needs and room, if there are many resources without those that one item asks for.

    How many pods of that item a node takes says all about such a resource. Each host port is one,
    and a search takes time by the square of their number.

    Args:
        needs: (items, offers, resources).
        room: (offers, resources).
    """
    if len(room.T) <= RESOURCES_MAX:
        return needs, room
    kept = (needs > 0).any(axis=1).sum(axis=0) > 1
    kept[:CPU_AND_MEMORY] = True
    return needs[:, :, kept], room[:, kept]
