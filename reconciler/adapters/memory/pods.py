"""The cluster half of the in-memory world: nodes, pods, budgets, and what controllers do."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial

from reconciler.adapters.memory.budgets import MemoryBudgets
from reconciler.adapters.memory.clock import ManualClock
from reconciler.adapters.memory.scheduler import MemoryScheduler
from reconciler.adapters.memory.settings import BudgetShape, Delays, Scoring
from reconciler.adapters.memory.volumes import ClaimShape, MemoryVolumes
from reconciler.adapters.memory.workloads import (
    AT_ONCE,
    daemon_pod,
    is_replaced,
    made,
    runs_on,
    successor,
)
from reconciler.model.cluster import NOT_READY, DaemonSet, Node, Pod
from reconciler.model.ids import NodeName, PodKey

PodName = tuple[str, str]


class MemoryObjects:
    """Nodes, pods and budgets, with a scheduler and controllers that replace evicted pods.

    Args:
        clock: Virtual time.
        delays: How long things take.
        scoring: How the scheduler chooses among nodes.
    """

    def __init__(self, clock: ManualClock, delays: Delays, scoring: Scoring = "by-name") -> None:
        self._clock = clock
        self._delays = delays
        self._serial = 0
        self.nodes: dict[NodeName, Node] = {}
        self.pods: dict[PodName, Pod] = {}
        self.daemon_sets: list[DaemonSet] = []
        self.budgets = MemoryBudgets()
        self.volumes = MemoryVolumes(self.nodes)
        self.changed = True
        self.changed_at = clock.monotonic_seconds()  # the first change since the last observation
        self.pressing = True
        """Whether one of the changes since then needs a plan soon: a pod that was bound or ended
        may wait."""
        self.demand_came = False
        """Whether a pod was created that no node had room for; observations reset it."""
        self.pod_stop_seconds = delays.pod_stop
        """How long pods take to stop; tests can make them slow."""
        self.watchers: list[Callable[[Pod, bool], None]] = []
        """Called for each pod that begins (True) or ceases (False) to occupy a node."""
        self.pod_watchers: list[Callable[[Pod | None, Pod | None], None]] = []
        """Called for each change of a pod: as it was before, and as it is."""
        self.successor_watchers: list[Callable[[Pod, Pod], None]] = []
        """Called for each pod that a controller made in place of another: with the old and the new
        one."""
        self._on: dict[NodeName, dict[PodName, Pod]] = {}
        self._owned: dict[tuple[str, str], dict[PodName, Pod]] = {}
        """Pods by namespace and the uid of their owner."""
        self._scheduler = MemoryScheduler(
            self.nodes, self.pods, self._on, self.volumes, scoring, self._bind
        )
        self._replaced: set[str] = set()
        """Uids of terminating pods that have a successor already."""

    def touch(self, *, pressing: bool = True) -> None:
        """Note a change that matters."""
        self.changed_at = self.changed_at if self.changed else self._clock.monotonic_seconds()
        self.changed = True
        self.pressing = self.pressing or pressing

    def seen(self) -> None:
        """Note that an observation includes everything up to now."""
        self.changed = self.pressing = self.demand_came = False

    def add_node(self, node: Node) -> None:
        """Add a node, or change it."""
        before = self.nodes.get(node.name)
        self.nodes[node.name] = node
        self._scheduler.node_changed(node.name)
        if before is None or (before.taints, before.labels) != (node.taints, node.labels):
            for daemon_set in self.daemon_sets:
                self._run_daemon(daemon_set, node)
        self.touch()
        self.schedule(node.name)

    def add_daemon_set(self, daemon_set: DaemonSet) -> None:
        """Create a DaemonSet, or change the one of its name; each node that it matches gets a pod.

        The scheduler runs when the new pods are there: no other pod gets the room of the old ones
        in between.
        """
        if daemon_set in self.daemon_sets:
            return
        former = self._take_daemon_set(daemon_set.namespace, daemon_set.name)
        for pod in former:
            self._drop(pod)
        self.daemon_sets.append(daemon_set)
        for name in sorted(self.nodes):
            self._run_daemon(daemon_set, self.nodes[name])
        if former:
            self.touch(pressing=False)
            self.schedule()

    def remove_daemon_set(self, namespace: str, name: str) -> None:
        """Delete a DaemonSet and its pods."""
        self.remove_pods([pod.key for pod in self._take_daemon_set(namespace, name)])

    def _take_daemon_set(self, namespace: str, name: str) -> list[Pod]:
        """Forget a DaemonSet, if there is one, and return its pods, which are still there."""
        gone = [d for d in self.daemon_sets if (d.namespace, d.name) == (namespace, name)]
        self.daemon_sets = [daemon_set for daemon_set in self.daemon_sets if daemon_set not in gone]
        return [pod for daemon_set in gone for pod in self.owned(namespace, daemon_set.uid)]

    def _run_daemon(self, daemon_set: DaemonSet, node: Node) -> None:
        """Create or remove the pod that a DaemonSet has on a node."""
        there = self._on.get(node.name, {}).values()
        if not runs_on(daemon_set, node) or any(made(daemon_set, pod) for pod in there):
            return
        self._serial += 1
        self._put(daemon_pod(daemon_set, node, self._serial, self._clock.now()))

    def remove_node(self, name: NodeName) -> bool:
        """Delete a Node object and the pods on it; False when there is none."""
        if self.nodes.pop(name, None) is None:
            return False
        for pod in self.pods_on(name):
            self._remove(pod)
        self._scheduler.node_changed(name)
        self.touch()
        self.schedule()
        return True

    def add_pod(self, pod: Pod) -> Pod:
        """Create a pod; without a uid it gets one. Pending pods are scheduled."""
        self._serial += 1
        now = self._clock.now()
        if not pod.key.uid:
            pod = replace(pod, key=replace(pod.key, uid=f"uid-{self._serial}"))
        pod = replace(pod, created_at=pod.created_at or now)
        self._put(pod)
        if pod.node_name is None:
            self._scheduler.place(pod)
        made = self.pods[pod.key.namespace, pod.key.name]
        if made.node_name is None:
            self.demand_came = self.pressing = True
        return made

    def find(self, key: PodKey) -> Pod | None:
        """Return exactly this pod, while it exists."""
        pod = self.pods.get((key.namespace, key.name))
        return pod if pod is not None and key.uid in {"", pod.key.uid} else None

    def change_pod(self, pod: Pod) -> None:
        """Change an existing pod (its annotations, say)."""
        if self.find(pod.key) is not None:
            self._put(pod)

    def finish_pod(self, key: PodKey) -> None:
        """End a pod's containers successfully."""
        pod = self.find(key)
        if pod is not None:
            ended = replace(pod, phase="Succeeded", ready=False, finished_at=self._clock.now())
            self._put(ended)
            self.schedule(pod.node_name)

    def remove_pods(self, keys: Iterable[PodKey]) -> None:
        """Delete pods for good, as their owner or a person: nothing replaces them.

        The scheduler runs once all of them are gone: none of them gets the room of another.
        """
        nodes = set()
        for pod in map(self.find, keys):
            if pod is not None:
                self._drop(pod)
                nodes.add(pod.node_name)
        if nodes:
            self.touch(pressing=False)
            self.schedule(nodes.pop() if len(nodes) == 1 else None)

    def stop_pod(self, pod: Pod, grace_seconds: int) -> None:
        """Delete a pod: it stops within its grace period, and its controller replaces it.

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
            self._add_successor(pod, self.volumes.own_of(pod))
            self.schedule()

    def _add_successor(self, pod: Pod, own_claims: Mapping[str, str]) -> None:
        self._serial += 1
        made = successor(pod, self._serial, self._clock.now())
        if own_claims:
            made = self.volumes.with_own(made, pod, own_claims)
        for watch in self.successor_watchers:
            watch(pod, made)
        self._put(made)

    def _stopped(self, key: PodKey) -> None:
        pod = self.find(key)
        if pod is None or (pod.node_name is not None and self._is_silent(pod.node_name)):
            return
        self._remove(pod)
        self.touch()
        self.schedule()

    def _remove(self, pod: Pod) -> None:
        own_claims = self.volumes.own_of(pod)
        self._drop(pod)
        has_successor = pod.key.uid in self._replaced
        self._replaced.discard(pod.key.uid)
        node = self.nodes.get(pod.node_name) if pod.node_name is not None else None
        if pod.daemon and node is not None:
            for daemon_set in self.daemon_sets:
                if made(daemon_set, pod):
                    self._run_daemon(daemon_set, node)
        elif is_replaced(pod) and not has_successor:
            self._add_successor(pod, own_claims)

    def silence(self, name: NodeName) -> None:
        """Stop a kubelet: node and pods become unready, and later the pods are deleted."""
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
        """Make it answer again; pods that were deleted meanwhile end."""
        node = self.nodes.get(name)
        if node is None or node.ready:
            return
        taints = tuple(taint for taint in node.taints if taint != NOT_READY)
        now = self._clock.now()
        self.add_node(replace(node, ready=True, ready_changed_at=now, taints=taints))
        for pod in self.pods_on(name):
            if pod.deleting:
                self._stopped(pod.key)
            else:
                self._started(pod.key)

    def pods_on(self, node: NodeName) -> list[Pod]:
        """Return the pods bound to a node, by name."""
        return [pod for _, pod in sorted(self._on.get(node, {}).items())]

    def schedule(self, node: NodeName | None = None) -> None:
        """Bind what fits; with a node, only what found no room before and finds it there."""
        self._scheduler.schedule(node)

    def _bind(self, pod: Pod, name: NodeName, instead_of: Iterable[Pod]) -> None:
        for each in instead_of:
            self._remove(each)
        starts = self._delays.pod_start
        bound = replace(
            pod,
            node_name=name,
            phase="Running",
            ready=not starts and not (pod.claims and self.volumes.held_elsewhere(pod, name)),
            started_at=self._clock.now(),
        )
        self._put(bound)
        if starts:
            self._clock.call_later(starts, lambda: self._started(pod.key))

    def _started(self, key: PodKey) -> None:
        pod = self.find(key)
        if pod is not None and pod.phase == "Running" and not pod.ready and pod.node_name:
            node = self.nodes.get(pod.node_name)
            if pod.claims and self.volumes.held_elsewhere(pod, pod.node_name):
                return
            if node is not None and node.ready:
                self._put(replace(pod, ready=True))

    def _put(self, pod: Pod) -> None:
        name = (pod.key.namespace, pod.key.name)
        before = self.pods.get(name)
        if before is not None:
            self._forget_place(before)
        self.pods[name] = pod
        if pod.claims:
            self._claims_changed(before, pod)
        self.budgets.count(before, -1)
        self.budgets.count(pod, 1)
        for watch in self.pod_watchers:
            watch(before, pod)
        if self.watchers:
            self._tell(before, pod)
        if pod.node_name is not None:
            self._on.setdefault(pod.node_name, {})[name] = pod
        self._scheduler.came(name, pod)
        if pod.owner is not None and pod.owner.uid:
            self._owned.setdefault((pod.key.namespace, pod.owner.uid), {})[name] = pod
        if before is None or self._may_change_plan(before, pod):
            self.touch(pressing=False)

    def _may_change_plan(self, before: Pod, after: Pod) -> bool:
        """Return whether a plan may differ, by the rule of the Kubernetes adapter.

        A pod that has become ready matters only through its budget.
        """
        if before.ready == after.ready:
            return before != after
        return bool(self.budgets.covering(after)) or before != replace(after, ready=before.ready)

    def _drop(self, pod: Pod) -> None:
        self.budgets.count(self.pods.pop((pod.key.namespace, pod.key.name)), -1)
        self._forget_place(pod)
        if pod.claims:
            self._claims_changed(pod, None)
        for watch in self.pod_watchers:
            watch(pod, None)
        if self.watchers:
            self._tell(pod, None)

    def _claims_changed(self, before: Pod | None, after: Pod | None) -> None:
        """Tell the volumes; a pod that waited for one of them on another node starts then."""
        for name in self.volumes.changed(before, after):
            key = self.pods[name].key
            self._clock.call_later(self._delays.pod_start, partial(self._started, key))

    def add_claim(self, shape: ClaimShape) -> None:
        """Create a claim, or complete one that only a pod has named."""
        self.volumes.add(shape)
        self.touch(pressing=False)
        self.schedule()

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
        self._scheduler.went(name, pod)
        if pod.node_name is not None:
            self._on.get(pod.node_name, {}).pop(name, None)
        if pod.owner is not None and pod.owner.uid:
            owned = self._owned[pod.key.namespace, pod.owner.uid]
            owned.pop(name, None)
            if not owned:
                del self._owned[pod.key.namespace, pod.owner.uid]

    def add_budget(self, shape: BudgetShape) -> None:
        """Create a budget, or change the one of its name; it covers existing pods too."""
        self.budgets.put(shape, self.pods.values())
        self.touch()

    def remove_budget(self, namespace: str, name: str) -> None:
        """Delete a budget."""
        self.budgets.remove(namespace, name, self.pods.values())
        self.touch()

    def owned(self, namespace: str, uid: str) -> list[Pod]:
        """Return the pods of the owner with this uid, in the order of creation."""
        return list(self._owned.get((namespace, uid), {}).values())
