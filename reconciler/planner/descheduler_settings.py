"""The descheduler's settings, policy by policy (docs/descheduler.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.cluster import Pod
from reconciler.model.selectors import LabelSelector


@dataclass(frozen=True, slots=True, kw_only=True)
class PodScope:
    """Which pods a policy considers."""

    include: frozenset[str] = frozenset()
    """Only these namespaces; if empty, all but the excluded ones."""
    exclude: frozenset[str] = frozenset()
    selector: LabelSelector | None = None
    """Only pods with such labels; None for all pods."""

    def covers(self, pod: Pod) -> bool:
        """Return whether the policy considers the pod."""
        namespace = pod.key.namespace
        if (self.include and namespace not in self.include) or namespace in self.exclude:
            return False
        return self.selector is None or self.selector.matches(pod.labels)


EVERYTHING = PodScope()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDuplicates:
    """Arguments of RemoveDuplicates: replicas of one owner on too few nodes."""

    scope: PodScope = EVERYTHING
    exclude_owner_kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class LowNodeUtilization:
    """Arguments of LowNodeUtilization: moves pods from over-used to under-used nodes."""

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
    """Arguments of HighNodeUtilization: moves pods from under-used nodes to fuller ones."""

    thresholds: Mapping[str, float]
    number_of_nodes: int = 0
    scope: PodScope = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class InterPodAntiAffinity:
    """Arguments of RemovePodsViolatingInterPodAntiAffinity."""

    scope: PodScope = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAffinity:
    """Arguments of RemovePodsViolatingNodeAffinity."""

    scope: PodScope = EVERYTHING
    required: bool = True
    preferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTaints:
    """Arguments of RemovePodsViolatingNodeTaints."""

    scope: PodScope = EVERYTHING
    excluded: frozenset[str] = frozenset()
    """`key` or `key=value`."""
    included: frozenset[str] = frozenset()
    """Only these; empty for all."""
    prefer_no_schedule: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySpread:
    """Arguments of RemovePodsViolatingTopologySpreadConstraint."""

    scope: PodScope = EVERYTHING
    hard: bool = True
    """Whether DoNotSchedule constraints count."""
    soft: bool = False
    """Whether ScheduleAnyway constraints count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TooManyRestarts:
    """Arguments of RemovePodsHavingTooManyRestarts."""

    scope: PodScope = EVERYTHING
    threshold: int = 100
    init_containers: bool = False
    states: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLifeTime:
    """Arguments of PodLifeTime."""

    seconds_max: float
    scope: PodScope = EVERYTHING
    states: frozenset[str] = frozenset()
    init_containers: bool = False
    ephemeral_containers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPods:
    """Arguments of RemoveFailedPods."""

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
    """Arguments of the DefaultEvictor: which pods the policies of one profile may evict."""

    destinations: LabelSelector | None = None
    """Nodes on which pods may be expected; None for all."""
    selector: LabelSelector | None = None
    """Only pods with such labels; None for all."""
    namespace_selector: LabelSelector | None = None
    """Only pods of namespaces with such labels; None for all."""
    priority_below: int | None = None
    """Only pods with a lower priority; None for no such limit."""
    local_storage: bool = False
    """Whether pods with local storage may be evicted, whatever scale-in says."""
    system_critical: bool = False
    """Whether pods with a system-critical priority may be evicted."""
    failed_bare_pods: bool = False
    """Whether failed pods without a controller may be evicted."""
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
    """The settings of the descheduler."""

    profiles: tuple[Profile, ...]
    interval_seconds: float = 300.0
    nodes: LabelSelector | None = None
    """Nodes whose pods may be evicted; None for all nodes of our fleets."""
    per_node_max: int | None = None
    per_namespace_max: int | None = None
    per_cycle_max: int | None = None
    grace_seconds_max: float | None = None
    """The longest grace period of an evicted pod; None for its own."""
