"""The descheduler's part of a sector config, in the words of descheduler/v1alpha2.

Argument names and defaults: sigs.k8s.io/descheduler, README and plugin types, v0.3x.
"""

from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from reconciler.config import scalars
from reconciler.config.base import Section
from reconciler.config.faults import wrong_type
from reconciler.config.types import (
    Boolean,
    Count,
    Integer,
    Name,
    Percent,
    PositiveCount,
    PositiveSeconds,
    Text,
    must_be,
)

UNDO_EACH_OTHER: Final = (
    "LowNodeUtilization and HighNodeUtilization undo each other: enable one of them"
)


class Namespaces(Section):
    """Namespaces that a policy looks at; `include` or `exclude`, not both."""

    include: tuple[Name, ...] = ()
    """Only these."""
    exclude: tuple[Name, ...] = ()
    """All but these."""

    @model_validator(mode="after")
    def _not_both(self) -> Self:
        if self.include and self.exclude:
            raise wrong_type("state `include` or `exclude`, not both")
        return self


class LabelExpression(Section):
    """One requirement of a label selector."""

    key: Text
    """Label key."""
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist"], BeforeValidator(scalars.any_text)
    ]
    """In, NotIn, Exists or DoesNotExist."""
    values: tuple[Name, ...] = ()
    """Label values, for In and NotIn."""

    @model_validator(mode="after")
    def _as_kubernetes(self) -> Self:
        """Refuse what the API server refuses; NotIn without values would choose everything."""
        if self.operator in {"In", "NotIn"} and not self.values:
            raise wrong_type(f"{self.operator} needs values: state at least one")
        if self.operator in {"Exists", "DoesNotExist"} and self.values:
            raise wrong_type(f"{self.operator} has no values: state In or NotIn, or no values")
        return self


class LabelSelector(Section):
    """A Kubernetes label selector."""

    match_labels: dict[str, Name] = Field(default_factory=dict, alias="matchLabels")
    """Labels that must have these values."""
    match_expressions: tuple[LabelExpression, ...] = Field(default=(), alias="matchExpressions")
    """Requirements that must all hold."""


class PolicyEntry(Section):
    """What every policy has."""

    enabled: Boolean = False
    """Whether it runs."""


class SelectingPolicy(PolicyEntry):
    """A policy that looks at some pods only."""

    namespaces: Namespaces | None = None
    """Namespaces that it looks at; default: all."""
    label_selector: LabelSelector | None = Field(default=None, alias="labelSelector")
    """Pods that it looks at; default: all."""


class RemoveDuplicates(PolicyEntry):
    """One pod of a ReplicaSet, StatefulSet or Job per node."""

    namespaces: Namespaces | None = None
    """Namespaces that it looks at; default: all."""
    exclude_owner_kinds: tuple[Name, ...] = Field(default=(), alias="excludeOwnerKinds")
    """Kinds of owners whose pods may share a node."""


class EvictableNamespaces(Section):
    """Namespaces whose pods a utilization policy leaves alone."""

    exclude: tuple[Name, ...] = ()
    """These: no pod of them is evicted."""


class EvictionLimits(Section):
    """Limits of a utilization policy by itself."""

    node: Count | None = None
    """Most evictions per node and cycle."""


class UtilizationPolicy(PolicyEntry):
    """A policy over the utilization of nodes."""

    thresholds: dict[str, Percent] = Field(default_factory=dict)
    """Percent by resource; a node below all of them is under-used."""
    number_of_nodes: Count = Field(default=0, alias="numberOfNodes")
    """Under-used nodes that there must be more of before it acts."""
    evictable_namespaces: EvictableNamespaces | None = Field(
        default=None, alias="evictableNamespaces"
    )
    """Namespaces whose pods it leaves alone."""

    @model_validator(mode="after")
    def _needs_thresholds(self) -> Self:
        if self.enabled and not self.thresholds:
            raise wrong_type("thresholds are missing: no node would be under-used")
        return self


class LowNodeUtilization(UtilizationPolicy):
    """From over-used to under-used nodes."""

    target_thresholds: dict[str, Percent] = Field(default_factory=dict, alias="targetThresholds")
    """Percent by resource; a node above any of them is over-used."""
    use_deviation_thresholds: Boolean = Field(default=False, alias="useDeviationThresholds")
    """Whether thresholds are distances from the mean."""
    eviction_limits: EvictionLimits | None = Field(default=None, alias="evictionLimits")
    """Limits of this policy by itself; default: none."""

    @model_validator(mode="after")
    def _needs_targets(self) -> Self:
        if not self.enabled:
            return self
        if self.thresholds.keys() != self.target_thresholds.keys():
            raise wrong_type("thresholds and targetThresholds must be of the same resources")
        if self.use_deviation_thresholds:
            return self
        for name, least in self.thresholds.items():
            if least > self.target_thresholds[name]:
                raise wrong_type(f"thresholds of {name} are above targetThresholds")
        return self


