"""What must outlive a restart beside each fleet's own memory: stuck demand and lost fleets.

All of it is kept in the Lease annotation `fleet-state` (interfaces, section 4).
"""

from dataclasses import dataclass
from datetime import datetime

from reconciler.model.ids import FleetId, Region


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandMemory:
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
class LostFleet:
    """A fleet that instances with our tags say they belong to, and that EC2 does not list."""

    id: FleetId
    region: Region
    since: datetime
    """When it was first missed."""
