"""Kubernetes' IntOrString: a number, or a percentage of a total."""

from math import ceil, floor


def scaled_value(value: int | str, total: int, *, up: bool) -> int:
    """Return the number itself, or the percentage (such as `50%`) of the total.

    Args:
        value: The number or percentage.
        total: What a percentage refers to.
        up: Whether fractions are rounded up; else down.
    """
    if isinstance(value, int):
        return value
    exact = int(value.removesuffix("%")) * total / 100
    return ceil(exact) if up else floor(exact)
