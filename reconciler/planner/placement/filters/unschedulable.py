"""NodeUnschedulable and NodeReady: cordoned and unready nodes take nothing new."""

from reconciler.planner.placement.kinds import NodeKind


def refuses(kind: NodeKind) -> str:
    """Return `taint` for a node that is cordoned or not ready, else an empty string.

    kube-scheduler sees both as taints (node.kubernetes.io/unschedulable, not-ready). Only
    DaemonSets' pods tolerate those, and they are not planned for.
    """
    return "" if kind.schedulable else "taint"
