"""The reference of the ratios: plain Python, pod by pod, first fit decreasing.

What a straightforward autoscaler does for each pod: try every open node, else open one of the
cheapest fleet that takes it. Of the rules between pods it knows those that the benchmark's pods
have: by hostname one pod of an application per node, by zone affinity and spread.
"""

from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter

from reconciler.model.cluster import Pod, Resources
from reconciler.model.snapshot import Snapshot
from reconciler.planner.settings import FleetSettings, PlannerSettings
from tests.builders import HOSTNAME, ZONE

PODS_MAX = 500
"""It is quadratic: more would take minutes."""


@dataclass(slots=True)
class Space:
    """An open node: what is free on it and which applications it runs."""

    zone: str
    free: dict[str, int]
    apps: Counter[str] = field(default_factory=Counter)


class FirstFit:
    """Nodes that are open, and where each application's pods are."""

    def __init__(self, snapshot: Snapshot, settings: PlannerSettings) -> None:
        self._fleets = sorted(settings.fleets(), key=lambda f: (f.usd_per_hour or 0, f.name))
        self._zones = {f.zone or "" for f in self._fleets}
        self._in_zone: Counter[tuple[str, str]] = Counter()
        nodes = {
            node.name: Space(zone=node.labels.get(ZONE, ""), free=dict(node.allocatable))
            for node in snapshot.cluster.nodes
        }
        for pod in snapshot.cluster.pods:
            if pod.node_name is not None:
                self._put(nodes[pod.node_name], pod)
        self._open = list(nodes.values())

    def place(self, pod: Pod) -> None:
        """Put a pod on the first node that takes it, or on a new one."""
        for space in self._open:
            if self._takes(space, pod):
                self._put(space, pod)
                return
        opened = self._cheapest(pod)
        if opened is not None:
            self._put(opened, pod)
            self._open.append(opened)

    def _put(self, space: Space, pod: Pod) -> None:
        for name, amount in pod.spec.requests.items():
            space.free[name] -= amount
        app = pod.labels.get("app", "")
        space.apps[app] += 1
        self._in_zone[app, space.zone] += 1

    def _takes(self, space: Space, pod: Pod) -> bool:
        return _holds(space.free, pod.spec.requests) and self._allows(space, pod)

    def _allows(self, space: Space, pod: Pod) -> bool:
        spec, app = pod.spec, pod.labels.get("app", "")
        apart = {rule.topology_key for rule in spec.pod_anti_affinity}
        even = {rule.topology_key for rule in spec.topology_spread}
        if HOSTNAME in apart | even and space.apps[app]:
            return False
        counts = {zone: self._in_zone[app, zone] for zone in self._zones}
        here = self._in_zone[app, space.zone]
        if spec.pod_affinity and not here and any(counts.values()):
            return False
        return ZONE not in even or here <= min(counts.values())

    def _cheapest(self, pod: Pod) -> Space | None:
        for fleet in self._fleets:
            space = Space(zone=fleet.zone or "", free=_resources(fleet))
            if self._takes(space, pod):
                return space
        return None


def pods_per_second(snapshot: Snapshot, settings: PlannerSettings) -> float:
    """How many pods it places in a second, over at most `PODS_MAX` pods of the snapshot."""
    pending = [pod for pod in snapshot.cluster.pods if pod.node_name is None]
    every = max(1, len(pending) // PODS_MAX)
    chosen = sorted(pending[::every][:PODS_MAX], key=_size, reverse=True)
    first_fit = FirstFit(snapshot, settings)
    begin = perf_counter()
    for pod in chosen:
        first_fit.place(pod)
    return len(chosen) / (perf_counter() - begin)


def _resources(fleet: FleetSettings) -> dict[str, int]:
    return dict(fleet.options[0].resources)


def _holds(free: dict[str, int], requests: Resources) -> bool:
    return all(free.get(name, 0) >= amount for name, amount in requests.items())


def _size(pod: Pod) -> float:
    requests = pod.spec.requests
    return max(requests["cpu"] / 1000, requests["memory"] / 2**32)
