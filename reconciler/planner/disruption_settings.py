"""Settings of disruption: when nodes may leave and pods be moved, how many, and how.

They are parts of the planner's settings (`planner.settings`), which `config/` makes.
"""

from dataclasses import dataclass
from datetime import time
from decimal import Decimal
from typing import Final, Literal, get_args

from reconciler.model.frozen import Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class GracePeriod:
    """How long a node must have been empty, at some hours of some days; the first match counts.

    An overnight range (`starts` > `ends`) holds on each of its days from 00:00 to `ends` and from
    `starts` to 24:00. `starts` equal to `ends` is the whole day.
    """

    starts: time
    ends: time
    weekdays: frozenset[int]
    """The days of the moment in question, 1 to 7 from Monday."""
    seconds: float


DisruptionReason = Literal[
    "empty",
    "underutilized",
    "consolidation",
    "drifted",
    "expired",
    "rebalance",
    "spot-reschedule",
    "deschedule",
]
"""The reasons for voluntary disruptions, which a disruption budget may limit."""
DISRUPTION_REASONS: Final[frozenset[DisruptionReason]] = frozenset(get_args(DisruptionReason))
EVERY_DAY: Final = frozenset(range(1, 8))


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionBudget:
    """How many nodes of its scope may be disrupted at the same time.

    It holds always, within a window (`starts`, `ends`, and the `weekdays` on which it opens), or
    for `duration_seconds` after each moment of `schedule`.
    """

    nodes: int
    """A number of nodes, or a percentage of those that the scope has."""
    percent: bool = False
    reasons: frozenset[DisruptionReason] = DISRUPTION_REASONS
    starts: time = time(0)
    ends: time = time(0)
    """Equal to `starts`: the whole day."""
    weekdays: frozenset[int] = EVERY_DAY
    schedule: str | None = None
    """A cron expression in the config's time zone."""
    duration_seconds: float = 0.0

    def allowed(self, nodes: int) -> int:
        """Return how many of `nodes` may be disrupted; a percentage is rounded up."""
        return -(-nodes * self.nodes // 100) if self.percent else self.nodes

    def __str__(self) -> str:
        return f"nodes: {self.nodes}{'%' if self.percent else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceWindow:
    """When batches of a rolling update may begin, in the config's time zone."""

    starts: time = time(0)
    ends: time = time(0)
    """Equal to `starts`: the whole day. Earlier: on the next day."""
    weekdays: frozenset[int] = EVERY_DAY
    """The days on which it opens, 1 to 7 from Monday."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingUpdate:
    """How drifted nodes are replaced (docs/rolling-updates.md)."""

    min_in_service: int | None = None
    """Ready nodes that a fleet keeps meanwhile; None if each node waits for a new one."""
    batch_max: int = 1
    pause_seconds: float = 120.0
    """The time after the last new node is Ready, before the next batch begins."""
    canary_seconds: float = 600.0
    """How long the first new node of a version is watched before others follow."""
    windows: tuple[MaintenanceWindow, ...] = ()
    """When a batch may begin; empty for any time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLabel:
    """A label that selects nodes: a key, with one value or any."""

    key: str
    value: str | None = None
    """None for any value."""

    def matches(self, labels: Labels) -> bool:
        """Return whether the labels have it."""
        found = labels.get(self.key)
        return found is not None and self.value in {None, found}

    def __str__(self) -> str:
        return self.key if self.value is None else f"{self.key}={self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRescheduler:
    """How pods are moved off on-demand nodes (docs/spot-rescheduler.md)."""

    on_demand: NodeLabel
    spot: NodeLabel
    """A node with both labels is a spot node."""
    node_drain_delay_seconds: float = 600.0
    """The time from the last eviction of one drain until the next drain begins."""
    pod_eviction_timeout_seconds: float = 120.0
    graceful_termination_max_seconds: float = 120.0
    move_bare_pods: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotReturn:
    """When on-demand nodes that stand in for spot nodes are replaced by spot nodes."""

    stable_seconds: float = 1800.0
    """How long the spot fleet must have had no error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlastRadius:
    """How many pods of one controller may be moved within a time."""

    pods: int
    """A number of pods, or a percentage of those that the controller has."""
    percent: bool = False
    per_seconds: float = 600.0

    def allowed(self, pods: int) -> int:
        """Return how many of `pods` may be moved; a percentage is rounded up."""
        return -(-pods * self.pods // 100) if self.percent else self.pods


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleInSettings:
    """When a node is no longer needed (docs/scale-in.md)."""

    idle_threshold_seconds: float = 600
    idle_threshold_explicit: bool = False
    """Whether the config sets it: then the longer of it and a grace period applies."""
    type_idle_threshold_seconds: float = 0
    type_spares: int = 0
    utilization_threshold: float = 0.5
    unneeded_seconds: float = 600
    settle_seconds: float = 300
    """No pod is moved off a node to which one was bound less than this long ago."""
    consolidate_after_seconds: float = 300
    """As `settle_seconds`, for moves that only save money; never less than that."""
    move_cost_usd: Decimal = Decimal("0.0005")
    """The cost of moving one pod; a move must save more than that within an hour."""
    empty_at_once_max: int = 10
    non_empty_at_once_max: int = 1
    pod_eviction_timeout_seconds: float = 120
    graceful_termination_max_seconds: float = 120
    move_bare_pods: bool = False
    move_local_storage: bool = False
    move_system_pods: bool = False
