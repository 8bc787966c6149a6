"""The parts of a sector config that are about the reconciler itself, not about one fleet."""

from datetime import time
from decimal import Decimal

from pydantic import Field, SecretStr

from reconciler.config.base import Section
from reconciler.config.types import (
    Boolean,
    Count,
    CronSchedule,
    DisruptionReason,
    LeaseNamespace,
    Name,
    NodeLabelText,
    NodesOrPercent,
    Percent,
    PodsOrPercent,
    PositiveBytes,
    PositiveCount,
    PositiveCpuMilli,
    PositiveSeconds,
    Price,
    QueueUrl,
    Rebalance,
    RecordingPath,
    Seconds,
    SecretUrl,
    Share,
    StuckEndCount,
    TimeOfDay,
    Url,
    Weekday,
)

MIDNIGHT = time(0)


class GracePeriod(Section):
    """How long a node must have been empty, at some hours of some days; the first match wins."""

    starts: TimeOfDay = MIDNIGHT
    """Time of day from which it holds, in `timezone`."""
    ends: TimeOfDay = MIDNIGHT
    """Time of day until which it holds (`24:00` by default); earlier than `starts`: overnight."""
    days: tuple[Weekday, ...] = ()
    """Days as names or 1 to 7 from Monday, of the time in question, so that an overnight range
    is both ends of each day; none: every day."""
    seconds: Seconds = Field(default=600.0, alias="value")
    """Seconds (or a duration) that the node must have been empty."""


class MaintenanceWindow(Section):
    """When batches of rolling updates may begin; without any window they may at any time."""

    starts: TimeOfDay = MIDNIGHT
    """Time of day from which the window is open, in `timezone`."""
    ends: TimeOfDay = MIDNIGHT
    """Time of day at which it closes (`24:00` by default); earlier than `starts`: on the
    next day."""
    days: tuple[Weekday, ...] = ()
    """Days on which it opens, as names or 1 to 7 from Monday; none: every day."""


class ScaleIn(Section):
    """When nodes are no longer needed; a sector or fleet overrides single keys."""

    idle_threshold_seconds: Seconds = Field(default=600.0, alias="idle_threshold")
    """Remove an empty node after this long; if it is stated, the longer of it and the grace
    period."""
    type_idle_threshold_seconds: Seconds = Field(default=0.0, alias="type_idle_threshold")
    """Keep the spare nodes of `type_spares` this long."""
    type_spares: Count = 0
    """Idle nodes to keep per fleet and instance type until `type_idle_threshold`."""
    utilization_threshold: Share = 0.5
    """Requested / allocatable below which a non-empty node is a candidate, 0 to 1."""
    unneeded_time_seconds: Seconds = Field(default=600.0, alias="unneeded_time")
    """How long a non-empty node must have been a candidate."""
    settle_time_seconds: Seconds = Field(default=300.0, alias="settle_time")
    """No pod is moved off a node to which a pod was bound less than this long ago."""
    consolidate_after_seconds: Seconds | None = Field(default=None, alias="consolidate_after")
    """The same for moves that only save money, if it is longer (default: `settle_time`)."""
    move_cost_usd: Price = Decimal("0.0005")
    """Cost of moving one pod; a move must save more than that within an hour."""
    max_empty_at_once: Count = 10
    """Empty nodes that may be removed together, including those already draining."""
    max_non_empty_at_once: Count = 1
    """Non-empty nodes that may be drained at the same time."""
    pod_eviction_timeout_seconds: Seconds = Field(default=120.0, alias="pod_eviction_timeout")
    """How long an eviction that a budget refuses is tried again."""
    max_graceful_termination_seconds: Seconds = Field(
        default=120.0, alias="max_graceful_termination"
    )
    """The longest grace period that a pod may ask for in a drain."""
    move_bare_pods: Boolean = False
    """Whether pods without a controller may be moved."""
    move_local_storage: Boolean = False
    """Whether pods with local storage may be moved."""
    move_system_pods: Boolean = False
    """Whether kube-system pods without a budget may be moved."""

    def overridden_by(self, other: "ScaleIn | None") -> "ScaleIn":
        """Return these values, with those that `other` states taken from `other`."""
        return self if other is None else self.model_copy(update=other.given())

    @property
    def states_idle_threshold(self) -> bool:
        """Return whether the config states `idle_threshold`, here or where it is inherited from."""
        return "idle_threshold_seconds" in self.model_fields_set


