"""Money in billionths of a dollar per hour, so that sums and comparisons are exact."""

from decimal import Decimal

NANO = 1_000_000_000
"""Parts of a dollar."""
SAVING_PERCENT_MIN = 5
SAVING_NANO_USD_MIN = NANO // 100
"""What is moved to save money saves at least 5 %. Sets of nodes, and headroom, save at least a cent
an hour as well."""


def nano_usd(price: Decimal) -> int:
    """Return a price as billionths of a dollar."""
    return int(price * NANO)


def usd(nano: int) -> float:
    """Return billionths of a dollar as dollars, rounded to what a bill shows."""
    return round(nano / NANO, 6)
