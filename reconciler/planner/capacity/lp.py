"""Linear programs through HiGHS, kept to the two forms that the purchase needs. Deterministic."""

import highspy
import numpy as np

from reconciler.planner.placement.arrays import FloatArray


def _solver() -> highspy.Highs:
    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # untyped in the wheel
    solver.setOptionValue("output_flag", False)  # noqa: FBT003 - the solver's own signature
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 0)
    return solver


def maximise(objective: FloatArray, rows: FloatArray, limits: FloatArray) -> FloatArray:
    """The x >= 0 that maximises objective·x with rows·x <= limits; zeros when there is none."""
    count = len(objective)
    infinity = highspy.kHighsInf
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = count, len(limits)
    model.col_cost_ = -objective
    model.col_lower_ = np.zeros(count)
    model.col_upper_ = np.full(count, infinity)
    model.row_lower_ = np.full(len(limits), -infinity)
    model.row_upper_ = np.asarray(limits, dtype=np.float64)
    dense = np.asarray(rows, dtype=np.float64)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.arange(0, dense.size + 1, count, dtype=np.int32)
    model.a_matrix_.index_ = np.tile(np.arange(count, dtype=np.int32), len(limits))
    model.a_matrix_.value_ = dense.ravel()
    solver = _solver()
    solver.passModel(model)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return np.zeros(count)
    return np.array(solver.getSolution().col_value, dtype=np.float64)
