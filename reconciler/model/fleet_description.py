"""What Terraform manages about a live fleet: enough to describe it as variables of a module.

Only adopting existing fleets needs this; the planner does not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.ids import FleetId


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideDescription:
    """One override of a fleet: what it may launch, where and for how much; None if not stated."""

    instance_type: str | None = None
    subnet_id: str | None = None
    availability_zone: str | None = None
    max_price: str | None = None
    """USD per hour, in EC2's own digits; None: the on-demand price."""
    priority: float | None = None
    weighted_capacity: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTemplateDescription:
    """The version of a launch template from which new nodes are made."""

    id: str
    name: str
    version: int = 0
    latest_version: int = 0
    """The newest known version."""
    description: str = ""
    """Description of that version."""
    tags: Labels | None = None
    """Tags of the template itself; None: they were not read."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The settings of instances, as EC2 answers them, without empty ones. `UserData` may hold
    secrets."""

    @property
    def instance_type(self) -> str:
        """Return the type for a fleet that names no types of its own; empty: none."""
        return str(self.data.get("InstanceType", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """What an Auto Scaling group has and an EC2 Fleet does not."""

    max_size: int
    subnet_ids: tuple[str, ...] = ()
    tags: tuple[tuple[str, str, bool], ...] = ()
    """Key, value, and whether instances get the tag at launch."""
    mixed: bool = True
    """Whether it has a mixed instances policy."""
    on_demand_base: int = 0
    on_demand_percentage: int = 0
    max_price: str = ""
    """USD per hour for one spot instance; empty: the on-demand price."""
    unfit: str = ""
    """What of it Terraform's module cannot express; empty if nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDescription:
    """One maintain fleet, or one Auto Scaling group."""

    id: FleetId
    tags: Labels = NO_LABELS
    spot: bool = True
    allocation_strategy: str = ""
    interruption_behavior: str = "terminate"
    """What EC2 does with interrupted spot instances: terminate, stop or hibernate."""
    rebalances_capacity: bool = False
    """Whether EC2 launches replacements after rebalance recommendations."""
    ends_replaced: bool = False
    """Whether it then ends those by itself, after a delay (launch-before-terminate)."""
    target_capacity: int = 0
    on_demand_target: int = 0
    spot_target: int = 0
    overrides: tuple[OverrideDescription, ...] = ()
    """In the fleet's order."""
    other_override_keys: tuple[str, ...] = ()
    """What its overrides state in addition, by EC2's names."""
    ends_excess: bool = False
    """Whether EC2 ends instances when the target falls below them."""
    replaces_unhealthy: bool = False
    """Whether EC2 replaces instances that it considers unhealthy."""
    valid_until: str = ""
    """When EC2 ends the request by itself; empty: never."""
    zones: Mapping[str, str] = field(default_factory=dict)
    """Zone of each of these subnets, where it is known."""
    counted_unit: str = ""
    """What its target counts instead of nodes or weights, such as vcpu; empty: nothing."""
    weighted: bool = False
    """Whether its target counts units, and an instance has another number of them than one."""
    several_templates: bool = False
    """Whether it launches from more templates, or versions of one, than `template`."""
    template: LaunchTemplateDescription | None = None
    template_version: str = "$Default"
    """The version as the fleet names it: $Latest, $Default or a number."""
    template_by_name: bool = False
    """Whether it names its template by name only."""
    group: GroupDescription | None = None
    """None for an EC2 Fleet."""

    @property
    def instance_types(self) -> tuple[str, ...]:
        """Return the instance types of its overrides, each once, in their order."""
        return tuple(dict.fromkeys(e.instance_type for e in self.overrides if e.instance_type))

    @property
    def subnet_ids(self) -> tuple[str, ...]:
        """Return the subnets of its overrides, each once, in their order."""
        return tuple(
            dict.fromkeys(override.subnet_id for override in self.overrides if override.subnet_id)
        )
