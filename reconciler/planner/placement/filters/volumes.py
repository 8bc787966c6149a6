"""VolumeBinding, VolumeZone and VolumeRestrictions; attach limits are a counted dimension."""

from reconciler.planner.placement.kinds import ZONE_KEYS, NodeKind
from reconciler.planner.placement.volumes import VolumeNeeds


def refuses(needs: VolumeNeeds, kind: NodeKind) -> str:
    """`volume-zone`, `volume-binding`, `volume-in-use`, `zone`, or nothing."""
    if needs.blocked:
        return needs.blocked
    for selector in needs.selectors:
        matching = [v for v in kind.variants if selector.matches(v, kind.name)]
        if len(matching) == len(kind.variants):
            continue
        zonal = any(r.key in ZONE_KEYS for term in selector.terms for r in term.expressions)
        if matching:
            return "zone" if zonal else "volume-binding"
        return "volume-zone" if zonal else "volume-binding"
    return ""
