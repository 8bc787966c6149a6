"""Sectors, fleets and own sizes as they stand in a sector config."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from reconciler.config.base import Section
from reconciler.config.resource_amounts import ExtendedAmounts, ResourceAmounts
from reconciler.config.sections import DisruptionBudget, GracePeriod, ScaleIn
from reconciler.config.terraform import Taints, TerraformVariables
from reconciler.config.tree import UnquotedText
from reconciler.config.types import (
    Arch,
    Boolean,
    Bytes,
    Capacity,
    Expander,
    InitialCount,
    InstanceTypeName,
    Integer,
    Labels,
    Lifecycle,
    Name,
    OverSubscription,
    PositiveBytes,
    PositiveCount,
    PositiveCpuMilli,
    PositiveSeconds,
    Price,
    Provider,
    Region,
    Seconds,
    SpotFallback,
    Text,
)


class OwnSize(Section):
    """A size of your own in addition to the built-in tables."""

    cpu_milli: PositiveCpuMilli = Field(alias="cpu")
    """CPU of a node, as a Kubernetes quantity."""
    memory_bytes: PositiveBytes = Field(alias="memory")
    """Memory of a node, as a Kubernetes quantity."""
    instance_types: tuple[InstanceTypeName, ...]
    """What EC2 may launch for it; at least one."""
    kind: Name | None = None
    """A kind that a sector may have; without it the size is for sectors of any kind."""
    pods: PositiveCount | None = None
    """Pod slots of a node; default: the least of the instance types in the catalogue."""
    ephemeral_storage_bytes: Bytes | None = Field(default=None, alias="ephemeral_storage")
    """Ephemeral storage of a node; default: `ebs_size`."""
    extended: ExtendedAmounts = Field(default_factory=dict)
    """Extended resources of a node, such as `nvidia.com/gpu: 1`."""
    arch: Arch | None = None
    """amd64 or arm64; default: that of the instance types in the catalogue."""
    price_usd_per_hour: Price | None = None
    """On-demand price of a node; default: the catalogue's."""
    spot_price_usd_per_hour: Price | None = None
    """Spot price of a node; default: the catalogue's estimate."""
    allocatable: ResourceAmounts | None = None
    """Exact resources that a new node has for pods; then nothing is reserved on top.

    What DaemonSets take there must be subtracted already, pod slots too. Default of `pods`: as of
    its instance types.
    """


