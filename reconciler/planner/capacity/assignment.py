"""A bound that knows which offers take which pods: pods divisible, nodes divisible, no pod whole.

Least cost of fractions of nodes such that every pod's parts lie on offers that take it and no
offer's resources are exceeded. Stronger than one price per resource for all offers, because a pod
that only large nodes take cannot be served at small nodes' rates. Its duals are good first prices.
"""

from dataclasses import dataclass

import highspy
import numpy as np

from reconciler.planner.capacity.lp import new_solver
from reconciler.planner.capacity.problem import Problem
from reconciler.planner.placement.arrays import FloatArray, IntArray

PAIRS_MAX = 12_000
"""Items x offers; larger programs take longer than they help."""
_SAFETY = 1 - 1e-6
"""Taken off for the solver's tolerance, so that rounding never lifts the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentBound:
    """What the divisible problem costs, and what it says a pod of each item is worth."""

    nano_usd: float
    worth: FloatArray


def assignment_bound(problem: Problem) -> AssignmentBound | None:
    """Solve the divisible problem; None when it is too large.

    Every pod must be taken by some offer. Limits per offer and caps per node are left out.
    """
    items, offers = (problem.slots > 0).nonzero()
    if not len(items) or problem.slots.size > PAIRS_MAX:
        return None
    unit = float(max(problem.prices.max(), 1))
    cost = np.concatenate([problem.prices / unit, np.zeros(len(items))])
    rows, columns, values = _entries(problem, items, offers)
    demand = problem.counts.astype(np.float64)
    lower = np.concatenate([demand, np.zeros(int(rows.max()) + 1 - len(demand))])
    found = _minimise(cost, rows, columns, values, lower)
    if found is None:
        return None
    objective, duals = found
    return AssignmentBound(
        nano_usd=objective * unit * _SAFETY,
        worth=np.maximum(duals[: len(demand)], 0) * unit,
    )


def _entries(
    problem: Problem, items: IntArray, offers: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """The program's matrix by its entries: row, column, value.

    Columns are nodes per offer, then pods per feasible pair of item and offer. Rows are the items
    (all pods placed), offer x resource (not exceeded), and the pairs (no more pods of an item
    than whole ones fit a node, times the nodes).
    """
    asked = np.asarray(np.any(problem.needs, axis=(0, 1))).nonzero()[0]
    count_items, count_offers = problem.slots.shape
    scale = np.maximum(problem.vectors[:, asked], 1).astype(np.float64)
    pair = count_offers + np.arange(len(items))
    node = np.arange(count_offers)
    resource_row = count_items + node[:, None] * len(asked) + np.arange(len(asked))
    slot_row = count_items + count_offers * len(asked) + np.arange(len(items))
    most = np.minimum(problem.slots[items, offers], problem.counts[items])
    rows = [items, resource_row[offers].ravel(), slot_row, resource_row.ravel(), slot_row]
    columns = [pair, np.repeat(pair, len(asked)), pair, np.repeat(node, len(asked)), offers]
    values = [
        np.ones(len(items)),
        -(problem.needs[items, offers][:, asked] / scale[offers]).ravel(),
        -np.ones(len(items)),
        (problem.vectors[:, asked] / scale).ravel(),
        most.astype(np.float64),
    ]
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(values)


def _minimise(
    cost: FloatArray, rows: IntArray, columns: IntArray, values: FloatArray, lower: FloatArray
) -> tuple[float, FloatArray] | None:
    """Least cost·x with A·x >= lower and x >= 0, A by its entries; objective and row duals."""
    order = np.lexsort((columns, rows))
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), len(lower)
    model.col_cost_ = cost
    model.col_lower_ = np.zeros(len(cost))
    model.col_upper_ = np.full(len(cost), highspy.kHighsInf)
    model.row_lower_ = lower
    model.row_upper_ = np.full(len(lower), highspy.kHighsInf)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    starts = np.searchsorted(rows[order], np.arange(len(lower) + 1))
    model.a_matrix_.start_ = starts.astype(np.int32)
    model.a_matrix_.index_ = columns[order].astype(np.int32)
    model.a_matrix_.value_ = values[order]
    solver = new_solver()
    solver.passModel(model)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    duals = np.array(solver.getSolution().row_dual, dtype=np.float64)
    return float(solver.getInfo().objective_function_value), duals
