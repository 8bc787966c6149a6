"""Why nodes stay: what `kept` of a plan says."""

from collections.abc import Iterable

from reconciler.model.ids import NodeName
from reconciler.model.plan import Kept


def one_reason_each(kept: Iterable[Kept]) -> list[Kept]:
    """The last word on each node; that it is not Ready is said only where nothing else was."""
    found: dict[NodeName, Kept] = {}
    for each in kept:
        if each.code != "not-ready" or each.node not in found:
            found[each.node] = each
    return sorted(found.values())
