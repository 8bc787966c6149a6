"""Which pods count: the one answer for plans, for the last check before an end, and for files."""

from reconciler.model.cluster import Pod


def counts(pod: Pod) -> bool:
    """Whether a pod keeps its node: not a DaemonSet's, mirror, finished or balloon pod.

    One that cannot be read counts whatever it seems to be: nothing that is said of it is certain.
    """
    if pod.unreadable:
        return True
    return not (pod.daemon or pod.mirror or pod.finished or pod.spec.priority < 0)
