"""NodeUnschedulable and NodeReady: cordoned and unready nodes take nothing new."""

from reconciler.planner.placement.kinds import NodeKind


def refuses(kind: NodeKind) -> str:
    """`taint` for a node that is cordoned or not ready, else nothing.

    kube-scheduler sees both as taints (node.kubernetes.io/unschedulable, not-ready); pods that
    tolerate those are DaemonSets', which are not planned for.
    """
    return "" if kind.schedulable else "taint"
