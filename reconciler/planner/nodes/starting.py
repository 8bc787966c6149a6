"""Nodes that do not take pods yet, and the taints that say so."""

from collections.abc import Container, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.cluster import NOT_READY, Node, Pod, Taint
from reconciler.model.fleet import Instance
from reconciler.planner.placement.filters.taints import untolerated
from reconciler.planner.settings import PlannerSettings

STARTUP_TAINTS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
)
"""Taints that controllers remove from a new node, in addition to those of agents
(`…/agent-not-ready`)."""
FIRST_CHANGES: Final = timedelta(minutes=2)
"""How long after its registration the Ready condition of a node that is never Ready may change.

Kubelet reports it as False when it registers. If kubelet then falls silent, the node lifecycle
controller makes it Unknown within the minute of its start-up grace period. A later change means
that the node was Ready in between.
"""
STARTUP_PREFIXES = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
)
"""Keys that Cluster Autoscaler always takes for start-up taints (its `utils/taints/taints.go`,
read 2026-08)."""


def is_startup_taint(key: str, named: Container[str]) -> bool:
    """Return whether something removes the taint from a node before any pod comes to it.

    Args:
        key: The taint's key.
        named: Keys that the config names.

    Source: cloud-provider and node lifecycle controllers; the EBS and EFS CSI drivers' and Cilium's
    start-up taints; Cluster Autoscaler's prefixes.
    """
    known = key in STARTUP_TAINTS or key.endswith("/agent-not-ready")
    return known or key.startswith(STARTUP_PREFIXES) or key in named


def startup_taints(node: Node, settings: PlannerSettings) -> Iterator[Taint]:
    """Yield the taints that keep pods off a new node.

    A node may be Ready and have one: kubelet, cloud controller and agents finish one after the
    other.
    """
    named = settings.startup_taints
    return (taint for taint in node.taints if is_startup_taint(taint.key, named))


def came_before(pod: Pod, taint: Taint) -> bool:
    """Return whether the taint was added to the pod's node after the pod was bound.

    If so, the node took pods without it. A static pod, which the kubelet starts, shows nothing.
    """
    unbound = pod.mirror or pod.unreadable
    return not unbound and untolerated([taint], pod.spec.tolerations) is not None


def lasting(taints: Iterable[Taint], named: Container[str]) -> tuple[Taint, ...]:
    """Return the taints that a new node still has when pods come to it."""
    return tuple(taint for taint in taints if not is_startup_taint(taint.key, named))


def takes_pods(node: Node, settings: PlannerSettings) -> bool:
    """Return whether the node is Ready and has no start-up taint."""
    if not node.taints:
        return node.ready
    return node.ready and next(startup_taints(node, settings), None) is None


def started_at(node: Node, instance: Instance | None) -> datetime | None:
    """Return when the node registered or, if later, when EC2 started its instance again.

    The Node of a stopped instance stays, and is not Ready until kubelet runs again: after a warm
    pool, or for a spot instance that EC2 stopped. None if not known.

    Args:
        node: The node.
        instance: Its instance; None if unknown. EC2 sets a new launch time at each start (API
            reference, Instance, LaunchTime, read 2026-11).
    """
    created, launched = node.created_at, instance.launched_at if instance is not None else None
    if created is None or launched is None:
        return created or launched
    return max(created, launched)


def unready_since(node: Node, instance: Instance | None) -> datetime | None:
    """Return since when a node that is not Ready could have been Ready; None if not known.

    Args:
        node: The node.
        instance: As for `started_at`.
    """
    return max(filter(None, (node.ready_changed_at, started_at(node, instance))), default=None)


def unready_time_ends_at(
    node: Node, instance: Instance | None, at: datetime, settings: PlannerSettings
) -> datetime | None:
    """Return when a node that is not Ready may be replaced; None if it is not known since when.

    That is when `unready_time` is over, and of a node that is joining also `instance_init_time`.

    Args:
        node: The node.
        instance: As for `started_at`.
        at: The time of the plan.
        settings: For both times, and start-up taints.
    """
    since = unready_since(node, instance)
    if since is None:
        return None
    ends = since + timedelta(seconds=settings.unready_seconds)
    if not is_joining(node, instance, at, settings):
        return ends
    started = started_at(node, instance) or since
    return max(ends, started + timedelta(seconds=settings.instance_init_seconds))


def is_joining(
    node: Node, instance: Instance | None, at: datetime, settings: PlannerSettings
) -> bool:
    """Return whether the node takes no pods yet but still may: then it counts as launching.

    Args:
        node: The node.
        instance: As for `started_at`.
        at: The time of the plan.
        settings: For `instance_init_time` and start-up taints.
    """
    since = None if takes_pods(node, settings) else started_at(node, instance)
    if since is None:
        return False
    return at - since < timedelta(seconds=settings.instance_init_seconds)


def never_took_pods(
    node: Node, instance: Instance | None, pods: Iterable[Pod], settings: PlannerSettings
) -> bool:
    """Return whether the node has not taken a pod since it started, as far as anything shows.

    A node that is not Ready counts only if its condition has not changed since its start
    (`FIRST_CHANGES`); one that is Ready, if it has a start-up taint. Neither counts if it has a pod
    that Kubernetes binds to no such node: it was Ready, and without the taint, before.

    Args:
        node: The node.
        instance: As for `started_at`.
        pods: All pods of the node, finished ones included.
        settings: Which taints are start-up taints.
    """
    if takes_pods(node, settings):
        return False
    taints = list(startup_taints(node, settings))
    if not node.ready:
        since, changed = started_at(node, instance), node.ready_changed_at
        if since is None or changed is None or changed - since > FIRST_CHANGES:
            return False
        taints.append(NOT_READY)
    return not any(came_before(pod, taint) for pod in pods for taint in taints)
