"""Linear and integer programs through HiGHS: one thread, fixed seed, limited in steps."""

from dataclasses import dataclass

import highspy
import numpy as np

from reconciler.planner.placement.arrays import FloatArray

_INFINITY = highspy.kHighsInf


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """An optimal (or, for integer programs, the best found) point."""

    x: FloatArray
    duals: FloatArray
    """Of the rows; empty for integer programs."""
    objective: float
    bound: float
    """No point is better than this; equals the objective of a linear program."""


def new_solver() -> highspy.Highs:
    """A quiet solver that does the same on every machine."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # untyped in the wheel
    for option, value in (("output_flag", False), ("threads", 1), ("random_seed", 0)):
        solver.setOptionValue(option, value)
    return solver


def solve(
    cost: FloatArray,
    rows: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    most: FloatArray | None = None,
    integer_nodes: int = 0,
) -> Solution | None:
    """Minimise cost·x with lower <= rows·x <= upper and 0 <= x <= most.

    Args:
        cost: (columns,).
        rows: (rows, columns), dense.
        lower: (rows,), -inf for none.
        upper: (rows,), inf for none.
        most: (columns,); None for no upper limits.
        integer_nodes: 0 for a linear program; else x is whole, and the search stops after so many
            nodes.

    Returns:
        None when there is no solution, or none was found within the nodes.
    """
    columns = len(cost)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = columns, len(lower)
    model.col_cost_ = np.asarray(cost, dtype=np.float64)
    model.col_lower_ = np.zeros(columns)
    model.col_upper_ = np.full(columns, _INFINITY) if most is None else most
    model.row_lower_ = np.where(np.isneginf(lower), -_INFINITY, lower)
    model.row_upper_ = np.where(np.isposinf(upper), _INFINITY, upper)
    at_row, at_column = np.nonzero(rows)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.searchsorted(at_row, np.arange(len(lower) + 1)).astype(np.int32)
    model.a_matrix_.index_ = at_column.astype(np.int32)
    model.a_matrix_.value_ = np.asarray(rows[at_row, at_column], dtype=np.float64)
    solver = new_solver()
    if integer_nodes:
        model.integrality_ = [highspy.HighsVarType.kInteger] * columns
        solver.setOptionValue("mip_max_nodes", integer_nodes)
        solver.setOptionValue("mip_rel_gap", 1e-6)
    solver.passModel(model)
    solver.run()
    return _read(solver, integer=bool(integer_nodes))


def _read(solver: highspy.Highs, *, integer: bool) -> Solution | None:
    status = solver.getModelStatus()
    info = solver.getInfo()
    optimal = status == highspy.HighsModelStatus.kOptimal
    if not optimal and not (integer and np.isfinite(info.objective_function_value)):
        return None
    found = solver.getSolution()
    if len(found.col_value) == 0 or (integer and info.primal_solution_status != 2):
        return None
    return Solution(
        x=np.array(found.col_value, dtype=np.float64),
        duals=np.array([] if integer else found.row_dual, dtype=np.float64),
        objective=float(info.objective_function_value),
        bound=float(info.mip_dual_bound if integer else info.objective_function_value),
    )


def maximise(objective: FloatArray, rows: FloatArray, limits: FloatArray) -> FloatArray:
    """The x >= 0 that maximises objective·x with rows·x <= limits; zeros when there is none."""
    found = solve(-objective, rows, np.full(len(limits), -np.inf), limits)
    return np.zeros(len(objective)) if found is None else found.x
