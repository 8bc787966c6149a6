"""Money in nano-USD per hour, so that sums and comparisons are exact."""

from decimal import Decimal

NANO = 1_000_000_000
"""Nano-USD per USD."""


def nano_usd(price: Decimal) -> int:
    """Return a price in nano-USD."""
    return int(price * NANO)


def usd(nano: int) -> float:
    """Return nano-USD as dollars, rounded to what a bill shows."""
    return round(nano / NANO, 6)
