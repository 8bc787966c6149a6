"""NodeAffinity: nodeSelector and required terms must hold for all variants of a node."""

from collections import Counter
from collections.abc import Iterator, Sequence

from reconciler.model.frozen import Labels
from reconciler.model.selectors import NodeSelector
from reconciler.planner.placement.kinds import ZONE_KEYS, NodeKind, in_zones


def selects(node_selector: Labels, variant: Labels) -> bool:
    """Return whether every nodeSelector entry is a label of the node."""
    return all(variant.get(key) == value for key, value in node_selector.items())


def refuses(node_selector: Labels, affinity: NodeSelector | None, kind: NodeKind) -> str:
    """Return the code that refuses the kind: `node-selector`, `node-affinity`, `zone`, or nothing.

    `zone` means that only some of the zones in which it may start would do.
    """
    code = _refuses(node_selector, affinity, kind)
    if code in {"", "zone"}:
        return code
    named = [*_zones_of(node_selector), *(zones_of(affinity) if affinity is not None else ())]
    fixed = in_zones(kind, named)
    return (
        "zone"
        if any(not _refuses(node_selector, affinity, node_kind) for node_kind in fixed)
        else code
    )


def zones_of(selector: NodeSelector) -> Iterator[str]:
    """Yield the zones that a selector names."""
    for term in selector.terms:
        for line in term.expressions:
            if line.key in ZONE_KEYS:
                yield from line.values


def _zones_of(node_selector: Labels) -> Iterator[str]:
    return (value for key, value in node_selector.items() if key in ZONE_KEYS)


def _refuses(node_selector: Labels, affinity: NodeSelector | None, kind: NodeKind) -> str:
    by_selector = [v for v in kind.variants if selects(node_selector, v)]
    if not by_selector:
        return "node-selector"
    selected = by_selector
    if affinity is not None:
        selected = [v for v in selected if affinity.matches(v, kind.name)]
        if not selected:
            return "node-affinity"
    if len(selected) == len(kind.variants):
        return ""
    if _has_whole_zone(kind, selected):
        return "zone"
    return "node-affinity" if len(by_selector) == len(kind.variants) else "node-selector"


def _has_whole_zone(kind: NodeKind, selected: Sequence[Labels]) -> bool:
    """Return whether any node of the kind would do if it started in a certain one of its zones."""
    every, whole = Counter(map(_place, kind.variants)), Counter(map(_place, selected))
    return len(every) > 1 and any(whole[place] == every[place] for place in whole)


def _place(labels: Labels) -> tuple[str, ...]:
    return tuple(labels.get(key, "") for key in sorted(ZONE_KEYS))
