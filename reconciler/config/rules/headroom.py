"""`config/range` and `config/type` for headroom: one amount per item, for an existing sector."""

from collections.abc import Iterator

from reconciler.config.faults import RANGE, TYPE, listed, quoted
from reconciler.config.rules.document import Document
from reconciler.config.tree import Mapping
from reconciler.model.errors import Problem

_KEY = "headroom"
_WAYS = (("cpu", "memory"), ("nodes",), ("percent",))


def check_headroom(document: Document) -> Iterator[Problem]:
    """Yield items with no amount, two amounts, or no sector.

    In a config without sectors an item has none: its room is in the groups that are found.
    """
    sectors = document.root.mapping("sectors").entries
    for index, item in document.root.items(_KEY):
        if not isinstance(item.value, Mapping):
            continue
        place, entry = (_KEY, index), item.value
        ways = [keys for keys in _WAYS if any(map(entry.states, keys))]
        if len(ways) != 1:
            message = "says how much in one way: `cpu` and `memory`, or `nodes`, or `percent`"
            yield document.problem(RANGE, place, message)
        name = entry.text("sector")
        if name is None and sectors and not entry.states("sector"):
            yield document.problem(TYPE, (*place, "sector"), "sector is missing")
        if name is not None and name not in sectors:
            hint = "; leave `sector` out in a config without sectors"
            if sectors:
                hint = f"; there are: {listed(sectors)}"
            message = f"headroom of {quoted(name)}, which names no sector"
            yield document.problem(RANGE, (*place, "sector"), message + hint)
