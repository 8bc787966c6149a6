"""Chooses the node that a waiting pod is bound to.

A new pod is tried on all nodes. After that it is tried on a node only when the node is new or has
more room: elsewhere the result cannot have changed. Pods with rules about others, or with volumes
that others may hold elsewhere, are tried on all nodes again.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial

from reconciler.adapters.memory.between_pods import Neighbours, has_rules, spread_counts
from reconciler.adapters.memory.bound_pods import BoundPods, labels_read
from reconciler.adapters.memory.scheduling import (
    SPECS_MAX,
    NodesOfSpecs,
    TakenPorts,
    admits,
    free_of,
    holds,
    pushed_out,
    score,
)
from reconciler.adapters.memory.settings import Scoring
from reconciler.adapters.memory.volumes import MemoryVolumes
from reconciler.model.cluster import Node, Pod, PodSpec, TopologySpreadConstraint
from reconciler.model.ids import NodeName

PodName = tuple[str, str]


class MemoryScheduler:
    """The queue of pods without a node, and the free resources of each node.

    Args:
        nodes: All nodes, as they are at any time.
        pods: All pods, likewise.
        on: The pods of each node, likewise.
        volumes: The claims that pods name.
        scoring: Which of the possible nodes is chosen.
        bind: Puts a pod onto a node, in place of these balloon pods.
    """

    def __init__(
        self,
        nodes: Mapping[NodeName, Node],
        pods: Mapping[PodName, Pod],
        on: Mapping[NodeName, dict[PodName, Pod]],
        volumes: MemoryVolumes,
        scoring: Scoring,
        bind: Callable[[Pod, NodeName, Iterable[Pod]], None],
    ) -> None:
        self._nodes = nodes
        self._pods = pods
        self._on = on
        self._volumes = volumes
        self._scoring = scoring
        self._bind = bind
        self._free: dict[NodeName, dict[str, int]] = {}
        self._waiting: dict[PodName, Pod] = {}
        self._admitting = NodesOfSpecs(nodes, admits)
        """The nodes that would take such pods, regardless of free room."""
        self._spread_counts = {
            (affinity, taints): NodesOfSpecs(
                nodes, partial(spread_counts, affinity=affinity, taints=taints)
            )
            for affinity in (False, True)
            for taints in (False, True)
        }
        """The nodes that spread of such pods counts, by which policies it honours."""
        self._bound_pods = BoundPods(pods)
        self._ports = TakenPorts()
        self._labels_read: dict[int, tuple[PodSpec, tuple[str, ...]]] = {}
        """By the id of a spec: the labels of such pods that their rules about others read."""
        self._rules_wait = 0
        """How many of the waiting pods have rules about other pods."""
        self._kept_away: set[PodName] = set()
        """The waiting pods that rules have kept from some node, their own or those of others."""
        self._balloons = 0
        """How many bound pods have a negative priority."""

    @property
    def waiting(self) -> int:
        """Return how many pods have no node."""
        return len(self._waiting)

    def came(self, name: PodName, pod: Pod) -> None:
        """Record a new or changed pod."""
        if pod.node_name is not None:
            if not pod.finished:
                self._take(pod, 1)
                self._bound_pods.change(pod, 1)
                self._balloons += pod.spec.priority < 0
            self._kept_away.discard(name)
        elif not pod.finished:
            self._waiting[name] = pod
            self._rules_wait += has_rules(pod.spec)

    def went(self, name: PodName, pod: Pod) -> None:
        """Remove a pod's previous form."""
        if pod.node_name is None:
            if self._waiting.pop(name, None) is not None:
                self._rules_wait -= has_rules(pod.spec)
        elif not pod.finished:
            self._take(pod, -1)
            self._bound_pods.change(pod, -1)
            self._balloons -= pod.spec.priority < 0

    def _take(self, pod: Pod, sign: int) -> None:
        assert pod.node_name is not None
        free = self._free.get(pod.node_name)
        if free is not None:
            for key, value in pod.spec.requests.items():
                free[key] = free.get(key, 0) - sign * value
        if pod.spec.host_ports:
            self._ports.change(pod, sign)

    def node_changed(self, name: NodeName) -> None:
        """Record a node that was added, removed or changed."""
        self._free.pop(name, None)
        self._admitting.node_changed(name)
        for counts in self._spread_counts.values():
            counts.node_changed(name)

    def place(self, pod: Pod) -> None:
        """Bind a new pod where it fits; those that waited before it found no room there."""
        if self._rules_wait:
            self.schedule()
        elif not (pod.gated or pod.deleting):
            self._bind_all([pod], None)

    def schedule(self, node: NodeName | None = None) -> None:
        """Bind what fits, highest priority and oldest first; balloon pods are displaced.

        Args:
            node: The only node on which room can have become free; None: any.
        """
        if not self._waiting:
            return
        only = None if self._rules_wait else node
        bound = self._bind_all(self._in_order(), only)
        while bound and self._rules_wait:
            waiting = [pod for pod in self._in_order() if has_rules(pod.spec)]
            bound = self._bind_all(waiting, None)

    def _bind_all(self, pods: Iterable[Pod], only: NodeName | None) -> bool:
        """Bind pods that fit; return whether any was bound, as others' rules may depend on it."""
        refused: set[Hashable] = set()
        bound = False
        for pod in pods:
            alike = self._equivalence_key(pod)
            if alike not in refused and self._place(pod, only):
                bound = True
                continue
            refused.add(alike)
            if self._looks_around(pod):
                self._kept_away.add((pod.key.namespace, pod.key.name))
        return bound

    def _looks_around(self, pod: Pod) -> bool:
        """Return whether a pod's node depends on other pods, so that any may be free now."""
        if has_rules(pod.spec) or self._bound_pods.against(pod):
            return True
        kept_away = self._kept_away
        return bool(kept_away) and (pod.key.namespace, pod.key.name) in kept_away

    def _equivalence_key(self, pod: Pod) -> Hashable:
        """Return what is equal for pods that fit on the same nodes."""
        spec = pod.spec
        if not self._looks_around(pod):
            return (id(spec), pod.key.namespace, *pod.claims) if pod.claims else id(spec)
        known = self._labels_read.get(id(spec))
        if known is None or known[0] is not spec:
            if len(self._labels_read) >= SPECS_MAX:
                self._labels_read.clear()
            known = self._labels_read[id(spec)] = (spec, labels_read(spec))
        labels = [pod.labels.get(key) for key in known[1]]
        return (
            id(spec),
            pod.key.namespace,
            pod.claims,
            *labels,
            *[id(on) for _, on in self._bound_pods.against(pod)],
        )

    def _in_order(self) -> list[Pod]:
        ready = [pod for pod in self._waiting.values() if not (pod.gated or pod.deleting)]
        return sorted(ready, key=lambda p: (-p.spec.priority, p.created_at, p.key.name))

    def _place(self, pod: Pod, only: NodeName | None) -> bool:
        return self._bind_where_it_fits(pod, only) or (
            self._balloons > 0 and self._bind_in_place_of_balloons(pod)
        )

    def _bind_where_it_fits(self, pod: Pod, only: NodeName | None) -> bool:
        nodes = self._admitting.of(pod.spec)
        rules = self._looks_around(pod)
        if only is not None and not (rules or pod.claims):
            nodes = {only: nodes[only]} if only in nodes else {}
        ports = pod.spec.host_ports
        neighbours: Neighbours | None = None
        best: tuple[float, NodeName] | None = None
        for name, node in nodes.items():
            free = self._free_on(name)
            if not holds(free, pod) or (ports and not self._ports.free(name, ports)):
                continue
            if pod.claims and not self._volumes.allow(pod, node):
                continue
            if rules:
                neighbours = neighbours or self._neighbours(pod)
                if not neighbours.allow(node):
                    continue
            found = (score(self._scoring, node, free, pod), name)
            if best is None or found < best:
                best = found
        if best is None:
            return False
        self._bind(pod, best[1], ())
        return True

    def _neighbours(self, pod: Pod) -> Neighbours:
        return Neighbours(pod, self._nodes, self._bound_pods, self._counting_nodes)

    def _counting_nodes(
        self, spec: PodSpec, rule: TopologySpreadConstraint
    ) -> Mapping[NodeName, Node]:
        return self._spread_counts[rule.honor_node_affinity, rule.honor_node_taints].of(spec)

    def _bind_in_place_of_balloons(self, pod: Pod) -> bool:
        neighbours: Neighbours | None = None
        for name in sorted(self._nodes):
            node, on_node = self._nodes[name], self._on.get(name, {})
            victims = pushed_out(
                node, self._free_on(name), [on_node[each] for each in sorted(on_node)], pod
            )
            if victims is None or not self._ports.free(name, pod.spec.host_ports):
                continue
            neighbours = neighbours or self._neighbours(pod)
            if self._volumes.allow(pod, node) and neighbours.allow(node):
                self._bind(pod, name, victims)
                return True
        return False

    def _free_on(self, name: NodeName) -> dict[str, int]:
        free = self._free.get(name)
        if free is None:
            on_node = self._on.get(name, {}).values()
            free = self._free[name] = free_of(self._nodes[name], on_node)
        return free
