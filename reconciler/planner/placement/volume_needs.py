"""What a pod's volumes require of a node, as values."""

from dataclasses import dataclass

from reconciler.model.frozen import FrozenMap
from reconciler.model.selectors import NodeSelector


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SharedVolume:
    """A volume that more than one pod uses."""

    driver: str
    handle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeNeeds:
    """What a pod's volumes require of a node."""

    selectors: tuple[NodeSelector, ...] = ()
    """All of them must match the node."""
    attachments: FrozenMap[str, int] = FrozenMap()  # noqa: RUF009 - an immutable value
    """Per driver, how many volumes no other pod uses."""
    shared: tuple[SharedVolume, ...] = ()
    zone_claim: str = ""
    """A claim, with its namespace, whose volume will be made in the zone of its first pod.

    All pods that name it here must be in one zone.
    """
    blocked: str = ""
    """An unplaceable code that applies on every node: `volume-binding` or `volume-in-use`."""
    detail: str = ""
    claim: str = ""
    """The claim that blocks, and in words what would resolve that."""
    remedy: str = ""

    @property
    def drivers(self) -> frozenset[str]:
        """Return every driver that attaches something for the pod."""
        return frozenset(self.attachments) | {volume.driver for volume in self.shared}


NO_VOLUMES = VolumeNeeds()
