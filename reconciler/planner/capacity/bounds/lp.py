"""Linear programs through HiGHS: one thread, fixed seed."""

import highspy
import numpy as np

from reconciler.planner.placement.arrays import FloatArray, IntArray

_INFINITY = highspy.kHighsInf
_PRIMAL = 4
"""The primal simplex method among the values of the solver's option `simplex_strategy`."""


def new_solver(*, primal: bool = False) -> highspy.Highs:
    """Return a quiet solver that does the same on every machine.

    Args:
        primal: Whether to use the primal simplex method without presolve. Programs with thousands
            of columns, most of them 0 in the solution, take a quarter of the time then; small ones
            take longer.
    """
    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # untyped in the wheel
    for option, value in (("output_flag", False), ("threads", 1), ("random_seed", 0)):
        solver.setOptionValue(option, value)
    if primal:
        solver.setOptionValue("presolve", "off")
        solver.setOptionValue("simplex_strategy", _PRIMAL)
    return solver


def add_columns(solver: highspy.Highs, costs: FloatArray, table: FloatArray | IntArray) -> None:
    """Add variables with a lower bound of 0 to a program.

    Args:
        solver: The program; it has its rows already.
        costs: (columns,).
        table: (columns, rows) the coefficients.
    """
    count = len(costs)
    column, row = table.nonzero()
    solver.addCols(
        count,
        costs,
        np.zeros(count),
        np.full(count, _INFINITY),
        len(row),
        np.searchsorted(column, np.arange(count)).astype(np.int32),
        row.astype(np.int32),
        table[column, row].astype(np.float64),
    )


def maximise(objective: FloatArray, rows: FloatArray, limits: FloatArray) -> FloatArray:
    """Return the x >= 0 that maximises objective·x with rows·x <= limits; zeros if there is none.

    Args:
        objective: (columns,).
        rows: (rows, columns), dense.
        limits: (rows,).
    """
    least = np.full(len(limits), -_INFINITY)
    return _solved(highspy.ObjSense.kMaximize, objective, rows, least, limits)


def cover(costs: FloatArray, rows: FloatArray, least: FloatArray) -> FloatArray:
    """Return the x >= 0 that minimises costs·x with rows·x >= least; zeros if there is none.

    Args:
        costs: (columns,).
        rows: (rows, columns), dense.
        least: (rows,).
    """
    most = np.full(len(least), _INFINITY)
    return _solved(highspy.ObjSense.kMinimize, costs, rows, least, most)


def _solved(
    sense: highspy.ObjSense,
    objective: FloatArray,
    rows: FloatArray,
    least: FloatArray,
    most: FloatArray,
) -> FloatArray:
    """Return the best x >= 0 with least <= rows·x <= most; zeros if there is none."""
    columns = len(objective)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = columns, len(least)
    model.sense_ = sense
    model.col_cost_ = np.asarray(objective, dtype=np.float64)
    model.col_lower_ = np.zeros(columns)
    model.col_upper_ = np.full(columns, _INFINITY)
    model.row_lower_ = np.asarray(least, dtype=np.float64)
    model.row_upper_ = np.asarray(most, dtype=np.float64)
    at_row, at_column = np.nonzero(rows)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.searchsorted(at_row, np.arange(len(least) + 1)).astype(np.int32)
    model.a_matrix_.index_ = at_column.astype(np.int32)
    model.a_matrix_.value_ = np.asarray(rows[at_row, at_column], dtype=np.float64)
    solver = new_solver()
    solver.passModel(model)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return np.zeros(columns)
    return np.array(solver.getSolution().col_value, dtype=np.float64)
