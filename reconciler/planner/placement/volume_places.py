"""From where an existing volume can be reached: its node affinity and its labels."""

from reconciler.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from reconciler.model.volumes import PersistentVolume
from reconciler.planner.placement.kinds import REGION, ZONE

_PLACES = (
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    REGION,
    ZONE,
)
_NOWHERE = NodeSelectorTerm(
    expressions=tuple(Requirement(key=key, operator="DoesNotExist") for key in _PLACES)
)
"""A node without labels about its location: VolumeZone lets every volume go there.

Source: kube-scheduler plugins/volumezone/volume_zone.go, Filter.
"""
_ZONE_SEPARATOR = "__"
"""In-tree volumes list several zones in one label value."""
_STABLE = {"failure-domain.beta.kubernetes.io/region": REGION}
"""VolumeZone looks for a volume's old label by its new name too; zone labels are aliases anyway."""


def selectors_of(volume: PersistentVolume) -> tuple[NodeSelector, ...]:
    """Return a bound volume's node affinity, and its zone and region labels (VolumeZone)."""
    labelled = tuple(
        Requirement(
            key=_STABLE.get(key, key), operator="In", values=tuple(value.split(_ZONE_SEPARATOR))
        )
        for key, value in sorted(volume.labels.items())
        if key in _PLACES
    )
    affinity = (volume.node_affinity,) if volume.node_affinity is not None else ()
    if not labelled:
        return affinity
    return (*affinity, NodeSelector(terms=(NodeSelectorTerm(expressions=labelled), _NOWHERE)))
