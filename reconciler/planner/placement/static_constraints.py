"""What of a pod decides which nodes it may ever go to, whatever else runs there."""

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.model.cluster import Toleration
from reconciler.model.frozen import Labels
from reconciler.model.selectors import NodeSelector
from reconciler.planner.placement.label_keys import node_selector_keys
from reconciler.planner.placement.volume_needs import VolumeNeeds


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticConstraints:
    """What the static filters read of a pod; equal ones have one verdict per node kind."""

    node_selector: Labels
    node_affinity: NodeSelector | None
    tolerations: tuple[Toleration, ...]
    volumes: VolumeNeeds

    def label_keys(self) -> tuple[str, ...]:
        """Return the keys of the node labels that the filters read, in order."""
        keys = set(self.node_selector).union(*map(node_selector_keys, self._selectors()))
        return tuple(sorted(keys))

    def names(self) -> frozenset[str] | None:
        """Return the node names that the constraints mention; all other names are equivalent.

        None if an expression compares names in another way, so that no two names are equivalent.
        """
        terms = [term for selector in self._selectors() for term in selector.terms]
        lines = [line for term in terms for line in term.fields]
        if any(line.operator in {"Gt", "Lt"} for line in lines):
            return None
        return frozenset([value for line in lines for value in line.values])

    def _selectors(self) -> Sequence[NodeSelector]:
        if self.node_affinity is None:
            return self.volumes.selectors
        return (*self.volumes.selectors, self.node_affinity)