class RaiseLimits(Section):
    """How far targets may rise for pods and headroom.

    What was raised before counts after a restart too. Without a value ten times what ran before is
    allowed in one plan, at least 1,000 nodes and 1,000 USD per hour (5,000 of each where nothing
    runs yet), and twice that within an hour.
    """

    nodes_per_cycle: Count | None = None
    """Nodes that one plan may ask for."""
    nodes_per_hour: Count | None = None
    """Nodes that all plans of an hour may ask for."""
    hourly_usd_per_cycle: Price | None = None
    """USD per hour by which one plan may raise what the targets cost."""
    hourly_usd_per_hour: Price | None = None
    """USD per hour by which all plans of an hour may raise what the targets cost."""


class SpotRescheduler(Section):
    """Moves pods off on-demand nodes when spot nodes have room (docs/spot-rescheduler.md)."""

    enabled: Boolean = False
    """Whether it runs."""
    housekeeping_interval_seconds: PositiveSeconds = Field(
        default=10.0, alias="housekeeping_interval"
    )
    """Longest pause between two checks of the on-demand nodes; each change starts one earlier."""
    node_drain_delay_seconds: Seconds = Field(default=600.0, alias="node_drain_delay")
    """Pause after the last eviction of one node, before the next is emptied."""
    pod_eviction_timeout_seconds: Seconds = Field(default=120.0, alias="pod_eviction_timeout")
    """How long an eviction that a budget refuses is tried again."""
    max_graceful_termination_seconds: Seconds = Field(
        default=120.0, alias="max_graceful_termination"
    )
    """The longest grace period that a pod may ask for."""
    on_demand_node_label: NodeLabelText = "lifecycle=OnDemand"
    """Label of on-demand nodes, `key` or `key=value`."""
    spot_node_label: NodeLabelText = "lifecycle=Ec2Spot"
    """Label of spot nodes, `key` or `key=value`; a node with both labels is a spot node."""
    delete_non_replicated_pods: Boolean = False
    """Whether pods without a controller may be moved too."""


class RollingUpdate(Section):
    """Replaces drifted nodes: those that their fleet would launch differently today."""

    enabled: Boolean = False
    """Whether it runs."""
    min_in_service: Count | None = None
    """Ready nodes that a fleet keeps meanwhile; default: each node waits for a new one."""
    max_batch: PositiveCount = 1
    """Nodes of a fleet that are replaced at the same time."""
    pause_seconds: Seconds = Field(default=120.0, alias="pause")
    """Pause after the last new node is Ready, before the next batch."""
    canary_time_seconds: Seconds = Field(default=600.0, alias="canary_time")
    """How long the first new node of a version is watched before the others follow."""


class SpotReturn(Section):
    """Replaces on-demand nodes that stand in for spot nodes once spot is back."""

    enabled: Boolean = False
    """Whether it runs."""
    stable_for_seconds: Seconds = Field(default=1800.0, alias="stable_for")
    """How long the spot fleet must have had no error."""


class DisruptionBudget(Section):
    """How many nodes may be disrupted at the same time.

    Of several that match the strictest applies. It applies always; or within a window of `starts`,
    `ends` and `days`; or for `duration` after each moment of `schedule`.
    """

    nodes: NodesOrPercent
    """A number of nodes, or a percentage of those that its scope has, rounded up."""
    starts: TimeOfDay = MIDNIGHT
    """Time of day from which it holds, in `timezone`."""
    ends: TimeOfDay = MIDNIGHT
    """Time of day until which it holds (`24:00` by default); earlier than `starts`: on the
    next day."""
    days: tuple[Weekday, ...] = ()
    """Days on which it begins to hold, as names or 1 to 7 from Monday; none: every day."""
    reasons: tuple[DisruptionReason, ...] = ()
    """The reasons for disruption that it limits; none: all."""
    schedule: CronSchedule | None = None
    """When it begins to hold, as a cron expression in `timezone` (or `@daily` and the like, as
    CronJobs know them); with `duration`."""
    duration_seconds: PositiveSeconds | None = Field(default=None, alias="duration")
    """How long it holds from each moment of `schedule`."""


