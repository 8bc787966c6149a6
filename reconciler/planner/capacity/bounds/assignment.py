"""A lower bound from the relaxed assignment of pods to offers.

Pods and nodes are divisible, compatibility is kept: the least cost of fractions of nodes such that
every pod's parts lie on offers that take it and no offer's resources are exceeded; room that exists
already is free, as far as it goes. Stronger than one price per resource for all offers, because a
pod that only large nodes take cannot be served at small nodes' rates. Its duals are good first
prices.
"""

from dataclasses import dataclass

import highspy
import numpy as np

from reconciler.planner.capacity.bounds.lp import new_solver
from reconciler.planner.capacity.problem.problem import Problem
from reconciler.planner.placement.arrays import BoolArray, FloatArray, IntArray

PAIRS_MAX = 12_000
"""Items x offers; larger programs take longer than they help."""
PAIRS_AT_ONCE = 2_000
"""With more feasible pairs than this, their rows are added only once violated: 6,000 rows that
rarely bind take two seconds, and a twentieth of that if they are left out."""
ROUNDS_MAX = 4
"""How often violated rows are added; the bound is valid after each round and can only rise."""
_HIGHER = 1e-5
"""The relative rise of the bound that a round must achieve for another one to follow."""
_TOLERANCE = 1e-7
_SAFETY = 1 - 1e-6
"""Subtracted for the solver's tolerance, so that rounding never raises the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentBound:
    """The cost of the divisible problem, and what it makes a pod of each item worth."""

    nano_usd: float
    worth: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """Room that need not be bought, by groups of rows that take the same items."""

    room: IntArray
    """(groups, dimensions) of all rows of the group together."""
    slots: IntArray
    """(items, groups) how many whole pods the group's rows take if there were no others."""
    needs: IntArray
    """(items, dimensions) what a pod takes there: on existing nodes nothing is inflated."""


def assignment_bound(problem: Problem, existing: Existing | None = None) -> AssignmentBound | None:
    """Solve the divisible problem; None if it is too large.

    Each pod must be taken by some offer. Limits per offer are left out; caps per node are kept, as
    resources.
    """
    items, offers = (problem.slots > 0).nonzero()
    groups = 0 if existing is None else len(existing.room)
    if not len(items) or len(problem.items) * (len(problem.prices) + groups) > PAIRS_MAX:
        return None
    unit = float(max(problem.prices.max(), 1))
    entries = _entries(problem, items, offers)
    entries.cost = np.concatenate([problem.prices / unit, np.zeros(len(items))])
    if existing is not None:
        _add_existing(entries, problem, existing)
    found = _minimise(entries)
    if found is None:
        return None
    objective, duals = found
    return AssignmentBound(
        nano_usd=objective * unit * _SAFETY,
        worth=np.maximum(duals[: len(problem.items)], 0) * unit,
    )


@dataclass(slots=True, eq=False)
class _Entries:
    """A program by the entries of its matrix."""

    rows: IntArray
    columns: IntArray
    values: FloatArray
    lower: FloatArray
    """Of the rows."""
    cost: FloatArray
    most: FloatArray
    """Of the columns."""
    pairs: "_Pairs"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """The rows of feasible pairs: no more pods of the item than fit on the nodes as whole pods."""

    columns: IntArray
    """Of the pods."""
    nodes: IntArray
    """The columns of the offers' nodes."""
    most: IntArray
    """Whole pods per node."""

    def broken(self, solution: FloatArray) -> BoolArray:
        """(pairs,) True for pairs that the solution violates."""
        return np.asarray(solution[self.columns] > self.most * solution[self.nodes] + _TOLERANCE)

    def add_to(self, solver: highspy.Highs, chosen: IntArray) -> None:
        """Add the rows of some of the pairs to a program."""
        count = len(chosen)
        columns = np.column_stack([self.columns[chosen], self.nodes[chosen]]).astype(np.int32)
        values = np.column_stack([-np.ones(count), self.most[chosen]]).astype(np.float64)
        solver.addRows(
            count,
            np.zeros(count),
            np.full(count, highspy.kHighsInf),
            2 * count,
            np.arange(0, 2 * count, 2, dtype=np.int32),
            columns.reshape(-1),
            values.reshape(-1),
        )


