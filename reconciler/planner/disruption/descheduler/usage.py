"""What the pods of each node ask for, in percent of what the node offers."""

from collections.abc import Collection, Mapping

from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import NodeName, ResourceName
from reconciler.planner.disruption.descheduler.facts import Facts

Percents = Mapping[str, float]
"""By resource."""


class Usage:
    """Requests of all pods of the looked-at nodes, DaemonSets' included; moved pods are followed.

    Args:
        facts: The cluster.
        resources: Those that thresholds name.
    """

    def __init__(self, facts: Facts, resources: Collection[str]) -> None:
        self._names = tuple(ResourceName(name) for name in sorted(resources))
        self._offers = {node.name: node.allocatable for node in facts.nodes}
        self._used = {node.name: dict.fromkeys(self._names, 0) for node in facts.nodes}
        for node in facts.nodes:
            for pod in facts.pods_on.get(node.name, ()):
                self._add(node.name, pod, 1)

    def _add(self, node: NodeName, pod: Pod, sign: int) -> None:
        used = self._used[node]
        for name in self._names:
            used[name] += sign * pod.spec.requests.get(name, 0)

    def move(self, pod: Pod, node: NodeName, place: NodeName) -> None:
        """Count a pod at the node where it is expected."""
        self._add(node, pod, -1)
        if place in self._used:
            self._add(place, pod, 1)

    def percents(self, node: NodeName, more: Pod | None = None) -> dict[str, float]:
        """Return the percents of a node by resource that it offers, with one pod more if given."""
        offers = self._offers[node]
        added = more.spec.requests if more is not None else {}
        return {
            name: 100.0 * (self._used[node][name] + added.get(name, 0)) / offers[name]
            for name in self._names
            if offers.get(name, 0) > 0
        }

    def mean(self) -> dict[str, float]:
        """Return the mean percents of the nodes that offer a resource."""
        every = [self.percents(node) for node in self._used]
        found: dict[str, float] = {}
        for name in self._names:
            values = [each[name] for each in every if name in each]
            if values:
                found[name] = sum(values) / len(values)
        return found


def is_below(percents: Percents, thresholds: Percents) -> bool:
    """Whether a node is below all thresholds, or at them."""
    return all(percents.get(name, 0.0) <= most for name, most in thresholds.items())


def is_above(percents: Percents, thresholds: Percents) -> bool:
    """Whether a node is above any threshold."""
    return any(percents.get(name, 0.0) > most for name, most in thresholds.items())


def shown(percents: Percents) -> str:
    """For people: `cpu 82 %, memory 40 %`."""
    return ", ".join(f"{name} {value:.0f} %" for name, value in sorted(percents.items()))


def fullness(usage: Usage, node: Node) -> float:
    """Return what nodes are ordered by: the percents of a node added up."""
    return sum(usage.percents(node.name).values())