class BlastRadiusLimit(Section):
    """How many pods of one Deployment or StatefulSet may be moved within a time."""

    pods_per_controller: PodsOrPercent
    """A number of pods, or a percentage of those that the controller has, rounded up."""
    per_seconds: PositiveSeconds = Field(default=600.0, alias="per")
    """The time; a pod that was placed within it counts as moved, whoever moved it."""


class Headroom(Section):
    """Room that is kept free in a sector: of a size, a number of nodes, or a percentage.

    Exactly one of the three is stated. Sizes are kept in one piece where a node of the sector is
    large enough, else in the fewest equal pieces.
    """

    sector: Name | None = None
    """The sector; left out in a config without sectors, where the room is in the groups that are
    found."""
    cpu_milli: PositiveCpuMilli | None = Field(default=None, alias="cpu")
    """CPU to keep free, as a Kubernetes quantity."""
    memory_bytes: PositiveBytes | None = Field(default=None, alias="memory")
    """Memory to keep free, as a Kubernetes quantity."""
    nodes: PositiveCount | None = None
    """Room of this many nodes of the fleet whose nodes cost least."""
    percent: Percent | None = None
    """Share of what the sector's pods ask for that is kept free in addition, 0 to 100."""


class Interruption(Section):
    """Where notices of interruptions come from (docs/interruptions.md)."""

    queue_url: QueueUrl = ""
    """URL of the SQS queue that EventBridge fills; empty: only annotations of nodes are read."""
    rebalance: Rebalance = "drain"
    """What a rebalance recommendation does: `drain` the node, or `ignore`."""


class StuckEnds(Section):
    """How many instances that never became usable nodes may be ended; more are held and reported.

    While no node proves that this cluster is the fleets' own, or while most instances seem stuck,
    it is one per cycle and three per hour at most.
    """

    per_cycle: StuckEndCount = 5
    """Most that one plan ends; 0 ends none."""
    per_hour: StuckEndCount = 20
    """Most within an hour, over all fleets; it is kept across restarts."""


class LeaderElection(Section):
    """Which of several replicas acts; the times are client-go's."""

    enabled: Boolean = True
    """Whether a replica acts only while it holds the Lease."""
    lease_duration_seconds: PositiveSeconds = Field(default=15.0, alias="lease_duration")
    """How long others must see the Lease unchanged before they take it."""
    renew_deadline_seconds: PositiveSeconds = Field(default=10.0, alias="renew_deadline")
    """How long after its last renewal a leader acts; less than `lease_duration`."""
    retry_period_seconds: PositiveSeconds = Field(default=2.0, alias="retry_period")
    """Pause between renewals, and between looks at the Lease; far less than `renew_deadline`."""
    namespace: LeaseNamespace | None = None
    """The one namespace whose Lease counts; default: the pod's own, outside of the cluster
    `fleet-reconciler`, which is created when it does not exist."""


class Recording(Section):
    """Demand that the capacity loop records, for `reconciler simulate`."""

    path: RecordingPath = ""
    """A directory, as an absolute path, or `s3://bucket/prefix`; empty: nothing is recorded. Read
    at start."""
    keep_seconds: PositiveSeconds = Field(default=1_209_600.0, alias="keep")
    """How long files are kept; in a directory at most the newest 4 GiB."""


class Tracing(Section):
    """Traces of the capacity loop's cycles."""

    endpoint: Url = ""
    """Base URL of an OpenTelemetry collector that takes OTLP over HTTP, such as
    `http://otel-collector.observability:4318`; empty: no traces. Read at start."""


class Notifications(Section):
    """Who is notified."""

    slack_hook: SecretUrl = SecretStr("")
    """Slack's incoming webhook, never printed; RECONCILER_SLACK_HOOK from a Secret is safer."""
