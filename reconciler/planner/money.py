"""Money in nano-USD per hour, so that sums and comparisons are exact."""

from decimal import Decimal

NANO = 1_000_000_000
"""Nano-USD per USD."""
SAVING_PERCENT_MIN = 5
SAVING_NANO_USD_MIN = NANO // 100
"""A move that is to save money saves at least 5 %.

Sets of nodes, and headroom, save at least a cent an hour as well.
"""


def nano_usd(price: Decimal) -> int:
    """Return a price in nano-USD."""
    return int(price * NANO)


def usd(nano: int) -> float:
    """Return nano-USD as dollars, rounded to what a bill shows."""
    return round(nano / NANO, 6)
