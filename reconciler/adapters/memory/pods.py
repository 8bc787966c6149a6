"""The cluster half of the in-memory world: nodes, pods, budgets, what controllers do."""

from dataclasses import replace

from reconciler.adapters.memory.clock import ManualClock
from reconciler.adapters.memory.scheduling import fits
from reconciler.adapters.memory.settings import BudgetShape, Delays
from reconciler.model.cluster import Node, Pod, PodDisruptionBudget
from reconciler.model.ids import NodeName, PodKey

PodName = tuple[str, str]


class MemoryObjects:
    """Nodes, pods and budgets, with a scheduler and controllers that replace what is evicted.

    Args:
        clock: Virtual time.
        delays: How long things take.
    """

    def __init__(self, clock: ManualClock, delays: Delays) -> None:
        self._clock = clock
        self._delays = delays
        self._serial = 0
        self.nodes: dict[NodeName, Node] = {}
        self.pods: dict[PodName, Pod] = {}
        self.budgets: list[BudgetShape] = []
        self.changed = True

    def touch(self) -> None:
        """Something that matters changed."""
        self.changed = True

    def add_node(self, node: Node) -> None:
        """A node joins (or changes)."""
        self.nodes[node.name] = node
        self.touch()
        self.schedule()

    def remove_node(self, name: NodeName) -> bool:
        """A Node object goes, and with it the pods on it; False when there is none."""
        if self.nodes.pop(name, None) is None:
            return False
        for pod in self.pods_on(name):
            self._remove(pod)
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
        self.pods[pod.key.namespace, pod.key.name] = pod
        self.touch()
        self.schedule()
        return pod

    def find(self, key: PodKey) -> Pod | None:
        """This very pod, while it exists."""
        pod = self.pods.get((key.namespace, key.name))
        return pod if pod is not None and key.uid in {"", pod.key.uid} else None

    def finish_pod(self, key: PodKey) -> None:
        """A pod's containers end well."""
        pod = self.find(key)
        if pod is not None:
            ended = replace(pod, phase="Succeeded", ready=False, finished_at=self._clock.now())
            self._put(ended)
            self.schedule()

    def remove_pod(self, key: PodKey) -> None:
        """A pod is deleted for good, by its owner or a person: nothing replaces it."""
        if self.find(key) is not None:
            del self.pods[key.namespace, key.name]
            self.touch()
            self.schedule()

    def stop_pod(self, pod: Pod, grace_seconds: int) -> None:
        """A pod is deleted by us: it stops within its grace, and its controller replaces it."""
        self._put(replace(pod, deleting=True))
        pause = min(self._delays.pod_stop, grace_seconds)
        self._clock.call_later(pause, lambda: self._stopped(pod.key))

    def _stopped(self, key: PodKey) -> None:
        pod = self.find(key)
        if pod is not None:
            self._remove(pod)
            self.touch()
            self.schedule()

    def _remove(self, pod: Pod) -> None:
        del self.pods[pod.key.namespace, pod.key.name]
        if pod.owner is None or pod.daemon or pod.finished:
            return
        self._serial += 1
        stable = pod.owner.kind == "StatefulSet"
        name = pod.key.name if stable else f"{pod.key.name.rsplit('-r', 1)[0]}-r{self._serial}"
        self.pods[pod.key.namespace, name] = replace(
            pod,
            key=PodKey(namespace=pod.key.namespace, name=name, uid=f"uid-{self._serial}"),
            node_name=None,
            phase="Pending",
            ready=False,
            deleting=False,
            created_at=self._clock.now(),
            started_at=None,
        )

    def pods_on(self, node: NodeName) -> list[Pod]:
        """Pods bound to a node, by name."""
        return [pod for _, pod in sorted(self.pods.items()) if pod.node_name == node]

    def schedule(self) -> None:
        """Bind what fits, highest priority and oldest first."""
        waiting = [
            pod
            for pod in self.pods.values()
            if pod.node_name is None and not (pod.gated or pod.deleting or pod.finished)
        ]
        waiting.sort(key=lambda pod: (-pod.spec.priority, pod.created_at, pod.key.name))
        for pod in waiting:
            for name in sorted(self.nodes):
                on_node = [each for each in self.pods_on(name) if not each.finished]
                if fits(pod, self.nodes[name], on_node):
                    self._put(
                        replace(
                            pod,
                            node_name=name,
                            phase="Running",
                            ready=True,
                            started_at=self._clock.now(),
                        )
                    )
                    break

    def _put(self, pod: Pod) -> None:
        self.pods[pod.key.namespace, pod.key.name] = pod
        self.touch()

    def budgets_now(self) -> list[PodDisruptionBudget]:
        """Each budget with what it allows at this moment."""
        return [self._budget(shape) for shape in self.budgets]

    def budgets_of(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The budgets that cover a pod."""
        return [
            budget
            for budget in self.budgets_now()
            if budget.namespace == pod.key.namespace
            and budget.selector is not None
            and budget.selector.matches(pod.labels)
        ]

    def _budget(self, shape: BudgetShape) -> PodDisruptionBudget:
        selector = shape.selector
        healthy = sum(
            pod.ready and not pod.deleting
            for pod in self.pods.values()
            if pod.key.namespace == shape.namespace
            and selector is not None
            and selector.matches(pod.labels)
        )
        return PodDisruptionBudget(
            namespace=shape.namespace,
            name=shape.name,
            selector=selector,
            disruptions_allowed=max(0, healthy - shape.min_available),
            current_healthy=healthy,
            desired_healthy=shape.min_available,
        )
