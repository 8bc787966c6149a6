"""Which pods do work that ends, and which of a node that EC2 takes back are not evicted."""

from datetime import datetime, timedelta

from reconciler.model.cluster import Node, Pod
from reconciler.planner.nodes.interruptions import read_notice

LAST_CALL = timedelta(seconds=30)
"""With so little time left the pods of Jobs have to leave too: they cannot finish there."""


def does_work_that_ends(pod: Pod) -> bool:
    """Whether a Job made it, or another controller, for some work that ends."""
    owner = pod.owner
    return owner is not None and (owner.kind == "Job" or pod.spec.ends_by_itself)


def is_left_alone(pod: Pod, node: Node, now: datetime) -> bool:
    """Whether the pod stays: a DaemonSet's to the end, a Job's as long as it may finish."""
    notice = read_notice(node)
    is_last_call = notice is not None and notice.deadline - now <= LAST_CALL
    return pod.daemon or (does_work_that_ends(pod) and not is_last_call)
