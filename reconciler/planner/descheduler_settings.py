"""What the config decides about the descheduler, policy by policy (docs/descheduler.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.cluster import Pod
from reconciler.model.selectors import LabelSelector


@dataclass(frozen=True, slots=True, kw_only=True)
class PodScope:
    """Which pods a policy looks at."""

    include: frozenset[str] = frozenset()
    """Only these namespaces; none: all but the excluded ones."""
    exclude: frozenset[str] = frozenset()
    selector: LabelSelector | None = None
    """None: whatever labels they have."""

    def covers(self, pod: Pod) -> bool:
        """Return whether the policy looks at the pod."""
        namespace = pod.key.namespace
        if (self.include and namespace not in self.include) or namespace in self.exclude:
            return False
        return self.selector is None or self.selector.matches(pod.labels)


EVERYTHING = PodScope()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDuplicates:
    """Replicas of one owner on fewer nodes than they could be on."""

    scope: PodScope = EVERYTHING
    exclude_owner_kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class LowNodeUtilization:
    """From over-used to under-used nodes."""

    thresholds: Mapping[str, float]
    """Percent by resource; a node below all of them is under-used."""
    target_thresholds: Mapping[str, float]
    """Percent by resource; a node above any of them is over-used."""
    deviation: bool = False
    """Whether both are distances from the mean of the nodes."""
    number_of_nodes: int = 0
    scope: PodScope = EVERYTHING
    evictions_per_node_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HighNodeUtilization:
    """From under-used nodes to fuller ones."""

    thresholds: Mapping[str, float]
    number_of_nodes: int = 0
    scope: PodScope = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class InterPodAntiAffinity:
    """Pods whose anti-affinity no longer holds."""

    scope: PodScope = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAffinity:
    """Pods whose node affinity no longer holds."""

    scope: PodScope = EVERYTHING
    required: bool = True
    preferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTaints:
    """Pods that do not tolerate a taint of their node."""

    scope: PodScope = EVERYTHING
    excluded: frozenset[str] = frozenset()
    """`key` or `key=value`."""
    included: frozenset[str] = frozenset()
    """Only these; none: all."""
    prefer_no_schedule: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySpread:
    """Pods that make a topology spread too uneven."""

    scope: PodScope = EVERYTHING
    hard: bool = True
    """Whether DoNotSchedule constraints count."""
    soft: bool = False
    """Whether ScheduleAnyway constraints count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TooManyRestarts:
    """Pods whose containers keep restarting."""

    scope: PodScope = EVERYTHING
    threshold: int = 100
    init_containers: bool = False
    states: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLifeTime:
    """Pods that are older than they should get."""

    seconds_max: float
    scope: PodScope = EVERYTHING
    states: frozenset[str] = frozenset()
    init_containers: bool = False
    ephemeral_containers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPods:
    """Pods that failed and are still there."""

    scope: PodScope = EVERYTHING
    seconds_min: float = 0.0
    exclude_owner_kinds: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    exit_codes: frozenset[int] = frozenset()
    init_containers: bool = False


PolicyArguments = (
    RemoveDuplicates
    | LowNodeUtilization
    | HighNodeUtilization
    | InterPodAntiAffinity
    | NodeAffinity
    | NodeTaints
    | TopologySpread
    | TooManyRestarts
    | PodLifeTime
    | FailedPods
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictorSettings:
    """Which pods the policies of one profile may evict: the DefaultEvictor's arguments."""

    destinations: LabelSelector | None = None
    """Nodes that pods may be expected on; None: all."""
    selector: LabelSelector | None = None
    """Only pods with such labels; None: all."""
    namespace_selector: LabelSelector | None = None
    """Only pods of namespaces with such labels; None: all."""
    priority_below: int | None = None
    """Only pods of a lower priority; None: no such limit."""
    local_storage: bool = False
    """Whether pods with local storage may go, whatever scale-in says."""
    system_critical: bool = False
    """Whether pods of a system-critical priority may go."""
    failed_bare_pods: bool = False
    """Whether failed pods without a controller may go."""
    claims_stay: bool = False
    """Whether pods with PersistentVolumeClaims stay."""
    without_budget_stays: bool = False
    """Whether pods without a PodDisruptionBudget stay."""
    replicas_min: int = 0
    """A pod whose controller has fewer pods stays."""
    age_min_seconds: float = 0.0
    """A younger pod stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Policies that share an evictor."""

    name: str = ""
    evictor: EvictorSettings = field(default_factory=EvictorSettings)
    policies: tuple[PolicyArguments, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeschedulerSettings:
    """The descheduler that runs."""

    profiles: tuple[Profile, ...]
    interval_seconds: float = 300.0
    nodes: LabelSelector | None = None
    """Nodes that are looked at; None: all of our fleets."""
    per_node_max: int | None = None
    per_namespace_max: int | None = None
    per_cycle_max: int | None = None
    grace_seconds_max: float | None = None
    """Most grace that an evicted pod gets; None: its own."""
