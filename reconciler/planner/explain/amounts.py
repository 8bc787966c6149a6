"""Rounds amounts of resources in advice to short quantities such as 3500m or 1500Mi."""

from reconciler.model.quantity import format_amount

_MIB = 2**20
_GIB = 2**30


def round_for_people(name: str, amount: int, *, up: bool) -> tuple[int, str]:
    """Return an amount that is short to write, and its text.

    In whole MiB if GiB would not be exact.
    """
    if amount < _MIB or amount * 100 % _GIB == 0 or not format_amount(name, amount).endswith("i"):
        return amount, format_amount(name, amount)
    mebibytes = -(-amount // _MIB) if up else amount // _MIB
    return mebibytes * _MIB, f"{mebibytes}Mi"