def _entries(problem: Problem, items: IntArray, offers: IntArray) -> _Entries:
    """Return the program without existing rows and without costs.

    Columns are nodes per offer, then pods per feasible pair of item and offer. Rows are the items
    (all pods placed), then offer x resource (not exceeded); those of the pairs are added later.
    """
    needs, room = problem.with_caps()
    asked = np.arange(room.shape[1])
    count_items, count_offers = problem.slots.shape
    scale = np.maximum(room, 1).astype(np.float64)
    pair = count_offers + np.arange(len(items))
    node = np.arange(count_offers)
    resource_row = count_items + node[:, None] * len(asked) + np.arange(len(asked))
    rows = [items, resource_row[offers].ravel(), resource_row.ravel()]
    columns = [pair, np.repeat(pair, len(asked)), np.repeat(node, len(asked))]
    values = [
        np.ones(len(items)),
        -(needs[items, offers] / scale[offers]).ravel(),
        (room / scale).ravel(),
    ]
    demand = problem.counts.astype(np.float64)
    others = count_offers * len(asked)
    most = np.minimum(problem.slots[items, offers], problem.counts[items])
    count_columns = count_offers + len(items)
    return _Entries(
        rows=np.concatenate(rows),
        columns=np.concatenate(columns),
        values=np.concatenate(values),
        lower=np.concatenate([demand, np.zeros(others)]),
        cost=np.zeros(count_columns),
        most=np.full(count_columns, highspy.kHighsInf),
        pairs=_Pairs(columns=pair, nodes=offers, most=most),
    )


def _add_existing(entries: _Entries, problem: Problem, existing: Existing) -> None:
    """Add free columns for pods on existing rows, and rows for their room."""
    items, groups = (existing.slots > 0).nonzero()
    asked = np.asarray(np.any(existing.needs, axis=0)).nonzero()[0]
    scale = np.maximum(existing.room[:, asked], 1).astype(np.float64)
    column = len(entries.cost) + np.arange(len(items))
    row = len(entries.lower) + groups[:, None] * len(asked) + np.arange(len(asked))
    share = existing.needs[items][:, asked] / scale[groups]
    entries.rows = np.concatenate([entries.rows, items, row.ravel()])
    entries.columns = np.concatenate([entries.columns, column, np.repeat(column, len(asked))])
    entries.values = np.concatenate([entries.values, np.ones(len(items)), -share.ravel()])
    full = -np.maximum(existing.room[:, asked], 0) / scale
    entries.lower = np.concatenate([entries.lower, full.ravel()])
    entries.cost = np.concatenate([entries.cost, np.zeros(len(items))])
    most = np.minimum(existing.slots[items, groups], problem.counts[items])
    entries.most = np.concatenate([entries.most, most.astype(np.float64)])


def _minimise(entries: _Entries) -> tuple[float, FloatArray] | None:
    """Least cost·x with A·x >= lower and 0 <= x <= most; objective and row duals."""
    order = np.lexsort((entries.columns, entries.rows))
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(entries.cost), len(entries.lower)
    model.col_cost_ = entries.cost
    model.col_lower_ = np.zeros(len(entries.cost))
    model.col_upper_ = entries.most
    model.row_lower_ = entries.lower
    model.row_upper_ = np.full(len(entries.lower), highspy.kHighsInf)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    starts = np.searchsorted(entries.rows[order], np.arange(len(entries.lower) + 1))
    model.a_matrix_.start_ = starts.astype(np.int32)
    model.a_matrix_.index_ = entries.columns[order].astype(np.int32)
    model.a_matrix_.value_ = entries.values[order]
    pairs = entries.pairs
    left = np.arange(len(pairs.columns))
    solver = new_solver(primal=len(left) > PAIRS_AT_ONCE)
    solver.passModel(model)
    if len(left) <= PAIRS_AT_ONCE:
        pairs.add_to(solver, left)
        return _solved(solver)
    found, before = _solved(solver), 0.0
    for _ in range(ROUNDS_MAX):
        if found is None or found[0] <= before * (1 + _HIGHER):
            break
        broken = pairs.broken(np.array(solver.getSolution().col_value, dtype=np.float64))[left]
        if not broken.any():
            break
        pairs.add_to(solver, left[broken])
        left, before = left[~broken], found[0]
        found = _solved(solver)
    return found


def _solved(solver: highspy.Highs) -> tuple[float, FloatArray] | None:
    """Return the objective and the row duals of the optimum; None if there is none."""
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    duals = np.array(solver.getSolution().row_dual, dtype=np.float64)
    return float(solver.getInfo().objective_function_value), duals
