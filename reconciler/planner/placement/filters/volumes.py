"""VolumeBinding, VolumeZone and VolumeRestrictions; attach limits are a counted dimension."""

from reconciler.model.selectors import NodeSelector
from reconciler.planner.placement.filters.node_affinity import zones_of
from reconciler.planner.placement.kinds import ZONE_KEYS, NodeKind, in_zones
from reconciler.planner.placement.volume_needs import VolumeNeeds


def refuses(needs: VolumeNeeds, kind: NodeKind) -> str:
    """Return `volume-zone`, `volume-binding`, `volume-in-use`, `zone`, or an empty string."""
    if needs.blocked:
        return needs.blocked
    for selector in needs.selectors:
        matching = [v for v in kind.variants if selector.matches(v, kind.name)]
        if len(matching) == len(kind.variants):
            continue
        zonal = any(r.key in ZONE_KEYS for term in selector.terms for r in term.expressions)
        if matching or _would_in_a_zone(selector, kind):
            return "zone" if zonal else "volume-binding"
        return "volume-zone" if zonal else "volume-binding"
    return ""


def _would_in_a_zone(selector: NodeSelector, kind: NodeKind) -> bool:
    """Return whether the node fits if EC2 starts it in one of the selector's zones."""
    return any(
        all(selector.matches(v, fixed.name) for v in fixed.variants)
        for fixed in in_zones(kind, zones_of(selector))
    )
