"""Which pods of a node that EC2 takes back are not evicted."""

from datetime import datetime, timedelta

from reconciler.model.cluster import Node, Pod
from reconciler.planner.nodes.interruptions import read_notice

LAST_CALL = timedelta(seconds=30)
"""With so little time left the pods of Jobs have to leave too: they cannot finish there."""


def is_left_alone(pod: Pod, node: Node, now: datetime) -> bool:
    """Whether the pod stays: a DaemonSet's to the end, a Job's as long as it may finish."""
    kind = pod.owner.kind if pod.owner is not None else ""
    notice = read_notice(node)
    is_last_call = notice is not None and notice.deadline - now <= LAST_CALL
    return kind == "DaemonSet" or (kind == "Job" and not is_last_call)
