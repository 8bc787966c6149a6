"""All pods of a snapshot in groups of equals; names, nodes, labels and claims may differ."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter

from reconciler.model.cluster import Pod, PodTraits
from reconciler.model.grouping import grouped


@dataclass(slots=True, eq=False)
class PodGroup:
    """Pods that share their traits; never empty."""

    traits: PodTraits
    pods: list[Pod]
    """In the order of the snapshot."""

    @property
    def distinct(self) -> Sequence[Pod]:
        """Return pods that stand for all, regardless of labels: one, unless claims differ."""
        return self.pods if self.traits.volumes else self.pods[:1]


def group_pods(pods: Collection[Pod]) -> list[PodGroup]:
    """Return all pods in groups; no other code walks over all pods of a cycle."""
    found = grouped(map(attrgetter("traits"), pods), pods)
    return [PodGroup(traits, members) for traits, members in found.items()]
