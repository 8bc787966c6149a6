"""The array types of the what-if cluster and the numbers that stand for "no limit"."""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

UNLIMITED = 2**40
"""More pods than any row will see; small enough to add up without overflow."""


def grown(array: npt.NDArray[np.int64], rows: int, fill: int = 0) -> npt.NDArray[np.int64]:
    """Return the array with space for `rows` rows; doubling keeps appending linear in total."""
    if len(array) >= rows:
        return array
    shape = (max(rows, 2 * len(array), 16), *array.shape[1:])
    larger = np.full(shape, fill, dtype=np.int64)
    larger[: len(array)] = array
    return larger
