"""What Terraform owns of a living fleet: enough to describe it again as variables of a module.

The planner needs none of this; adopting fleets that exist does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.ids import FleetId


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeDescription:
    """One block device of a launch template."""

    device_name: str
    size_gib: int | None = None
    type: str = ""
    iops: int | None = None
    throughput_mib_per_second: int | None = None
    encrypted: bool | None = None
    kms_key_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTemplateDescription:
    """The version of a launch template that new nodes are made from."""

    id: str
    name: str
    image_id: str = ""
    instance_type: str = ""
    """Used where the fleet names no types of its own."""
    key_name: str = ""
    security_group_ids: tuple[str, ...] = ()
    instance_profile_name: str = ""
    metadata_hop_limit: int | None = None
    volumes: tuple[VolumeDescription, ...] = ()
    user_data: str = ""
    """Decoded; may hold secrets, so it is read for what is known and never repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDescription:
    """One maintain fleet."""

    id: FleetId
    tags: Labels = NO_LABELS
    spot: bool = True
    allocation_strategy: str = ""
    target_capacity: int = 0
    instance_types: tuple[str, ...] = ()
    """In the fleet's own order."""
    subnet_ids: tuple[str, ...] = ()
    zones: Mapping[str, str] = field(default_factory=dict)
    """Zone of each of these subnets, where it is known."""
    max_price: str = ""
    """USD per hour; empty: the on-demand price."""
    weighted: bool = False
    """Whether its target counts units of which an instance has another number than one."""
    several_templates: bool = False
    """Whether it launches from more templates than `template`."""
    template: LaunchTemplateDescription | None = None
