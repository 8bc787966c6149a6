"""How controllers replace a pod: at once, or when the old one is gone."""

from dataclasses import replace
from datetime import datetime

from reconciler.adapters.memory.scheduling import selects, untolerated
from reconciler.adapters.memory.settings import BudgetShape
from reconciler.model.cluster import DaemonSet, Node, Owner, Pod, PodDisruptionBudget, Toleration
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import PodKey

AT_ONCE = frozenset({"ReplicaSet", "Job"})
"""Controllers that replace a pod as soon as its deletion begins; a StatefulSet waits for its
end."""

DAEMONS_TOLERATE = tuple(
    Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect=effect)
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
"""What the DaemonSet controller adds to the tolerations of each of its pods."""


def is_replaced(pod: Pod) -> bool:
    """Return whether a controller replaces the pod when it is deleted."""
    return pod.owner is not None and not (pod.daemon or pod.mirror or pod.finished)


def is_expected(pod: Pod) -> bool:
    """Return whether the pod counts for its controller's replicas, as budgets read them.

    One that is terminating does until its replacement exists, so that the number stays.
    """
    if pod.finished:
        return False
    at_once = pod.owner is not None and pod.owner.kind in AT_ONCE
    return not pod.deleting or (is_replaced(pod) and not at_once)


def successor(pod: Pod, serial: int, now: datetime) -> Pod:
    """Return the pod that a controller makes in a pod's place."""
    stable = pod.owner is not None and pod.owner.kind == "StatefulSet"
    name = pod.key.name if stable else f"{pod.key.name.rsplit('-r', 1)[0]}-r{serial}"
    return replace(
        pod,
        key=PodKey(namespace=pod.key.namespace, name=name, uid=f"uid-{serial}"),
        node_name=None,
        phase="Pending",
        ready=False,
        deleting=False,
        created_at=now,
        scheduled_at=None,
        started_at=None,
        finished_at=None,
        restarts=0,
        reason="",
        containers=(),
        nominated_node_name=None,
    )


def daemon_pod(daemon_set: DaemonSet, node: Node, serial: int, now: datetime) -> Pod:
    """Return a DaemonSet's running pod on a node."""
    name = f"{daemon_set.name}-{serial}"
    return Pod(
        key=PodKey(namespace=daemon_set.namespace, name=name, uid=f"uid-{serial}"),
        spec=daemon_set.spec,
        labels=FrozenMap({"daemon": daemon_set.name, **daemon_set.labels}),
        owner=Owner(kind="DaemonSet", name=daemon_set.name, uid=daemon_set.uid),
        node_name=node.name,
        phase="Running",
        ready=True,
        created_at=now,
        started_at=now,
    )


def runs_on(daemon_set: DaemonSet, node: Node) -> bool:
    """Return whether a DaemonSet makes a pod on a node: taints, selector and affinity allow it.

    Whether the node is Ready, is cordoned or has room does not matter.
    """
    spec = daemon_set.spec
    tolerations = (*spec.tolerations, *DAEMONS_TOLERATE)
    return selects(spec, node) and not untolerated(node.taints, tolerations)


def made(daemon_set: DaemonSet, pod: Pod) -> bool:
    """Return whether a pod is this DaemonSet's."""
    if not pod.daemon or pod.owner is None or pod.key.namespace != daemon_set.namespace:
        return False
    return pod.owner.name == daemon_set.name


def budget_status(shape: BudgetShape, covered: int, healthy: int) -> PodDisruptionBudget:
    """Return what a budget allows when this many of its pods are healthy."""
    desired = shape.desired_healthy(covered)
    return PodDisruptionBudget(
        namespace=shape.namespace,
        name=shape.name,
        selector=shape.selector,
        disruptions_allowed=max(0, healthy - desired),
        current_healthy=healthy,
        desired_healthy=desired,
    )