class FleetEntry(Section):
    """One fleet: the nodes of one size in a sector, and in one zone if `zone` is set."""

    size: Name
    """Built-in size (xsmall to xlarge) or one of `sizes`."""
    min_capacity: InitialCount = 0
    """Nodes that are always kept (also read as `capacity_min`)."""
    max_capacity: Capacity | None = None
    """Most nodes; default: no limit."""
    initial_node_count: InitialCount | None = None
    """Nodes the fleet is created with; default: `min_capacity`."""
    spot: Boolean = True
    """Whether its nodes are spot instances."""
    lifecycle: Lifecycle | None = None
    """`spot` or `on-demand`: like `spot`, and part of the fleet's name. With it a sector can have
    one size twice: spot and on-demand."""
    spot_fallback: SpotFallback = "none"
    """`on-demand`: its demand may move on to on-demand when spot is unavailable; or `none`."""
    zone: Text | None = None
    """The one availability zone it launches in; part of its name."""
    regions: tuple[Region, ...] = ()
    """Regions in order of preference; default: the sector's."""
    labels: Labels = Field(default_factory=dict)
    """More labels for its nodes."""
    taints: Taints = ()
    """Taints of its nodes, as Kubernetes objects."""
    priority: Integer = 0
    """For the expander `priority`: higher first."""
    provider: Provider = "ec2-fleet"
    """`ec2-fleet`, or `asg` for an Auto Scaling group."""
    managed: Boolean = True
    """Whether Terraform makes and changes it here; false: it is only sized here."""
    auto_scaling_group: Text | None = None
    """Name of the Auto Scaling group, which Terraform makes here unless `managed` is false; needed
    with `provider: asg`."""
    instance_types: tuple[InstanceTypeName, ...] = ()
    """What EC2 may launch; default: the size's."""
    allocatable: ResourceAmounts | None = None
    """Exact resources that a new node has for pods; then nothing is reserved on top.

    What DaemonSets take there must be subtracted already, pod slots too. Default of `pods`: as of
    its instance types.
    """
    price_usd_per_hour: Price | None = None
    """Price of a node; default: that of its cheapest option."""
    inactive_grace_period_seconds: Seconds | None = Field(
        default=None, alias="inactive_grace_period"
    )
    """One grace period for the whole day, after those of `inactive_grace_periods`."""
    inactive_grace_periods: tuple[GracePeriod, ...] | None = None
    """Grace periods by time of day and weekday; default: the sector's."""
    bounce_deployment_pods: Boolean = False
    """Whether a node whose pods all belong to ReplicaSets may be emptied after 1,800 s."""
    expire_after_seconds: PositiveSeconds | None = Field(default=None, alias="expire_after")
    """Age at which its nodes are replaced, one after the other; default: never."""
    terminate_after_seconds: Seconds | None = Field(default=None, alias="terminate_after")
    """How long pods may keep an expired node; then they are deleted. Default: without limit."""
    scale_in: ScaleIn | None = None
    """Keys of the top-level `scale_in` that differ here."""
    disruption_budgets: tuple[DisruptionBudget, ...] = ()
    """How many of these nodes may be disrupted at a time, in addition to the budgets above."""
    terraform: TerraformVariables | None = None
    """Module variables that differ here."""

    @model_validator(mode="before")
    @classmethod
    def _accept_capacity_min(cls, data: Any) -> Any:
        """Kluster Fleet Manager's code reads `capacity_min` where its documents say otherwise."""
        if not isinstance(data, Mapping) or "capacity_min" not in data:
            return data
        rest = {key: value for key, value in data.items() if key != "capacity_min"}
        return {"min_capacity": data["capacity_min"], **rest}

    @model_validator(mode="before")
    @classmethod
    def _spot_of_lifecycle(cls, data: Any) -> Any:
        """Set `spot` from `lifecycle` if it is not stated; a rule finds the two that differ."""
        if not isinstance(data, Mapping) or "spot" in data:
            return data
        lifecycle = data.get("lifecycle")
        return {**data, "spot": UnquotedText("false")} if lifecycle == "on-demand" else data


class SectorEntry(Section):
    """A part of the cluster that pods select by its name, served by fleets of one kind."""

    kind: Name
    """memory, cpu, or the kind of an own size."""
    fleets: tuple[FleetEntry, ...]
    """Its fleets, one per size (and zone and lifecycle)."""
    over_subscription: OverSubscription | None = None
    """Overrides `default_over_subscription`."""
    expander: Expander | None = None
    """Overrides the top-level `expander`."""
    labels: Labels = Field(default_factory=dict)
    """More labels for the nodes of all its fleets."""
    taints: Taints = ()
    """Taints of the nodes of all its fleets, as Kubernetes objects."""
    max_hourly_usd: Price | None = None
    """Most that the targets of its fleets, and nodes beyond them, may cost per hour; default: no
    limit."""
    inactive_grace_periods: tuple[GracePeriod, ...] | None = None
    """Grace periods by time of day and weekday; default: the top-level ones."""
    scale_in: ScaleIn | None = None
    """Keys of the top-level `scale_in` that differ here."""
    disruption_budgets: tuple[DisruptionBudget, ...] = ()
    """How many of these nodes may be disrupted at a time, in addition to the budgets above."""
    terraform: TerraformVariables | None = None
    """Module variables that differ here."""
    regions: tuple[Region, ...] = ()
    """Regions in order of preference; default: the top-level ones."""