class HighNodeUtilization(UtilizationPolicy):
    """From under-used nodes to fuller ones, so that they become empty."""


class RemovePodsViolatingInterPodAntiAffinity(SelectingPolicy):
    """Pods whose anti-affinity no longer holds."""


class RemovePodsViolatingNodeAffinity(SelectingPolicy):
    """Pods whose node affinity no longer holds."""

    node_affinity_type: tuple[
        Annotated[
            Literal[
                "requiredDuringSchedulingIgnoredDuringExecution",
                "preferredDuringSchedulingIgnoredDuringExecution",
            ],
            BeforeValidator(scalars.any_text),
        ],
        ...,
    ] = Field(default=("requiredDuringSchedulingIgnoredDuringExecution",), alias="nodeAffinityType")
    """Which affinity it looks at."""

    @model_validator(mode="after")
    def _needs_a_type(self) -> Self:
        if not self.node_affinity_type:
            raise wrong_type("nodeAffinityType is empty: no pod would go; state at least one type")
        return self


class RemovePodsViolatingNodeTaints(SelectingPolicy):
    """Pods that do not tolerate a taint of their node."""

    excluded_taints: tuple[Name, ...] = Field(default=(), alias="excludedTaints")
    """Taints to leave out, `key` or `key=value`."""
    included_taints: tuple[Name, ...] = Field(default=(), alias="includedTaints")
    """Only these taints, `key` or `key=value`; default: all."""
    include_prefer_no_schedule: Boolean = Field(default=False, alias="includePreferNoSchedule")
    """Whether PreferNoSchedule taints count."""

    @model_validator(mode="after")
    def _not_both(self) -> Self:
        if self.excluded_taints and self.included_taints:
            raise wrong_type("state `excludedTaints` or `includedTaints`, not both")
        return self


class TopologySpreadPolicy(SelectingPolicy):
    """Pods that make a topology spread too uneven."""

    constraints: tuple[
        Annotated[Literal["DoNotSchedule", "ScheduleAnyway"], BeforeValidator(scalars.any_text)],
        ...,
    ] = ("DoNotSchedule",)
    """Which constraints count; an empty list is the default."""
    topology_balance_node_fit: Annotated[
        Boolean, must_be(expected=True, why="a place that fits is always looked for")
    ] = Field(default=True, alias="topologyBalanceNodeFit")
    """Whether a place that fits is looked for; always done here."""

    @field_validator("constraints", mode="after")
    @classmethod
    def _default_of_none(cls, stated: tuple[str, ...]) -> tuple[str, ...]:
        return stated or ("DoNotSchedule",)


_POD_STATES = frozenset(
    {
        *("Running", "Pending", "Succeeded", "Failed", "Unknown"),
        *("NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError"),
        *("PodInitializing", "ContainerCreating", "ImagePullBackOff", "CrashLoopBackOff"),
        *("CreateContainerConfigError", "ErrImagePull", "CreateContainerError", "InvalidImageName"),
        *("OOMKilled", "Error", "Completed", "DeadlineExceeded", "Evicted"),
        *("ContainerCannotRun", "StartError"),
    }
)
"""Phases and reasons of pods, and why containers wait or have ended.

Source: descheduler, validation of PodLifeTime's arguments, read 2026-11.
"""


def _known_state(value: str) -> str:
    if value not in _POD_STATES:
        known = ", ".join(sorted(_POD_STATES))
        raise wrong_type(f"no pod or container is ever in this state; states are: {known}")
    return value


PodState: TypeAlias = Annotated[Name, AfterValidator(_known_state)]


class RemovePodsHavingTooManyRestarts(SelectingPolicy):
    """Pods whose containers keep restarting."""

    pod_restart_threshold: PositiveCount = Field(default=100, alias="podRestartThreshold")
    """Restarts, over all containers, from which a pod is evicted."""
    including_init_containers: Boolean = Field(default=False, alias="includingInitContainers")
    """Whether init containers count."""
    states: tuple[PodState, ...] = ()
    """Only pods in these phases or with containers waiting for these reasons; default: all."""


class PodLifeTime(SelectingPolicy):
    """Pods older than a maximum age."""

    max_pod_life_time_seconds: Count | None = Field(default=None, alias="maxPodLifeTimeSeconds")
    """Age in seconds beyond which a pod is evicted; the policy needs it."""
    states: tuple[PodState, ...] = ()
    """Only pods in these phases, or that they or their containers give these reasons for; pods that
    have ended too, where one says so. Default: all that run or start."""
    including_init_containers: Boolean = Field(default=False, alias="includingInitContainers")
    """Whether init containers' reasons count."""
    including_ephemeral_containers: Boolean = Field(
        default=False, alias="includingEphemeralContainers"
    )
    """Whether ephemeral containers' reasons count."""

    @model_validator(mode="after")
    def _needs_an_age(self) -> Self:
        if self.enabled and self.max_pod_life_time_seconds is None:
            raise wrong_type("maxPodLifeTimeSeconds is missing: no pod would be too old")
        return self


