"""Pods that hang in deletion: they keep no node.

After the grace period a pod's containers have been killed; what keeps its object then is a
finalizer, a volume, or a kubelet that has lost it, and that may last for ever. kube-scheduler still
counts what such a pod asks for.
"""

from datetime import datetime, timedelta

from reconciler.model.cluster import Pod

HANGS_AFTER = timedelta(seconds=60)
"""After the end of the grace period. Source: Karpenter takes a pod for stuck after as long,
Cluster Autoscaler after 30 s (read 2026-11)."""


def hangs(pod: Pod, at: datetime) -> bool:
    """Whether its deletion should be over by now."""
    return pod.deletion_at is not None and at - pod.deletion_at > HANGS_AFTER
