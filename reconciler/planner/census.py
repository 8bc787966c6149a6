"""All pods of a snapshot in groups whose members planning tells apart by name and node only."""

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
        """Pods that stand for all: one, unless claims may tell them apart."""
        return self.pods if self.traits.volumes else self.pods[:1]

    def of_one_class(self, pods: Sequence[Pod] | None = None) -> Iterable[Sequence[Pod]]:
        """The pods (in an order of their own, if given) in parts that no filter can tell apart."""
        listed = self.pods if pods is None else pods
        return [[pod] for pod in listed] if self.traits.volumes else [listed]


def take_census(pods: Iterable[Pod]) -> list[PodGroup]:
    """The groups; the only walk over all pods that every cycle takes."""
    found: defaultdict[PodTraits, list[Pod]] = defaultdict(list)
    for pod in pods:
        found[pod.traits].append(pod)
    return [PodGroup(traits, members) for traits, members in found.items()]
