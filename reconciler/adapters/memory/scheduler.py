"""Which node a waiting pod goes to.

A pod that is new is tried on all nodes. After that it is tried on a node only when that one is new
or has more room: elsewhere the answer cannot have changed.
"""

from collections.abc import Callable, Iterable, Mapping

from reconciler.adapters.memory.between_pods import Neighbours, has_rules
from reconciler.adapters.memory.scheduling import (
    admits,
    free_of,
    holds,
    pushed_out,
    score,
)
from reconciler.adapters.memory.settings import Scoring
from reconciler.model.cluster import Node, Pod, PodSpec
from reconciler.model.ids import NodeName

PodName = tuple[str, str]


class MemoryScheduler:
    """The queue of pods without a node, and what is free on each node.

    Args:
        nodes: All nodes, as they are at any time.
        pods: All pods, likewise.
        on: The pods of each node, likewise.
        scoring: Which of the nodes that would do is taken.
        bind: Puts a pod onto a node, in place of these balloon pods.
    """

    def __init__(
        self,
        nodes: Mapping[NodeName, Node],
        pods: Mapping[PodName, Pod],
        on: Mapping[NodeName, dict[PodName, Pod]],
        scoring: Scoring,
        bind: Callable[[Pod, NodeName, Iterable[Pod]], None],
    ) -> None:
        self._nodes = nodes
        self._pods = pods
        self._on = on
        self._scoring = scoring
        self._bind = bind
        self._free: dict[NodeName, dict[str, int]] = {}
        self._waiting: dict[PodName, Pod] = {}
        self._admitting: dict[int, tuple[PodSpec, dict[NodeName, Node]]] = {}
        """By the id of a spec: the nodes that would take such pods, room left out of account."""
        self._rules_wait = 0
        """How many of the waiting pods have rules about other pods."""
        self._balloons = 0
        """How many bound pods have a negative priority."""

    @property
    def waiting(self) -> int:
        """How many pods have no node."""
        return len(self._waiting)

    def came(self, name: PodName, pod: Pod) -> None:
        """A pod is as it is from now on."""
        if pod.node_name is not None:
            if not pod.finished:
                self._take(pod, 1)
                self._balloons += pod.spec.priority < 0
        elif not pod.finished:
            self._waiting[name] = pod
            self._rules_wait += has_rules(pod.spec)

    def went(self, name: PodName, pod: Pod) -> None:
        """A pod is no longer as it was."""
        if pod.node_name is None:
            if self._waiting.pop(name, None) is not None:
                self._rules_wait -= has_rules(pod.spec)
        elif not pod.finished:
            self._take(pod, -1)
            self._balloons -= pod.spec.priority < 0

    def _take(self, pod: Pod, sign: int) -> None:
        assert pod.node_name is not None
        free = self._free.get(pod.node_name)
        if free is not None:
            for key, value in pod.spec.requests.items():
                free[key] = free.get(key, 0) - sign * value

    def node_changed(self, name: NodeName) -> None:
        """A node came, went, or is another than before."""
        self._free.pop(name, None)
        node = self._nodes.get(name)
        for spec, admitting in self._admitting.values():
            admitting.pop(name, None)
            if node is not None and admits(node, spec):
                admitting[name] = node

    def place(self, pod: Pod) -> None:
        """Bind a pod that came where it fits; those that waited before it found no room there."""
        if self._rules_wait:
            self.schedule()
        elif not (pod.gated or pod.deleting):
            self._place(pod, None)

    def schedule(self, node: NodeName | None = None) -> None:
        """Bind what fits, highest priority and oldest first; balloons give way.

        Args:
            node: The only one on which room can have come free; None: any.
        """
        if not self._waiting:
            return
        only = None if self._rules_wait else node
        hopeless: set[int] = set()
        for pod in self._in_order():
            if id(pod.spec) not in hopeless and not self._place(pod, only):
                hopeless.add(id(pod.spec))

    def _in_order(self) -> list[Pod]:
        ready = [pod for pod in self._waiting.values() if not (pod.gated or pod.deleting)]
        return sorted(ready, key=lambda p: (-p.spec.priority, p.created_at, p.key.name))

    def _place(self, pod: Pod, only: NodeName | None) -> bool:
        return self._bind_where_it_fits(pod, only) or (
            self._balloons > 0 and self._bind_in_place_of_balloons(pod)
        )

    def _bind_where_it_fits(self, pod: Pod, only: NodeName | None) -> bool:
        nodes = self._nodes_admitting(pod.spec)
        if only is not None:
            nodes = {only: nodes[only]} if only in nodes else {}
        rules = has_rules(pod.spec)
        neighbours: Neighbours | None = None
        best: tuple[float, NodeName] | None = None
        for name, node in nodes.items():
            free = self._free_on(name)
            if not holds(free, pod):
                continue
            if rules:
                neighbours = neighbours or Neighbours(pod, self._nodes, self._pods.values())
                if not neighbours.allow(node):
                    continue
            found = (score(self._scoring, node, free, pod), name)
            if best is None or found < best:
                best = found
        if best is None:
            return False
        self._bind(pod, best[1], ())
        return True

    def _nodes_admitting(self, spec: PodSpec) -> dict[NodeName, Node]:
        known = self._admitting.get(id(spec))
        if known is None or known[0] is not spec:
            if len(self._admitting) >= ADMITTING_MAX:
                self._admitting.clear()
            found = {name: node for name, node in self._nodes.items() if admits(node, spec)}
            known = self._admitting[id(spec)] = (spec, found)
        return known[1]

    def _bind_in_place_of_balloons(self, pod: Pod) -> bool:
        for name in sorted(self._nodes):
            node, on_node = self._nodes[name], self._on.get(name, {})
            victims = pushed_out(
                node, self._free_on(name), [on_node[each] for each in sorted(on_node)], pod
            )
            if victims is not None and Neighbours(pod, self._nodes, self._pods.values()).allow(
                node
            ):
                self._bind(pod, name, victims)
                return True
        return False

    def _free_on(self, name: NodeName) -> dict[str, int]:
        free = self._free.get(name)
        if free is None:
            on_node = self._on.get(name, {}).values()
            free = self._free[name] = free_of(self._nodes[name], on_node)
        return free


ADMITTING_MAX = 4096
"""Specs of which it is remembered where they may go."""
