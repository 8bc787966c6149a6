"""The sector config, typed: every key with its default, its unit and its meaning.

`reconciler.config.loader` makes one from YAML; `reconciler.config.resolve` says what holds for
each fleet once sector and top level are taken into account.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from reconciler.config.base import Section
from reconciler.config.descheduler import Descheduler
from reconciler.config.fleets import FleetEntry, OwnSize, SectorEntry
from reconciler.config.sections import (
    BlastRadiusLimit,
    DisruptionBudget,
    GracePeriod,
    Headroom,
    Interruption,
    LeaderElection,
    MaintenanceWindow,
    Notifications,
    RaiseLimits,
    Recording,
    RollingUpdate,
    ScaleIn,
    SpotRescheduler,
    SpotReturn,
    StuckEnds,
    Tracing,
)
from reconciler.config.terraform import Terraform
from reconciler.config.types import (
    Boolean,
    Bytes,
    CpuMilli,
    Expander,
    FilePath,
    HostName,
    HostPort,
    LabelKey,
    Name,
    NamePattern,
    NamespaceName,
    OverSubscription,
    PositiveCount,
    PositiveSeconds,
    Price,
    PriorityNumber,
    Region,
    Seconds,
    Text,
    Timezone,
    Verbosity,
)

__all__ = ["FleetEntry", "OwnSize", "SectorConfig", "SectorEntry"]


class SectorConfig(Section):
    """A sector config: which sectors and fleets the cluster has, and how they are run."""

    cluster: Text | None = None
    """EKS cluster name (also read as `cluster_name`); commands that need it say so."""
    regions: tuple[Region, ...] = ()
    """AWS regions in order of preference, the first is home; none: that of the AWS settings, or
    offline the one that the files show."""
    sleep_interval_seconds: PositiveSeconds = Field(default=20.0, alias="sleep_interval")
    """Longest pause between cycles; events wake the loop sooner."""
    default_over_subscription: OverSubscription = 0.2
    """Share added to the requests that size new capacity; Cluster Autoscaler and Karpenter add
    nothing (0)."""
    reserved_cpu_milli: CpuMilli = Field(default=1000, alias="reserved_cpus")
    """CPU that a new node lacks for system and DaemonSets, as a Kubernetes quantity (1). Unless it
    is stated, new nodes of Auto Scaling groups lack what EKS's images reserve, and DaemonSets."""
    reserved_memory_bytes: Bytes = Field(default=2_684_354_560, alias="reserved_memory")
    """Memory that a new node lacks for system and DaemonSets, as a Kubernetes quantity (2.5Gi); of
    Auto Scaling groups, as for `reserved_cpus`, only if it is stated."""
    default_sector: Name | None = None
    """Sector of pods that select none; without it such pods are ignored."""
    expander: Expander = "cost"
    """How fleets are chosen: cost, least-waste, most-pods, random or priority."""
    expander_priorities: dict[PriorityNumber, tuple[NamePattern, ...]] = Field(default_factory=dict)
    """For the expander `priority`: numbers, each with regular expressions (RE2) of names of fleets
    and Auto Scaling groups. The highest that matches counts, where the fleet has no `priority`."""
    balance_similar_groups: Boolean = False
    """Whether new nodes are spread over fleets and groups that are alike, those of several zones
    above all, so that they become equally large."""
    balancing_ignore_labels: tuple[LabelKey, ...] = ()
    """Labels in which similar fleets may differ, in addition to those of zones and groups."""
    balancing_labels: tuple[LabelKey, ...] = ()
    """Labels that alone decide whether fleets are similar; none: all labels and the resources."""
    instance_init_time_seconds: PositiveSeconds = Field(default=900.0, alias="instance_init_time")
    """Time from launch to Ready, after which an instance counts as stuck."""
    startup_taints: tuple[LabelKey, ...] = ()
    """Keys of taints that something removes from a new node before pods come to it, in addition
    to the usual ones: a new node with one still counts as launching, and pods need not
    tolerate it."""
    unready_time_seconds: Seconds = Field(default=600.0, alias="unready_time")
    """How long a node may be NotReady before it is replaced."""
    stuck_ends: StuckEnds = StuckEnds.model_construct()
    """How many instances that never became usable nodes may be ended."""
    inactive_grace_periods: tuple[GracePeriod, ...] = ()
    """How long nodes stay empty, by time of day and weekday in `timezone`; the first match
    counts."""
    timezone: Timezone = "UTC"
    """IANA time zone of grace periods and maintenance windows."""
    maintenance_windows: tuple[MaintenanceWindow, ...] = ()
    """When batches of rolling updates may begin; none: at any time."""
    sizes: dict[str, OwnSize] = Field(default_factory=dict)
    """Own sizes in addition to the built-in tables."""
    scale_in: ScaleIn = ScaleIn.model_construct()
    """When nodes are no longer needed."""
    consolidation: Boolean = False
    """Whether nodes are also replaced by fewer or smaller ones when that saves at least 5 %."""
    spot_rescheduler: SpotRescheduler = SpotRescheduler.model_construct()
    """Moves pods off on-demand nodes when spot nodes have room."""
    descheduler: Descheduler = Descheduler.model_construct()
    """Evicts pods that would be placed better elsewhere."""
    rolling_update: RollingUpdate = RollingUpdate.model_construct()
    """Replaces nodes that their fleet would launch differently now."""
    interruption: Interruption = Interruption.model_construct()
    """Where notices of interruptions come from."""
    spot_return: SpotReturn = SpotReturn.model_construct()
    """Replaces on-demand nodes that stand in for spot nodes once spot is back."""
    disruption_budgets: tuple[DisruptionBudget, ...] = ()
    """How many nodes may be disrupted at a time.

    Default: 10 % for every reason except `empty`, in addition to what sectors and fleets state.
    """
    blast_radius: BlastRadiusLimit | None = None
    """How many pods of one controller may be moved within a time; default: no limit."""
    headroom: tuple[Headroom, ...] = ()
    """Room that is kept free for future pods."""
    notifications: Notifications = Notifications.model_construct()
    """Who is notified."""
    recording: Recording = Recording.model_construct()
    """Records demand, to simulate other configs with it."""
    tracing: Tracing = Tracing.model_construct()
    """Where traces of cycles are sent."""
    leader_election: LeaderElection = LeaderElection.model_construct()
    """Which of several replicas acts."""
    max_hourly_usd: Price | None = None
    """Most that all targets together, and nodes beyond them, may cost per hour; default: no
    limit."""
    raise_limits: RaiseLimits = RaiseLimits.model_construct()
    """How far targets may rise for pods and headroom in one plan and within an hour."""
    allow_destroy: tuple[Name, ...] = ()
    """Fleets that may be emptied and destroyed once the config no longer names them."""
    terraform: Terraform = Terraform.model_construct()
    """Module variables for all fleets, and the backend of the rendered root."""
    sectors: dict[str, SectorEntry] = Field(default_factory=dict)
    """The sectors by name; none: one sector without a name, for every pod and found group."""
    critical_error_threshold: PositiveCount = 100
    """Failed cycles in a row after which the process ends (and is restarted)."""
    max_logging_interval_seconds: Seconds = Field(default=120.0, alias="max_logging_interval")
    """A cycle without changes is logged at least this often."""
    config_refresh_interval_seconds: PositiveSeconds = Field(
        default=60.0, alias="config_refresh_interval"
    )
    """Longest time until a changed config file is noticed."""
    kubeconfig: Text | None = None
    """Kubeconfig file; default: in-cluster, else kubectl's."""
    kube_context: Text | None = None
    """Context of the kubeconfig; default: its current one."""
    catalogue: FilePath | None = None
    """Instance types and prices, a file of `reconciler catalogue refresh`, by its path from the
    config's folder; default: the package's."""
    pod_namespace: NamespaceName | None = None
    """Only pods of this namespace are demand; default: all."""
    dry_run: Boolean = False
    """Whether plans are only printed."""
    verbosity: Verbosity = 0
    """0 to 3, as -v, -vv, -vvv."""
    listen: HostPort = "127.0.0.1:9235"
    """Address and port of health checks, metrics and status page."""
    listen_hosts: tuple[HostName, ...] = ()
    """More host names under which it answers, in addition to addresses, localhost and the
    Service's names."""
    listen_token_file: Text | None = None
    """File with the bearer token that its clients must send; default: no token is required."""

    @model_validator(mode="before")
    @classmethod
    def _accept_cluster_name(cls, data: Any) -> Any:
        """Accept `cluster_name`, Kluster Fleet Manager's key for the cluster."""
        if not isinstance(data, Mapping) or "cluster_name" not in data:
            return data
        rest = {key: value for key, value in data.items() if key != "cluster_name"}
        return {"cluster": data["cluster_name"], **rest}
