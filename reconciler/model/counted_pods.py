"""Which pods count: the same for plans, for the check before a termination, and for files."""

from reconciler.model.cluster import Pod


def counts(pod: Pod) -> bool:
    """Return whether a pod keeps its node: all but DaemonSet, mirror, finished and balloon pods.

    A pod that could not be decoded counts, whatever it seems to be: nothing about it is certain.
    """
    if pod.unreadable:
        return True
    return not (pod.daemon or pod.mirror or pod.finished or pod.spec.priority < 0)
