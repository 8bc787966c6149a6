"""The DefaultEvictor's arguments in a descheduler/v1alpha2 policy file."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from reconciler.config import scalars
from reconciler.config.base import Section
from reconciler.config.descheduler import LabelSelector
from reconciler.config.faults import wrong_type
from reconciler.config.node_selector_text import checked_node_selector
from reconciler.config.types import Boolean, Count, Integer, Seconds, Text, must_be

NodeSelectorText: TypeAlias = Annotated[Text, AfterValidator(checked_node_selector)]


class PriorityThreshold(Section):
    """Pods of this priority and above stay."""

    value: Integer
    """The priority; names of PriorityClasses are not read."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_names(cls, data: Any) -> Any:
        if isinstance(data, dict) and "name" in data:
            raise wrong_type("PriorityClasses are not read: state the priority as `value`")
        return data


def _movable(name: str) -> str:
    if name == "DaemonSetPods":
        raise wrong_type("DaemonSet pods are never evicted: they would come back")
    return name


def _protected(name: str) -> str:
    if name == "PodsWithResourceClaims":
        raise wrong_type("ResourceClaims are not read: annotate those pods do-not-disrupt")
    return name


class PodProtections(Section):
    """Which kinds of pods are protected from the policies of a profile."""

    default_disabled: tuple[
        Annotated[
            Literal["PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods"],
            BeforeValidator(scalars.any_text),
            BeforeValidator(_movable),
        ],
        ...,
    ] = Field(default=(), alias="defaultDisabled")
    """Kinds that are protected otherwise and may go."""
    extra_enabled: tuple[
        Annotated[
            Literal["PodsWithPVC", "PodsWithoutPDB"],
            BeforeValidator(scalars.any_text),
            BeforeValidator(_protected),
        ],
        ...,
    ] = Field(default=(), alias="extraEnabled")
    """Kinds that may go otherwise and stay."""


NO_PROTECTIONS = PodProtections.model_construct()


class DefaultEvictor(Section):
    """Which pods the policies of a profile may evict."""

    node_selector: NodeSelectorText = Field(default="", alias="nodeSelector")
    """Nodes that pods may be expected on, as `key=value,…`."""
    label_selector: LabelSelector | None = Field(default=None, alias="labelSelector")
    """Pods that may go; default: all."""
    namespace_label_selector: LabelSelector | None = Field(
        default=None, alias="namespaceLabelSelector"
    )
    """Namespaces whose pods may go; default: all."""
    priority_threshold: PriorityThreshold | None = Field(default=None, alias="priorityThreshold")
    """Pods of this priority and above stay."""
    node_fit: Annotated[
        Boolean,
        must_be(expected=True, why="a place on another node is always looked for: nodeFit is true"),
    ] = Field(default=True, alias="nodeFit")
    """Always true here."""
    min_replicas: Count = Field(default=0, alias="minReplicas")
    """A pod whose controller has fewer pods stays."""
    min_pod_age_seconds: Seconds = Field(default=0.0, alias="minPodAge")
    """A younger pod stays."""
    evict_local_storage_pods: Boolean = Field(default=False, alias="evictLocalStoragePods")
    """Whether pods with local storage may go."""
    evict_daemon_set_pods: Annotated[
        Boolean,
        must_be(expected=False, why="DaemonSet pods are never evicted: they would come back"),
    ] = Field(default=False, alias="evictDaemonSetPods")
    """Always false here."""
    evict_system_critical_pods: Boolean = Field(default=False, alias="evictSystemCriticalPods")
    """Whether pods of a system-critical priority may go."""
    evict_failed_bare_pods: Boolean = Field(default=False, alias="evictFailedBarePods")
    """Whether failed pods without a controller may go."""
    ignore_pvc_pods: Boolean = Field(default=False, alias="ignorePvcPods")
    """Whether pods with PersistentVolumeClaims stay."""
    ignore_pods_without_pdb: Boolean = Field(default=False, alias="ignorePodsWithoutPDB")
    """Whether pods without a PodDisruptionBudget stay."""
    pod_protections: PodProtections = Field(default=NO_PROTECTIONS, alias="podProtections")
    """The same choices as lists of kinds of pods."""


DEFAULT_EVICTOR = DefaultEvictor.model_construct()
