"""The speed of the simulated cluster, and annotations with which objects change it."""

from dataclasses import dataclass

DURATION = "sandbox.fleet-reconciler.io/duration"
"""Pod annotation: seconds until its containers end by themselves."""
EXIT_CODE = "sandbox.fleet-reconciler.io/exit-code"
"""Pod annotation: the exit code of its containers; 0 without it."""
TERMINATION = "sandbox.fleet-reconciler.io/termination"
"""Pod annotation: seconds its containers take to stop; cut off at the grace period."""
KUBELET = "sandbox.fleet-reconciler.io/kubelet"
"""Node annotation: `stopped` is a kubelet that does not answer, as when its instance is gone."""
KUBELET_STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Times of the cluster, in seconds, and limits; the defaults are fast."""

    pod_start_seconds: float = 0.0
    """From binding to Running and Ready."""
    job_seconds: float = 5.0
    """How long a Job's pod runs without an annotation of its own."""
    termination_seconds: float = 0.0
    """How long containers take to stop, unless their pod is annotated."""
    restart_seconds: float = 10.0
    """The pause before an ended container is restarted; doubles up to 5 min."""
    node_ready_seconds: float = 0.0
    """From a Node object without conditions to Ready."""
    node_monitor_grace_seconds: float = 1.0
    """Silence of a kubelet after which its node is Unknown (kube-controller-manager: 50)."""
    pod_gc_seconds: float = 0.0
    """How long pods outlive their Node object (kube-controller-manager: 40)."""
    lease_seconds: float = 10.0
    """Between renewals of a node's Lease."""
    heartbeat_seconds: float = 300.0
    """Between heartbeats of a node's conditions when nothing changed."""
    bookmark_seconds: float = 10.0
    """Between bookmarks of a quiet watch (API server: about 60)."""
    watch_log_length: int = 10_000
    """Changes that a watch may lag behind, per resource type; beyond it is 410 Expired."""
    events_max: int = 5_000
    """The number of Event objects kept; the oldest are removed (API server: by age, 1 h)."""
