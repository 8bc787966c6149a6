"""Nodes that are still on their way to taking pods."""

from datetime import datetime, timedelta

from reconciler.model.cluster import Node

STARTUP_TAINTS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
)
"""Taints that controllers take off a new node, those of agents (`…/agent-not-ready`) beside."""


def startup_taint(node: Node) -> str | None:
    """Return the key of the first taint that closes a new node to pods; None when it has none.

    A node may be Ready and have one: kubelet, cloud controller and agents follow each other.
    Source: cloud-provider and node lifecycle controllers; the EBS and EFS CSI drivers' and
    Cilium's start-up taints.
    """
    keys = (taint.key for taint in node.taints)
    return next((k for k in keys if k in STARTUP_TAINTS or k.endswith("/agent-not-ready")), None)


def takes_pods(node: Node) -> bool:
    """Return whether the node is Ready and has no start-up taint."""
    return node.ready and startup_taint(node) is None


def is_joining(node: Node, at: datetime, init_seconds: float) -> bool:
    """Return whether the node takes no pods yet but may still: it counts as launching."""
    if takes_pods(node) or node.created_at is None:
        return False
    return at - node.created_at < timedelta(seconds=init_seconds)
