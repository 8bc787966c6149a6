"""`config/range` for headroom: each item states one amount, for an existing sector."""

from collections.abc import Iterator

from reconciler.config.faults import RANGE, listed, quoted
from reconciler.config.rules.document import Document
from reconciler.config.tree import Mapping
from reconciler.model.errors import Problem

_KEY = "headroom"
_WAYS = (("cpu", "memory"), ("nodes",), ("percent",))


def check_headroom(document: Document) -> Iterator[Problem]:
    """Yield items with no amount, two amounts, or no sector."""
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
        if name is not None and name not in sectors:
            hint = f"; there are: {listed(sectors)}" if sectors else ""
            message = f"headroom of {quoted(name)}, which names no sector"
            yield document.problem(RANGE, (*place, "sector"), message + hint)
