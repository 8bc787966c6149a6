"""What the in-memory world is made of and how long things take in it."""

from dataclasses import dataclass

from reconciler.model.cluster import NO_RESOURCES, Resources, Taint
from reconciler.model.fleet import Lifecycle
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.ids import Region
from reconciler.model.selectors import LabelSelector


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """Times in seconds."""

    modify: float = 1.0
    """How long a fleet is `modifying` after its target changed."""
    launch: float = 20.0
    """From pending to running."""
    join: float = 30.0
    """From running to a Ready node."""
    terminate: float = 10.0
    """From shutting-down to terminated."""
    node_gone: float | None = 30.0
    """From terminated to the cloud controller's deletion of the Node; None: it never does."""
    pod_stop: float = 1.0
    """How long an evicted pod takes to stop, at most its grace period."""
    launch_retry: float = 60.0
    """Pause after a launch for which there was no capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetShape:
    """A fleet as Terraform made it, and what its nodes are like."""

    name: str
    region: Region
    labels: Labels = NO_LABELS
    taints: tuple[Taint, ...] = ()
    allocatable: Resources = NO_RESOURCES
    instance_type: str = "r5.xlarge"
    zone: str = "us-west-2a"
    lifecycle: Lifecycle = "spot"
    tags: Labels = NO_LABELS


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetShape:
    """A budget as people write it; what it allows follows from the pods."""

    namespace: str
    name: str
    selector: LabelSelector | None
    min_available: int
