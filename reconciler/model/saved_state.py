"""What must outlive a restart: each fleet's past, stuck demand, lost fleets, interruptions.

All of it is kept in the Lease annotation `fleet-state` (docs/failures.md).
"""

from dataclasses import dataclass
from datetime import datetime

from reconciler.model.cluster import NO_RESOURCES, Resources
from reconciler.model.ids import FleetId, Region


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFleetState:
    """One fleet: its failures, how long it rests, what its nodes offered."""

    fleet: str
    region: Region
    unavailable_until: datetime | None = None
    failures: int = 0
    """Capacity errors, or rows of stuck instances, since it last recovered: the cool-off doubles
    with each."""
    last_error_at: datetime | None = None
    """The latest capacity error that was counted, so that none counts twice."""
    reason: str = ""
    """The code of that error."""
    below_target_since: datetime | None = None
    """When EC2 was first seen to hold less than the target; None while it holds as much."""
    silent_since: datetime | None = None
    """When EC2 was first seen not to answer in the region; None while it answers."""
    stuck_in_a_row: int = 0
    last_stuck_launched_at: datetime | None = None
    """Launch of the last instance counted in `stuck_in_a_row`, so that none counts twice."""
    learned: Resources = NO_RESOURCES
    """The least that Ready nodes offered while the fleet was of `learned_version`."""
    learned_version: str = ""
    """What its nodes were made from then, as in `SavedDemandState.version`."""
    unseen_since: datetime | None = None
    """Since when no node offers as little any more; None while one does."""
    halted_version: str = ""
    """The launch template version at which its rolling update stands still."""
    halted_because: str = ""
    """Why, in words."""
    resumed_version: str = ""
    """A version whose halt a person has lifted: it is not halted again."""
    spot_return_at: datetime | None = None
    """When the latest batch of nodes that stood in for this spot fleet's began to go back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDemandState:
    """Nodes that were asked for, for pods of one kind, from one fleet."""

    demand: str
    """Digest of namespace and spec: the same for all pods that a template makes."""
    fleet: str
    region: Region
    bought_at: datetime
    """When nodes were first asked for; nodes older than that prove nothing."""
    version: str
    """Digest of what the fleet was then; a fleet that changed is tried again."""
    strikes: int = 0
    """How often such nodes joined and still none of the pods bound."""
    judged_at: datetime | None = None
    """When that was last seen; nodes older than that do not count once more."""
    gone_at: datetime | None = None
    """When no such pod waited any more; None while some do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRaise:
    """By how much targets were raised for pods and headroom in a few minutes."""

    at: datetime
    """The first of these raises."""
    nodes: int
    nano_usd_per_hour: int
    """What these nodes cost per hour, in billionths of a dollar."""
    nodes_before: int = 0
    """Nodes that there were, or were asked for, before."""
    nano_usd_before: int = 0
    """What those cost per hour."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class InterruptedPool:
    """An instance type in a zone from which EC2 took a spot instance of ours back."""

    instance_type: str
    zone: str
    at: datetime
    """When it took the last one, or will, as its notice says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFleet:
    """A fleet that instances with our tags say they belong to, and that EC2 does not list."""

    id: FleetId
    region: Region
    since: datetime
    """When it was first missed."""
