"""Which of the DaemonSets that select a new node will run there: those that find room."""

from collections.abc import Mapping, Sequence

from reconciler.model.cluster import HostPort, PodSpec, Resources
from reconciler.model.eks_reserve import eks_cpu_reserved_milli, eks_memory_reserved_bytes
from reconciler.model.frozen import FrozenMap

_UNKNOWN = frozenset({"ephemeral-storage"})
"""A config need not state it, and every node has some."""


def those_that_fit(
    daemons: Sequence[PodSpec], landing: Sequence[int], room: Resources
) -> tuple[int, ...]:
    """Return the daemons that find room beside those before them, as kube-scheduler takes them.

    A DaemonSet that is larger than the node has no pod there, whoever wrote it.

    Args:
        daemons: All of them, by falling priority.
        landing: The numbers of those that select the node, in order.
        room: What the node offers to pods.
    """
    left, ports = dict(room), set[HostPort]()
    found: list[int] = []
    for number in landing:
        spec = daemons[number]
        if _fits(spec, left, ports):
            found.append(number)
            ports.update(spec.host_ports)
            for name, amount in spec.requests.items():
                left[name] = left.get(name, amount) - amount
    return tuple(found)


def _fits(spec: PodSpec, left: Mapping[str, int], ports: set[HostPort]) -> bool:
    for name, amount in spec.requests.items():
        if amount > left.get(name, amount if name in _UNKNOWN else 0):
            return False
    return not any(port.collides(taken) for port in spec.host_ports for taken in ports)


def without_system(machine: Mapping[str, int]) -> Resources:
    """Return the most that a machine of which no node was seen offers to pods.

    The reserve of a config stands for daemons too, and may be more than the system takes.
    """
    cpu, memory = machine.get("cpu", 0), machine.get("memory", 0)
    system = {
        "cpu": eks_cpu_reserved_milli(cpu // 1000),
        "memory": eks_memory_reserved_bytes(machine.get("pods", 0)),
    }
    return FrozenMap({**machine, "cpu": max(0, cpu - system["cpu"]),
                      "memory": max(0, memory - system["memory"])})  # fmt: skip
