"""NodeAffinity: nodeSelector and required terms must hold for whatever the node turns out to be."""

from reconciler.model.frozen import Labels
from reconciler.model.selectors import NodeSelector
from reconciler.planner.placement.kinds import ZONE_KEYS, NodeKind


def selects(node_selector: Labels, variant: Labels) -> bool:
    """Whether every nodeSelector entry is a label of the node."""
    return all(variant.get(key) == value for key, value in node_selector.items())


def refuses(node_selector: Labels, affinity: NodeSelector | None, kind: NodeKind) -> str:
    """`node-selector`, `node-affinity`, `zone` (only some of its zones would do), or nothing."""
    selected = [v for v in kind.variants if selects(node_selector, v)]
    if not selected:
        return "node-selector"
    if affinity is not None:
        selected = [v for v in selected if affinity.matches(v, kind.name)]
        if not selected:
            return "node-affinity"
    if len(selected) == len(kind.variants):
        return ""
    return "zone" if _differ_by_zone(kind) else "node-affinity"


def _differ_by_zone(kind: NodeKind) -> bool:
    zones = {tuple(v.get(key, "") for key in sorted(ZONE_KEYS)) for v in kind.variants}
    return len(zones) > 1
