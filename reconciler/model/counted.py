"""Which pods count: one answer for plans, for the check before a termination, and for files."""

from reconciler.model.cluster import Pod


def counts(pod: Pod) -> bool:
    """Return whether a pod keeps its node: any but DaemonSet, mirror, finished and balloon pods.

    One that cannot be read counts whatever it seems to be: nothing that is said of it is certain.
    """
    if pod.unreadable:
        return True
    return not (pod.daemon or pod.mirror or pod.finished or pod.spec.priority < 0)
