"""Which of the DaemonSets that select a new node will run there: those that find room."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.cluster import HostPort, Namespace, Pod, PodAffinityTerm, PodSpec, Resources
from reconciler.model.eks_reserve import (
    EKS_EVICTION_MEMORY_BYTES,
    eks_cpu_reserved_milli,
    eks_memory_reserved_bytes,
)
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.planner.placement.kinds import HOSTNAME, REGION, ZONE_KEYS
from reconciler.planner.placement.label_keys import with_label_keys
from reconciler.planner.placement.namespaces import NAME

_UNKNOWN = frozenset({"ephemeral-storage"})
"""Names that a config need not state, and of which every node has some."""
_OF_EVERY_NODE = frozenset({HOSTNAME, REGION, *ZONE_KEYS})
"""Topologies in which a node is one domain: pods kept apart by any of them share no node."""
_COMPARED_MAX = 8
"""With how many daemons of the highest priority a daemon's anti-affinity is compared: those of
the system, which every node has. A tenant may write a thousand, with dozens of terms each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A DaemonSet's pod on a new node."""

    spec: PodSpec
    seen: Pod
    """What other pods' rules see of it, and the rules by which it keeps others away."""


class Daemons:
    """The DaemonSets' pods that may be on new nodes.

    Args:
        every: All of them, the highest priority first.
        namespaces: For rules that select namespaces by label.
    """

    def __init__(self, every: Iterable[Daemon], namespaces: Iterable[Namespace] = ()) -> None:
        self.every = tuple(every)
        self.specs = tuple(daemon.spec for daemon in self.every)
        self._ruled = frozenset(
            number for number, spec in enumerate(self.specs) if spec.pod_anti_affinity
        )
        self._labels = (
            {namespace.name: namespace.labels for namespace in namespaces} if self._ruled else {}
        )
        self._apart: dict[tuple[int, int], bool] = {}

    def that_fit(self, landing: Sequence[int], room: Resources) -> tuple[int, ...]:
        """Return the daemons that run next to those before them, as kube-scheduler places them.

        A DaemonSet that is larger than the node has no pod there, whoever wrote it.

        Args:
            landing: The numbers of those that select the node, in order.
            room: What the node offers to pods.
        """
        left, ports = dict(room), set[HostPort]()
        found: list[int] = []
        for number in landing:
            spec = self.specs[number]
            if not _fits(spec, left, ports) or self._is_kept_off(number, found):
                continue
            found.append(number)
            ports.update(spec.host_ports)
            for name, amount in spec.requests.items():
                if name in left:
                    left[name] -= amount
        return tuple(found)

    def _is_kept_off(self, number: int, running: Sequence[int]) -> bool:
        """Return whether anti-affinity keeps a daemon off a node that has these, on either side."""
        return bool(self._ruled) and any(
            self._are_apart(other, number) for other in running[:_COMPARED_MAX]
        )

    def _are_apart(self, one: int, other: int) -> bool:
        if one not in self._ruled and other not in self._ruled:
            return False
        known = self._apart.get((one, other))
        if known is None:
            first, second = self.every[one].seen, self.every[other].seen
            known = self._keeps_off(first, second) or self._keeps_off(second, first)
            self._apart[one, other] = known
        return known

    def _keeps_off(self, holder: Pod, pod: Pod) -> bool:
        return any(
            term.topology_key in _OF_EVERY_NODE
            and self._is_meant(pod.key.namespace, term, holder)
            and _selects(term, holder.labels, pod.labels)
            for term in holder.spec.pod_anti_affinity
        )

    def _is_meant(self, namespace: str, term: PodAffinityTerm, holder: Pod) -> bool:
        """Return whether a term is about pods of the namespace."""
        if namespace in term.namespaces:
            return True
        if term.namespace_selector is None:
            return not term.namespaces and namespace == holder.key.namespace
        labels = self._labels.get(namespace, NO_LABELS)
        return term.namespace_selector.matches({NAME: namespace, **labels})


def _selects(term: PodAffinityTerm, own: Labels, labels: Labels) -> bool:
    selector = with_label_keys(term.selector, own, term.match_label_keys, term.mismatch_label_keys)
    return selector is not None and selector.matches(labels)


def _fits(spec: PodSpec, left: Mapping[str, int], ports: set[HostPort]) -> bool:
    for name, amount in spec.requests.items():
        if amount > left.get(name, amount if name in _UNKNOWN else 0):
            return False
    return not any(port.collides(taken) for port in spec.host_ports for taken in ports)


def without_system(machine: Mapping[str, int]) -> Resources:
    """Return the most that a machine offers to pods if no node of its kind was seen.

    The reserve of a config is for daemons too, and may be more than the system takes.
    """
    cpu, memory = machine.get("cpu", 0), machine.get("memory", 0)
    system = {
        "cpu": eks_cpu_reserved_milli(cpu // 1000),
        "memory": eks_memory_reserved_bytes(machine.get("pods", 0)) + EKS_EVICTION_MEMORY_BYTES,
    }
    return FrozenMap({**machine, "cpu": max(0, cpu - system["cpu"]),
                      "memory": max(0, memory - system["memory"])})  # fmt: skip
