"""The requests of the pods on each node, in percent of the node's allocatable resources."""

from collections.abc import Collection, Mapping
from itertools import repeat
from operator import attrgetter

import numpy as np

from reconciler.model.cluster import Pod
from reconciler.model.ids import NodeName, ResourceName
from reconciler.planner.disruption.descheduler.facts import Facts
from reconciler.planner.placement.arrays import BoolArray, FloatArray

Percents = Mapping[str, float]
"""By resource."""


class Usage:
    """The requests of all pods on some nodes, DaemonSets included.

    Pods that this plan has evicted count on the node where they are expected. Arrays have a row for
    each node of the view, in its order.

    Args:
        facts: The cluster.
        resources: The resources that thresholds name.
    """

    def __init__(self, facts: Facts, resources: Collection[str]) -> None:
        view = facts.view
        self._names = tuple(ResourceName(name) for name in sorted(resources))
        self._row_of = view.row_of
        shape = len(view.nodes), len(self._names)
        self._offers = np.zeros(shape, dtype=np.int64)
        self.looked_at = np.zeros(len(view.nodes), dtype=np.bool_)
        """The rows of the examined nodes."""
        for node in facts.nodes:
            row = self._row_of[node.name]
            self._offers[row] = [node.allocatable.get(name, 0) for name in self._names]
            self.looked_at[row] = True
        self._offered = self._offers > 0
        self._used, self._deleted = _used(facts, self._names)
        for name, pods in facts.pods_on.items() if facts.moved else ():
            for pod in pods:
                if pod.key in facts.moved:
                    self.move(pod, name, facts.moved[pod.key])

    def move(self, pod: Pod, node: NodeName, place: NodeName) -> None:
        """Count a pod at the node where it is expected."""
        asked = self._asked(pod)
        self._used[self._row_of[node]] -= asked
        self._used[self._row_of[place]] += asked

    def _asked(self, pod: Pod) -> list[int]:
        return [pod.spec.requests.get(name, 0) for name in self._names]

    def _percents(self, more: Pod | None = None) -> FloatArray:
        """Return the percents of all nodes, as if each had one pod `more`; 0 if it offers none."""
        used = self._used if more is None else self._used + self._asked(more)
        offered = np.where(self._offered, self._offers, 1)
        return np.asarray(np.where(self._offered, 100.0 * used / offered, 0.0))

    def percents(self, node: NodeName) -> dict[str, float]:
        """Return the percents of a node by resource, without those that it does not offer.

        Pods that are being deleted are left out: to evict others in their stead would be too much.
        """
        row = self._row_of[node]
        staying = self._used[row] - self._deleted[row]
        values = zip(self._names, staying, self._offers[row], strict=True)
        return {name: 100.0 * float(used) / float(offer) for name, used, offer in values if offer}

    def below(self, thresholds: Percents) -> BoolArray:
        """Return the examined nodes that are at or below all thresholds.

        A node that does not offer one of the resources is not: one without GPUs relieves no GPU
        node, and has no GPUs to use better.
        """
        percents, found = self._percents(), self.looked_at.copy()
        for name, most in thresholds.items():
            at = self._names.index(ResourceName(name))
            found &= self._offered[:, at] & (percents[:, at] <= most)
        return found

    def above(self, thresholds: Percents, more: Pod) -> BoolArray:
        """Return the looked-at nodes that would be above any threshold with one pod more on each.

        kube-scheduler counts pods that are being deleted until they are gone, and so does this.
        """
        percents, found = self._percents(more), np.zeros_like(self.looked_at)
        for name, most in thresholds.items():
            found |= percents[:, self._names.index(ResourceName(name))] > most
        return np.asarray(found & self.looked_at)

    def fullness(self) -> FloatArray:
        """Return what nodes are ordered by: the percents of each added up."""
        return np.asarray(self._percents().sum(axis=1))

    def mean(self) -> dict[str, float]:
        """Return the mean percents of the looked-at nodes that offer a resource."""
        percents = self._percents()
        offered = {name: self._offered[:, at] for at, name in enumerate(self._names)}
        return {
            name: float(percents[rows, at].mean())
            for at, (name, rows) in enumerate(offered.items())
            if rows.any()
        }


_Amounts = np.ndarray[tuple[int, int], np.dtype[np.int64]]


def _used(facts: Facts, names: Collection[ResourceName]) -> tuple[_Amounts, _Amounts]:
    """Return what the pods of each node ask for of each resource, and how much of it will end.

    The second is what pods ask for that are being deleted. Those that are stuck are in neither.
    """
    view = facts.view
    used = np.zeros((len(view.nodes), len(names)), dtype=np.int64)
    deleted = np.zeros_like(used)
    stuck = {pod.key for pods in view.stuck_terminating_on.values() for pod in pods}
    for group in view.running:
        asked = [group.traits.spec.requests.get(name, 0) for name in names]
        if any(asked):
            deleting = stuck and group.traits.deleting
            pods = [p for p in group.pods if p.key not in stuck] if deleting else group.pods
            places = map(view.row_of.get, map(attrgetter("node_name"), pods), repeat(-1))
            rows = np.fromiter(places, dtype=np.int64, count=len(pods))
            counts = np.bincount(rows[rows >= 0], minlength=len(used))
            of_group = counts[:, np.newaxis] * np.array(asked, dtype=np.int64)
            used += of_group
            if group.traits.deleting:
                deleted += of_group
    return used, deleted


def shown(percents: Percents) -> str:
    """For people: `cpu 82 %, memory 40 %`."""
    return ", ".join(f"{name} {value:.0f} %" for name, value in sorted(percents.items()))
