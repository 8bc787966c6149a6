"""A small in-memory world behind the ports Cluster, Cloud and Clock, for tests in virtual time."""

from reconciler.adapters.memory.clock import ManualClock
from reconciler.adapters.memory.cloud import MemoryCloud
from reconciler.adapters.memory.cluster import MemoryCluster
from reconciler.adapters.memory.faults import Call, Crash
from reconciler.adapters.memory.leases import MemoryLease, MemoryLeases
from reconciler.adapters.memory.notices import MemoryMessages, MemoryNotices
from reconciler.adapters.memory.settings import BudgetShape, Delays, FleetShape, Scoring
from reconciler.adapters.memory.volumes import ClaimShape
from reconciler.adapters.memory.world import MemoryWorld

__all__ = [
    "BudgetShape",
    "Call",
    "ClaimShape",
    "Crash",
    "Delays",
    "FleetShape",
    "ManualClock",
    "MemoryCloud",
    "MemoryCluster",
    "MemoryLease",
    "MemoryLeases",
    "MemoryMessages",
    "MemoryNotices",
    "MemoryWorld",
    "Scoring",
]
