"""Made-up but stable prices and depths of capacity pools, used only to choose pools.

They are not the real prices, because every type needs one here, also an unknown type.
"""

import re
from zlib import crc32

_SIZE_UNITS = {"nano": 0.125, "micro": 0.25, "small": 0.5, "medium": 0.5, "large": 1.0, "metal": 48}
_LARGE_USD_PER_HOUR = {"t": 0.083, "c": 0.085, "m": 0.096, "r": 0.126, "g": 0.5, "p": 3.0, "x": 0.2}
_SPOT_SHARE = 0.35


def on_demand_usd_per_hour(instance_type: str) -> float:
    """Return a plausible On-Demand price: its family's price of a `large`, times its size."""
    family, _, size = instance_type.partition(".")
    times = re.fullmatch(r"(\d*)xlarge", size)
    units = 2.0 * int(times[1] or 1) if times else _SIZE_UNITS.get(size, 2.0)
    return _LARGE_USD_PER_HOUR.get(family[:1], 0.1) * units


def spot_usd_per_hour(instance_type: str, zone: str) -> float:
    """Return a Spot price that differs a little by zone, as the market's does."""
    jitter = crc32(f"{instance_type}/{zone}".encode()) % 21 - 10
    return on_demand_usd_per_hour(instance_type) * _SPOT_SHARE * (1 + jitter / 100)


def spot_depth(instance_type: str, zone: str) -> int:
    """Return a pool's spare capacity, from 0 to 99; for the capacity-optimized strategies."""
    return crc32(f"depth/{instance_type}/{zone}".encode()) % 100
