"""The cluster half of the in-memory world: nodes, pods, budgets, what controllers do."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from reconciler.adapters.memory.between_pods import obeys
from reconciler.adapters.memory.clock import ManualClock
from reconciler.adapters.memory.scheduling import admits, free_of, holds, pushed_out, score
from reconciler.adapters.memory.settings import BudgetShape, Delays, Scoring
from reconciler.adapters.memory.workloads import (
    AT_ONCE,
    budget_status,
    daemon_pod,
    is_replaced,
    runs_on,
    successor,
)
from reconciler.model.cluster import DaemonSet, Node, Pod, PodDisruptionBudget
from reconciler.model.frozen import Labels
from reconciler.model.ids import NodeName, PodKey

PodName = tuple[str, str]


class MemoryObjects:
    """Nodes, pods and budgets, with a scheduler and controllers that replace what is evicted.

    Args:
        clock: Virtual time.
        delays: How long things take.
        scoring: How the scheduler chooses among nodes.
    """

    def __init__(self, clock: ManualClock, delays: Delays, scoring: Scoring = "by-name") -> None:
        self._clock = clock
        self._delays = delays
        self._scoring = scoring
        self._serial = 0
        self.nodes: dict[NodeName, Node] = {}
        self.pods: dict[PodName, Pod] = {}
        self.daemon_sets: list[DaemonSet] = []
        self.budgets: list[BudgetShape] = []
        self.changed = True
        self.changed_at = clock.monotonic_seconds()  # the first change since the last observation
        self.demand_came = False
        """Whether a pod came that no node had room for; observations end it."""
        self.pod_stop_seconds = delays.pod_stop
        """How long pods take to stop; tests make them slow."""
        self.watchers: list[Callable[[Pod, bool], None]] = []
        """Told of each pod that begins (True) or ceases (False) to occupy a node."""
        self._on: dict[NodeName, dict[PodName, Pod]] = {}
        self._free: dict[NodeName, dict[str, int]] = {}
        self._waiting: dict[PodName, Pod] = {}
        self._covered: dict[tuple[str, Labels], tuple[int, ...]] = {}
        """Which budgets cover pods of a namespace with these labels."""
        self._healthy: Counter[int] = Counter()
        """How many pods that are ready each budget covers."""
        self._as_told: dict[int, PodDisruptionBudget] = {}
        """Each budget as it was asked for last."""
        self._replaced: set[str] = set()
        """Uids of pods on their way out that have a successor already."""

    def touch(self) -> None:
        """Something that matters changed."""
        self.changed_at = self.changed_at if self.changed else self._clock.monotonic_seconds()
        self.changed = True

    def add_node(self, node: Node) -> None:
        """A node joins (or changes)."""
        joins = node.name not in self.nodes
        self.nodes[node.name] = node
        self._free.pop(node.name, None)
        if joins:
            for daemon_set in self.daemon_sets:
                if runs_on(daemon_set, node):
                    self._start_daemon(daemon_set, node)
        self.touch()
        self.schedule()

    def add_daemon_set(self, daemon_set: DaemonSet) -> None:
        """A DaemonSet is created, with a pod on every node that it selects."""
        self.daemon_sets.append(daemon_set)
        for name in sorted(self.nodes):
            if runs_on(daemon_set, self.nodes[name]):
                self._start_daemon(daemon_set, self.nodes[name])

    def _start_daemon(self, daemon_set: DaemonSet, node: Node) -> None:
        self._serial += 1
        self._put(daemon_pod(daemon_set, node, self._serial, self._clock.now()))

    def remove_node(self, name: NodeName) -> bool:
        """A Node object goes, and with it the pods on it; False when there is none."""
        if self.nodes.pop(name, None) is None:
            return False
        for pod in self.pods_on(name):
            self._remove(pod)
        self._free.pop(name, None)
        self.touch()
        self.schedule()
        return True

    def add_pod(self, pod: Pod) -> Pod:
        """A pod is created; without a uid it is given one. Pending ones are scheduled."""
        self._serial += 1
        now = self._clock.now()
        if not pod.key.uid:
            pod = replace(pod, key=replace(pod.key, uid=f"uid-{self._serial}"))
        pod = replace(pod, created_at=pod.created_at or now)
        self._put(pod)
        self.schedule()
        made = self.pods[pod.key.namespace, pod.key.name]
        self.demand_came = self.demand_came or made.node_name is None
        return made

    def find(self, key: PodKey) -> Pod | None:
        """This very pod, while it exists."""
        pod = self.pods.get((key.namespace, key.name))
        return pod if pod is not None and key.uid in {"", pod.key.uid} else None

    def change_pod(self, pod: Pod) -> None:
        """A pod that exists changes (its annotations, say)."""
        if self.find(pod.key) is not None:
            self._put(pod)

    def finish_pod(self, key: PodKey) -> None:
        """A pod's containers end well."""
        pod = self.find(key)
        if pod is not None:
            ended = replace(pod, phase="Succeeded", ready=False, finished_at=self._clock.now())
            self._put(ended)
            self.schedule()

    def remove_pod(self, key: PodKey) -> None:
        """A pod is deleted for good, by its owner or a person: nothing replaces it."""
        pod = self.find(key)
        if pod is not None:
            self._drop(pod)
            self.touch()
            self.schedule()

    def stop_pod(self, pod: Pod, grace_seconds: int) -> None:
        """A pod is deleted: it stops within its grace, and its controller replaces it.

        On a node that does not answer it stays: no kubelet reports that it has stopped.
        """
        if not pod.deleting:
            end = self._clock.now() + timedelta(seconds=grace_seconds)
            self._put(replace(pod, deleting=True, deletion_at=end))
            self._replace_at_once(pod)
        if pod.node_name is None:
            self._stopped(pod.key)
        elif not self._is_silent(pod.node_name):
            pause = min(self.pod_stop_seconds, grace_seconds)
            self._clock.call_later(pause, lambda: self._stopped(pod.key))

    def _is_silent(self, name: NodeName) -> bool:
        node = self.nodes.get(name)
        return node is not None and not node.ready

    def _replace_at_once(self, pod: Pod) -> None:
        if is_replaced(pod) and pod.owner is not None and pod.owner.kind in AT_ONCE:
            self._replaced.add(pod.key.uid)
            self._add_successor(pod)
            self.schedule()

    def _add_successor(self, pod: Pod) -> None:
        self._serial += 1
        self._put(successor(pod, self._serial, self._clock.now()))

    def _stopped(self, key: PodKey) -> None:
        pod = self.find(key)
        if pod is None or (pod.node_name is not None and self._is_silent(pod.node_name)):
            return
        self._remove(pod)
        self.touch()
        self.schedule()

    def _remove(self, pod: Pod) -> None:
        self._drop(pod)
        has_successor = pod.key.uid in self._replaced
        self._replaced.discard(pod.key.uid)
        node = self.nodes.get(pod.node_name) if pod.node_name is not None else None
        if pod.daemon and node is not None and pod.owner is not None:
            for daemon_set in self.daemon_sets:
                if daemon_set.name == pod.owner.name:
                    self._start_daemon(daemon_set, node)
        elif is_replaced(pod) and not has_successor:
            self._add_successor(pod)

    def silence(self, name: NodeName) -> None:
        """A kubelet stops answering: not Ready, its pods neither, and in time they are given up."""
        node = self.nodes.get(name)
        if node is None or not node.ready:
            return
        now = self._clock.now()
        for pod in self.pods_on(name):
            if pod.ready:
                self._put(replace(pod, ready=False))
        self.add_node(replace(node, ready=False, ready_changed_at=now))
        self._clock.call_later(self._delays.pods_given_up, lambda: self._give_up(name, node.uid))

    def _give_up(self, name: NodeName, uid: str) -> None:
        node = self.nodes.get(name)
        if node is not None and node.uid == uid and not node.ready:
            for pod in self.pods_on(name):
                if not (pod.daemon or pod.mirror or pod.finished):
                    self.stop_pod(pod, 0)

    def revive(self, name: NodeName) -> None:
        """It answers again; what was given up meanwhile ends."""
        node = self.nodes.get(name)
        if node is None or node.ready:
            return
        self.add_node(replace(node, ready=True, ready_changed_at=self._clock.now()))
        for pod in self.pods_on(name):
            if pod.deleting:
                self._stopped(pod.key)
            elif pod.phase == "Running":
                self._put(replace(pod, ready=True))

    def pods_on(self, node: NodeName) -> list[Pod]:
        """Pods bound to a node, by name."""
        return [pod for _, pod in sorted(self._on.get(node, {}).items())]

    def schedule(self) -> None:
        """Bind what fits, highest priority and oldest first; balloons give way."""
        if not self._waiting:
            return
        waiting = sorted(
            (pod for pod in self._waiting.values() if not (pod.gated or pod.deleting)),
            key=lambda pod: (-pod.spec.priority, pod.created_at, pod.key.name),
        )
        hopeless: set[int] = set()
        for pod in waiting:
            if id(pod.spec) in hopeless:
                continue
            if not (self._bind_where_it_fits(pod) or self._bind_in_place_of_balloons(pod)):
                hopeless.add(id(pod.spec))

    def _bind_where_it_fits(self, pod: Pod) -> bool:
        best = min(
            (
                (score(self._scoring, node, free, pod), name)
                for name, node in self.nodes.items()
                if holds(free := self._free_on(name), pod)
                and admits(node, pod)
                and obeys(pod, node, self.nodes, self.pods.values())
            ),
            default=None,
        )
        if best is None:
            return False
        self._bind(pod, best[1])
        return True

    def _bind_in_place_of_balloons(self, pod: Pod) -> bool:
        for name in sorted(self.nodes):
            on_node = self.pods_on(name)
            victims = pushed_out(self.nodes[name], self._free_on(name), on_node, pod)
            if victims is not None and obeys(pod, self.nodes[name], self.nodes, self.pods.values()):
                for each in victims:
                    self._remove(each)
                self._bind(pod, name)
                return True
        return False

    def _bind(self, pod: Pod, name: NodeName) -> None:
        starts = self._delays.pod_start
        bound = replace(
            pod,
            node_name=name,
            phase="Running",
            ready=not starts,
            started_at=self._clock.now(),
        )
        self._put(bound)
        if starts:
            self._clock.call_later(starts, lambda: self._started(pod.key))

    def _started(self, key: PodKey) -> None:
        pod = self.find(key)
        if pod is not None and pod.phase == "Running" and not pod.ready and pod.node_name:
            node = self.nodes.get(pod.node_name)
            if node is not None and node.ready:
                self._put(replace(pod, ready=True))

    def _free_on(self, name: NodeName) -> dict[str, int]:
        free = self._free.get(name)
        if free is None:
            on_node = self._on.get(name, {}).values()
            free = self._free[name] = free_of(self.nodes[name], on_node)
        return free

    def _put(self, pod: Pod) -> None:
        name = (pod.key.namespace, pod.key.name)
        before = self.pods.get(name)
        if before is not None:
            self._forget_place(before)
        self.pods[name] = pod
        self._count_healthy(before, -1)
        self._count_healthy(pod, 1)
        if self.watchers:
            self._tell(before, pod)
        if pod.node_name is not None:
            self._on.setdefault(pod.node_name, {})[name] = pod
            self._free.pop(pod.node_name, None)
        elif not pod.finished:
            self._waiting[name] = pod
        if before is None or self._matters(before, pod):
            self.touch()

    def _matters(self, before: Pod, after: Pod) -> bool:
        """Whether a plan may come out differently, as the Kubernetes adapter tells.

        That a pod has become ready matters through its budget alone.
        """
        return bool(self._covering(after)) or before != replace(after, ready=before.ready)

    def _drop(self, pod: Pod) -> None:
        self._count_healthy(self.pods.pop((pod.key.namespace, pod.key.name)), -1)
        self._forget_place(pod)
        if self.watchers:
            self._tell(pod, None)

    def _tell(self, before: Pod | None, after: Pod | None) -> None:
        occupied = before is not None and before.node_name is not None and not before.finished
        occupies = after is not None and after.node_name is not None and not after.finished
        if occupied != occupies:
            known = after or before
            for watch in self.watchers:
                if known is not None:
                    watch(known, occupies)

    def _forget_place(self, pod: Pod) -> None:
        name = (pod.key.namespace, pod.key.name)
        self._waiting.pop(name, None)
        if pod.node_name is not None:
            self._on.get(pod.node_name, {}).pop(name, None)
            self._free.pop(pod.node_name, None)

    def budgets_now(self) -> list[PodDisruptionBudget]:
        """Each budget with what it allows at this moment."""
        return [self._told(number, self._healthy[number]) for number in range(len(self.budgets))]

    def _count_healthy(self, pod: Pod | None, amount: int) -> None:
        """A pod comes or goes as its budgets see it."""
        if pod is not None and pod.ready and not pod.deleting:
            for number in self._covering(pod):
                self._healthy[number] += amount

    def add_budget(self, shape: BudgetShape) -> None:
        """A budget is created over pods that are there already as well, or changed by its name."""
        name = (shape.namespace, shape.name)
        self.budgets = [b for b in self.budgets if (b.namespace, b.name) != name]
        self.budgets.append(shape)
        self._as_told.clear()
        self._covered.clear()
        self._healthy.clear()
        for pod in self.pods.values():
            self._count_healthy(pod, 1)
        self.touch()

    def _told(self, number: int, healthy: int) -> PodDisruptionBudget:
        """The budget as it stands; the same value for as long as nothing changes."""
        known = self._as_told.get(number)
        if known is None or known.current_healthy != healthy:
            known = self._as_told[number] = budget_status(self.budgets[number], healthy)
        return known

    def budgets_of(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The budgets that cover a pod."""
        numbers = self._covering(pod)
        if not numbers:
            return []
        now = self.budgets_now()
        return [now[number] for number in numbers]

    def _covering(self, pod: Pod) -> tuple[int, ...]:
        """The numbers of the budgets that cover a pod; remembered until there is another budget."""
        key = (pod.key.namespace, pod.labels)
        known = self._covered.get(key)
        if known is None:
            known = self._covered[key] = tuple(
                number
                for number, shape in enumerate(self.budgets)
                if shape.namespace == pod.key.namespace
                and shape.selector is not None
                and shape.selector.matches(pod.labels)
            )
        return known
