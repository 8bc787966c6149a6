"""All pods of a snapshot in groups of equals; names, nodes, labels and claims may differ."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reconciler.model.cluster import Pod, PodTraits


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


def take_census(pods: Iterable[Pod]) -> list[PodGroup]:
    """Return all pods in groups; no other code walks over all pods of a cycle."""
    found: defaultdict[PodTraits, list[Pod]] = defaultdict(list)
    for pod in pods:
        found[pod.traits].append(pod)
    return [PodGroup(traits, members) for traits, members in found.items()]
