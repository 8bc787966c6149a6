"""Kubernetes quantities as exact integers.

Grammar: k8s.io/apimachinery/pkg/api/resource, `Quantity`: a signed decimal number with either a
binary suffix (Ki to Ei), a decimal suffix (n u m k M G T P E) or a decimal exponent (1e3).
Kubernetes rounds up to what a resource can hold: milli-CPU for CPU, whole units elsewhere.
"""

import re
from fractions import Fraction
from functools import lru_cache

_PATTERN = re.compile(
    r"([+-]?)(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})"
    r"(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d{1,3})?",
    re.ASCII,
)
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LARGEST = 2**63 - 1
"""Kubernetes holds quantities in 64 bits; larger ones are capped there, as the API server does."""


@lru_cache(maxsize=65_536)
def parse_quantity(text: str) -> Fraction:
    """Read one quantity exactly.

    Raises:
        ValueError: Not a quantity (NaN, infinities and empty text included).
    """
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a quantity such as 500m, 2 or 1.5Gi")
    sign, number, suffix = match.groups()
    value = Fraction("0" + number if number.startswith(".") else number.rstrip("."))
    if suffix in _BINARY:
        value *= Fraction(1024) ** _BINARY[suffix]
    elif suffix in _DECIMAL:
        value *= Fraction(10) ** _DECIMAL[suffix]
    elif suffix:
        exponent = int(suffix[1:])
        if abs(exponent) > 40:
            raise ValueError(f"the exponent of {text[:40]!r} is beyond what a quantity can hold")
        value *= Fraction(10) ** exponent
    return -value if sign == "-" else value


def _ceil_capped(value: Fraction) -> int:
    return max(-_LARGEST, min(_LARGEST, -(-value.numerator // value.denominator)))


def milli(text: str) -> int:
    """Return the quantity in thousandths, rounded up: milli-CPU for CPU."""
    return _ceil_capped(parse_quantity(text) * 1000)


def whole(text: str) -> int:
    """Return the quantity in whole units, rounded up: bytes, pods, devices."""
    return _ceil_capped(parse_quantity(text))


def resource_amount(resource: str, text: str) -> int:
    """Return the amount in the model's unit for `resource`: milli for cpu, else whole."""
    return milli(text) if resource == "cpu" else whole(text)


def format_amount(resource: str, amount: int) -> str:
    """Return an amount for people: `1500m`, `28Gi`, `3`; bytes have at most two decimals."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-"):
        for suffix, power in reversed(_BINARY.items()):
            unit = 1024**power
            if abs(amount) >= unit:
                text = f"{amount / unit:.2f}".rstrip("0").rstrip(".")
                return f"{text}{suffix}"
    return str(amount)


def exact_amount(resource: str, amount: int) -> str:
    """Return an amount for people without rounding: `28Gi`, or `30064771073` where no unit fits."""
    shown = format_amount(resource, amount)
    plain = f"{amount}m" if resource == "cpu" else str(amount)
    return shown if resource_amount(resource, shown) == amount else plain