class RemoveFailedPods(SelectingPolicy):
    """Pods that have failed and still exist."""

    min_pod_lifetime_seconds: Count | None = Field(default=None, alias="minPodLifetimeSeconds")
    """Age in seconds from which a failed pod goes."""
    exclude_owner_kinds: tuple[Name, ...] = Field(default=(), alias="excludeOwnerKinds")
    """Kinds of owners whose failed pods stay."""
    reasons: tuple[Name, ...] = ()
    """Only pods that failed for these reasons; default: all."""
    exit_codes: tuple[Integer, ...] = Field(default=(), alias="exitCodes")
    """Only pods with a container that ended with one of these; default: all."""
    including_init_containers: Boolean = Field(default=False, alias="includingInitContainers")
    """Whether init containers' reasons count."""


class Policies(Section):
    """The policies by their names in descheduler/v1alpha2."""

    remove_duplicates: RemoveDuplicates = Field(
        default=RemoveDuplicates.model_construct(), alias="RemoveDuplicates"
    )
    """One pod of an owner per node."""
    low_node_utilization: LowNodeUtilization = Field(
        default=LowNodeUtilization.model_construct(), alias="LowNodeUtilization"
    )
    """From over-used to under-used nodes."""
    high_node_utilization: HighNodeUtilization = Field(
        default=HighNodeUtilization.model_construct(), alias="HighNodeUtilization"
    )
    """From under-used nodes to fuller ones."""
    remove_pods_violating_inter_pod_anti_affinity: RemovePodsViolatingInterPodAntiAffinity = Field(
        default=RemovePodsViolatingInterPodAntiAffinity.model_construct(),
        alias="RemovePodsViolatingInterPodAntiAffinity",
    )
    """Pods whose anti-affinity no longer holds."""
    remove_pods_violating_node_affinity: RemovePodsViolatingNodeAffinity = Field(
        default=RemovePodsViolatingNodeAffinity.model_construct(),
        alias="RemovePodsViolatingNodeAffinity",
    )
    """Pods whose node affinity no longer holds."""
    remove_pods_violating_node_taints: RemovePodsViolatingNodeTaints = Field(
        default=RemovePodsViolatingNodeTaints.model_construct(),
        alias="RemovePodsViolatingNodeTaints",
    )
    """Pods that do not tolerate a taint of their node."""
    remove_pods_violating_topology_spread_constraint: TopologySpreadPolicy = Field(
        default=TopologySpreadPolicy.model_construct(),
        alias="RemovePodsViolatingTopologySpreadConstraint",
    )
    """Pods that make a topology spread too uneven."""
    remove_pods_having_too_many_restarts: RemovePodsHavingTooManyRestarts = Field(
        default=RemovePodsHavingTooManyRestarts.model_construct(),
        alias="RemovePodsHavingTooManyRestarts",
    )
    """Pods whose containers keep restarting."""
    pod_life_time: PodLifeTime = Field(default=PodLifeTime.model_construct(), alias="PodLifeTime")
    """Pods older than a maximum age."""
    remove_failed_pods: RemoveFailedPods = Field(
        default=RemoveFailedPods.model_construct(), alias="RemoveFailedPods"
    )
    """Pods that have failed and still exist."""

    @model_validator(mode="after")
    def _not_back_and_forth(self) -> Self:
        if self.low_node_utilization.enabled and self.high_node_utilization.enabled:
            raise wrong_type(UNDO_EACH_OTHER)
        return self


class Descheduler(Section):
    """Evicts pods that would be placed better elsewhere (docs/descheduler.md)."""

    enabled: Boolean = False
    """Whether it runs."""
    interval_seconds: PositiveSeconds = Field(default=300.0, alias="interval")
    """Pause after evictions; no pod younger than this is evicted."""
    policies: Policies = Policies.model_construct()
    """Policies, each on or off with its own arguments."""
    policy_file: Text | None = None
    """A descheduler/v1alpha2 DeschedulerPolicy file, relative to the config; or `policies`."""
    max_evictions_per_node: Count | None = None
    """Most evictions per node and cycle; default: no limit."""
    max_evictions_per_namespace: Count | None = None
    """Most evictions per namespace and cycle; default: no limit."""
    max_evictions_per_cycle: Count | None = None
    """Most evictions per cycle; default: no limit."""
