"""Settings of the in-memory world: what it consists of and how long things take."""

from dataclasses import dataclass, field
from typing import Literal

from reconciler.model.cluster import NO_RESOURCES, Resources, Taint
from reconciler.model.fleet import Lifecycle, Provider
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.model.ids import Region
from reconciler.model.int_or_string import scaled_value
from reconciler.model.selectors import LabelSelector

Scoring = Literal["by-name", "least-allocated", "most-allocated"]
"""How the scheduler chooses among possible nodes: `least-allocated` is kube-scheduler's default,
`most-allocated` its other profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """Durations in seconds."""

    modify: float = 1.0
    """How long a fleet is `modifying` after its target changed."""
    fulfil: float = 0.0
    """From a new target to the first snapshot with its instances."""
    launch: float = 20.0
    """From pending to running."""
    join: float = 30.0
    """From running to a Ready node."""
    terminate: float = 10.0
    """From shutting-down to terminated."""
    node_gone: float | None = 30.0
    """From terminated to the cloud controller's deletion of the Node; None: never."""
    pod_stop: float = 1.0
    """How long an evicted pod takes to stop, at most its grace period."""
    launch_retry: float = 60.0
    """The pause after a launch without capacity."""
    pod_start: float = 0.0
    """From bound to ready."""
    pods_given_up: float = 300.0
    """From a node's silence to the deletion of its pods (the usual toleration of 5 minutes)."""
    instance_forgotten: float = 3600.0
    """From terminated until EC2 no longer lists it (about an hour)."""
    interruption: float = 120.0
    """From a spot instance's notice to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetShape:
    """A fleet as Terraform made it, with the properties of its nodes."""

    name: str
    region: Region
    labels: Labels = NO_LABELS
    taints: tuple[Taint, ...] = ()
    allocatable: Resources = NO_RESOURCES
    instance_type: str = "r5.xlarge"
    zone: str = "us-west-2a"
    lifecycle: Lifecycle = "spot"
    provider: Provider = "ec2-fleet"
    group: str = ""
    """The name of an Auto Scaling group; empty: the fleet's."""
    min_size: int | None = None
    """Of a group only."""
    max_size: int | None = None
    """Of a group only."""
    tags: Labels = NO_LABELS
    pools: tuple[tuple[str, str], ...] = ()
    """Instance types and zones in order of preference; none: its own type and zone."""
    offers: FrozenMap[str, Resources] = field(default_factory=FrozenMap)
    """What nodes of a type offer; `allocatable` for types that are missing here."""
    type_labels: FrozenMap[str, Labels] = field(default_factory=FrozenMap)
    """Labels of nodes of a type in addition to the common ones."""
    spreads_zones: bool = False
    """Whether, among the pools of the preferred type, the zone with the fewest instances is
    chosen."""

    def all_pools(self) -> tuple[tuple[str, str], ...]:
        """Return where it may launch."""
        return self.pools or ((self.instance_type, self.zone),)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetShape:
    """The spec of a PodDisruptionBudget; what it allows is computed from the pods."""

    namespace: str
    name: str
    selector: LabelSelector | None
    min_available: int | str = 0
    """Pods, or a percentage of the covered ones, such as `50%`, rounded up."""
    max_unavailable: int | str | None = None
    """The same for the maximum; used instead of `min_available` when it is set."""

    def desired_healthy(self, covered: int) -> int:
        """Return how many of this many pods must be healthy."""
        if self.max_unavailable is None:
            return scaled_value(self.min_available, covered, up=True)
        return max(0, covered - scaled_value(self.max_unavailable, covered, up=True))
