"""The value model of an EC2 Fleet: requests, launches, history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal

Lifecycle = Literal["spot", "on-demand"]
FleetType = Literal["maintain", "request", "instant"]
TerminationPolicy = Literal["termination", "no-termination"]


class FleetState(StrEnum):
    """`FleetState` of DescribeFleets."""

    SUBMITTED = "submitted"
    ACTIVE = "active"
    MODIFYING = "modifying"
    DELETED_RUNNING = "deleted_running"
    DELETED_TERMINATING = "deleted_terminating"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """How long the emulated EC2 takes, in seconds; the defaults suit a demonstration."""

    launch_seconds: float = 2.0
    """From the launch of an instance (pending) to running."""
    terminate_seconds: float = 1.0
    """From TerminateInstances (shutting-down) to terminated."""
    activate_seconds: float = 0.0
    """From CreateFleet (submitted) to active."""
    modify_seconds: float = 1.0
    """How long a fleet is `modifying` after ModifyFleet."""
    dispatch_seconds: float = 0.0
    """From a shortfall of capacity to the launch that fills it."""
    retry_seconds: float = 15.0
    """How long a pool without capacity is not used (EC2: 13 minutes and more)."""
    forget_seconds: float = 3600.0
    """How long a terminated instance can still be described (EC2: about an hour)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTemplateRef:
    """A launch template as the fleet names it; `$Latest` is resolved at each launch."""

    template_id: str | None = None
    template_name: str | None = None
    version: str = "$Default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One capacity pool that a fleet may launch from: an override in one zone."""

    template: LaunchTemplateRef
    instance_type: str
    zone: str
    subnet_id: str | None
    weight: float
    """Units of the target that one instance fulfils; above 0."""
    priority: float
    """Lower first, for the prioritized strategies."""
    max_price: str | None
    """Highest price in USD per unit hour; None is the On-Demand price."""
    image_id: str | None
    """AMI of the override; None takes the launch template's."""
    order: int
    """Place among the fleet's overrides, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCapacity:
    """`TargetCapacitySpecification` with the rest given to the default type, as EC2 answers it."""

    total: int
    on_demand: int
    spot: int
    default_type: Lifecycle
    unit_type: str | None = None

    def with_total(self, total: int) -> "TargetCapacity":
        """Return it with another total: the fixed part stays, the default type gets the rest."""
        if self.default_type == "spot":
            fixed = min(self.on_demand, total)
            on_demand, spot = fixed, total - fixed
        else:
            fixed = min(self.spot, total)
            on_demand, spot = total - fixed, fixed
        return TargetCapacity(
            total=total,
            on_demand=on_demand,
            spot=spot,
            default_type=self.default_type,
            unit_type=self.unit_type,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRequest:
    """A CreateFleet request, checked and with EC2's defaults filled in."""

    fleet_type: FleetType
    target: TargetCapacity
    pools: tuple[Pool, ...]
    launch_template_configs: tuple[Mapping[str, Any], ...]
    """As given, in order: DescribeFleets answers them unchanged."""
    excess_policy: TerminationPolicy
    spot_options: Mapping[str, Any]
    on_demand_options: Mapping[str, Any]
    replace_unhealthy: bool
    terminate_with_expiration: bool
    context: str | None = None
    client_token: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    instance_tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Tags for instances, which only an instant fleet may carry."""

    @property
    def spot_strategy(self) -> str:
        """Return the allocation strategy for spot instances."""
        return str(self.spot_options["AllocationStrategy"])

    @property
    def on_demand_strategy(self) -> str:
        """Return the allocation strategy for on-demand instances."""
        return str(self.on_demand_options["AllocationStrategy"])


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetChange:
    """A ModifyFleet request; None leaves a field as it is."""

    total: int | None = None
    excess_policy: TerminationPolicy | None = None
    pools: tuple[Pool, ...] | None = None
    launch_template_configs: tuple[Mapping[str, Any], ...] | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An instance that counts towards a fleet's target."""

    instance_id: str
    number: int
    """It rises with every launch and orders members on pages."""
    pool: Pool
    lifecycle: Lifecycle
    spot_request_id: str | None
    launched_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRefusal:
    """Why a pool refused an instance."""

    code: str
    """EC2's error code, such as `InsufficientInstanceCapacity`."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRecord:
    """One record of DescribeFleetHistory, with EC2's names."""

    event_type: Literal["error", "fleetRequestChange", "instanceChange", "information"]
    sub_type: str
    at: datetime
    description: str | None = None
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """An event, as EventBridge gets it."""

    source: str
    detail_type: str
    instance_ids: Sequence[str]
    detail: Mapping[str, Any]
