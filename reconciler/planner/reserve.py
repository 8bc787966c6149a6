"""How much of a new node is reserved, while no node of its fleet shows what it offers."""

from dataclasses import dataclass

from reconciler.model.cluster import NO_RESOURCES, Resources
from reconciler.model.fleet import Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """What the config reserves of new nodes."""

    stated: Resources = NO_RESOURCES
    """Per node, for the system and the DaemonSets together: CPU in milli, memory in bytes."""
    groups_as_eks: bool = False
    """Whether new nodes of Auto Scaling groups lack only what EKS's images and DaemonSets take:
    if the config states no reserve. Its default is meant for EC2 Fleets of this program."""

    def of(self, provider: Provider) -> Resources | None:
        """Return the reserve of new nodes; None for what EKS's images take."""
        return None if self.groups_as_eks and provider == "asg" else self.stated
