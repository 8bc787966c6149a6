"""A fleet of the in-memory world, and its faults."""

from dataclasses import dataclass, field

from reconciler.adapters.memory.settings import FleetShape
from reconciler.model.fleet import FleetEvent
from reconciler.model.ids import FleetId, Region

Pool = tuple[Region, str, str]
"""Region, instance type and zone: where EC2 has capacity or has none."""


@dataclass(slots=True, kw_only=True)
class FleetRecord:
    """A fleet, and its faults."""

    id: FleetId
    """Unique in the world."""
    shown_id: FleetId
    """What AWS calls it: Auto Scaling groups of two regions may have one name."""
    shape: FleetShape
    target: int
    state: str = "active"
    errors: list[FleetEvent] = field(default_factory=list)
    refusal_code: str | None = None
    """When set, no launch succeeds."""
    refused_pools: dict[tuple[str, str], str] = field(default_factory=dict)
    """Instance types and zones without capacity for this fleet, with EC2's error code."""
    not_joining: frozenset[tuple[str, str]] = frozenset()
    """Instance types and zones whose instances do not become nodes."""
    turns_ready: bool = True
    """Whether nodes of its instances turn Ready."""
    ends_after_seconds: float | None = None
    """How long after its launch each instance ends by itself; None if it does not."""
    slower_seconds: dict[tuple[str, str], float] = field(default_factory=dict)
    """Added to each launch of a type in a zone."""
    locked: bool = False
    """Still `modifying`, so that ModifyFleet is refused."""
    retry_planned: bool = False
    version: str = "1"

    @property
    def is_group(self) -> bool:
        """Return whether it is an Auto Scaling group, which ends instances beyond its target."""
        return self.shape.provider == "asg"


def id_in(region: Region, shown_id: FleetId) -> FleetId:
    """Return the id of a group whose name a group of another region has as well."""
    return FleetId(f"{shown_id} in {region}")
