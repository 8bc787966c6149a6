"""What EC2 holds: fleets, instances, instance types and their prices."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Final, Literal

from reconciler.model.cluster import NO_RESOURCES, Resources
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.ids import FleetId, InstanceId, Region

Provider = Literal["ec2-fleet", "asg"]
Lifecycle = Literal["spot", "on-demand"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a provider of nodes allows us to do."""

    lowers_target: bool
    """Whether a target can be lowered without the provider ending instances of its own choice."""


CAPABILITIES: Final[Mapping[Provider, Capabilities]] = MappingProxyType(
    {
        "ec2-fleet": Capabilities(lowers_target=True),
        # With SetDesiredCapacity below its number of instances a group ends some of them.
        "asg": Capabilities(lowers_target=False),
    }
)

CLUSTER_TAG = "cluster"
FLEET_TAG = "fleet"
"""The tag of fleets, groups and instances that names the fleet of the config."""
TEMPLATE_ID_TAG = "aws:ec2launchtemplate:id"
"""Source: Amazon EC2 user guide, tags that EC2 adds to instances of a launch template."""
GROUP_SIZE_MAX_DEFAULT: Final = 1000
"""MaxSize of a group that Terraform makes from a config without `max_capacity`."""
NODE_TEMPLATE: Final = "k8s.io/cluster-autoscaler/node-template"
"""Prefix of Cluster Autoscaler's tags that describe a node of an empty group: `/label/<key>`,
`/taint/<key>` or `/resources/<name>` follow."""

_GONE: Final = frozenset({"shutting-down", "terminated", "stopping", "stopped"})
ENDS_BY_ITSELF: Final = (
    "Client.InstanceInitiatedShutdown",
    "Client.InternalError",
    "Client.InvalidSnapshot",
    "Client.VolumeLimitExceeded",
    "Server.InsufficientInstanceCapacity",
    "Server.InternalError",
)
"""EC2's codes for instances that end without a request: no right to the key of a volume,
user data that shuts the machine down, a host that fails.

Source: EC2 API reference, StateReason (read 2026-11). The others are requests of users
(`Client.UserInitiatedShutdown`), of services for them, and interruptions
(`Server.SpotInstanceTermination`).
"""

UsdPerHour = Decimal
"""A price in USD per hour; an unknown one is None, never 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """An EC2 instance type of the catalogue."""

    name: str
    arch: Literal["amd64", "arm64"]
    cpu_milli: int
    memory_bytes: int
    pods_max: int
    """The VPC CNI's figure without prefix delegation: ENIs x (addresses - 1) + 2."""
    gpus: int = 0
    on_demand_usd_per_hour: UsdPerHour | None = None
    spot_usd_per_hour: UsdPerHour | None = None


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class FleetEvent:
    """A failed launch from a fleet's history or a group's activities."""

    at: datetime
    code: str
    """`InsufficientInstanceCapacity`, `MaxSpotInstanceCountExceeded` …; empty where AWS has only
    words for it."""
    message: str = ""
    """AWS's words in one line, scrubbed and bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A live EC2 Fleet or Auto Scaling group of the config's cluster."""

    id: FleetId
    name: str
    """The `fleet` tag."""
    provider: Provider
    region: Region
    state: str
    """EC2's state of the fleet: submitted, active, modifying, deleted-running …"""
    target_capacity: int
    """Nodes, or units where `counts_units`."""
    fulfilled_capacity: float = 0.0
    """In the same measure."""
    counts_units: bool = False
    """Whether its target counts units of weight, vCPUs or memory, and says nothing of nodes."""
    activity_status: str | None = None
    """error | pending_fulfillment | pending_termination | fulfilled."""
    created_at: datetime | None = None
    tags: Labels = NO_LABELS
    launch_template_id: str = ""
    launch_template_version: str = ""
    further_templates: tuple[tuple[str, str], ...] = ()
    """Further launch templates, each with its version, if it launches from several."""
    instance_types: tuple[str, ...] = ()
    subnet_ids: tuple[str, ...] = ()
    """The subnets in which it launches; empty if that is open or unknown."""
    zones: tuple[str, ...] = ()
    """The zones in which it launches: only for Auto Scaling groups; empty if unknown."""
    lifecycle: Lifecycle | None = None
    """Auto Scaling: what the next instance of a group will be; None if unknown."""
    launch_errors: tuple[FleetEvent, ...] = ()
    """Its failed launches, oldest first, whether for lack of capacity or for another reason."""
    changed_at: datetime | None = None
    """When its history last shows a request to create or modify it; None when unknown."""
    min_size: int | None = None
    """Only for Auto Scaling groups."""
    max_size: int | None = None
    launches_halted: str = ""
    """Why it is asked for no nodes, such as a suspended process; empty if it may be asked."""
    removals_halted: str = ""
    """Why none of its instances may be terminated now; empty if they may."""
    rebalances_zones: bool = False
    """Auto Scaling: whether its group may end nodes with pods to even out its zones."""
    rebalances_capacity: bool = False
    """Whether EC2 or its group replaces instances by itself after a rebalance recommendation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A live EC2 instance of one of our fleets."""

    id: InstanceId
    region: Region
    fleet_id: FleetId | None
    state: str
    """pending, running, shutting-down, terminated, stopping, stopped."""
    instance_type: str
    zone: str
    launched_at: datetime | None
    """When EC2 launched or last started it, or when its group took it from its warm pool, if
    that is known and was later. None if unknown."""
    lifecycle: Lifecycle = "on-demand"
    private_dns_name: str = ""
    launch_template_version: str = ""
    image_id: str = ""
    """Empty if unknown."""
    subnet_id: str = ""
    """Empty if unknown."""
    tags: Labels = NO_LABELS
    protected: bool = False
    """Auto Scaling: protected from scale-in, or set aside."""
    set_aside: bool = False
    """Auto Scaling: whether somebody has put it into standby or is detaching it.

    Its node may still run pods; the group's desired capacity does not count it.
    """
    leaving: bool = False
    """Auto Scaling: whether its group is ending it; a lifecycle hook may delay that for hours."""
    ended_because: str = ""
    """Why it ended or ends, in EC2's words, such as `Client.InternalError: Client error on launch`;
    empty while it runs, or if unknown."""

    @property
    def gone(self) -> bool:
        """Return whether it has ended or is about to: then it counts for nothing."""
        return self.state in _GONE

    @property
    def ends(self) -> bool:
        """Return whether it has ended, or EC2 or its group is ending it."""
        return self.gone or self.leaving

    @property
    def ended_by_itself(self) -> bool:
        """Return whether it ended, and neither anybody nor EC2 took it away."""
        ended = self.state in {"shutting-down", "terminated"} and not self.leaving
        return ended and self.ended_because.startswith(ENDS_BY_ITSELF)

    @property
    def counts(self) -> bool:
        """Return whether it counts as a unit of its fleet's target."""
        return not (self.leaving or self.set_aside or self.state in _GONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceOption:
    """One instance type that a fleet may launch, at one price."""

    instance_type: str
    resources: Resources
    """Resources of the bare machine: cpu, memory, pods, devices."""
    usd_per_hour: UsdPerHour | None
    arch: Literal["amd64", "arm64"] = "amd64"
    allocatable: Resources = NO_RESOURCES
    """CPU and memory that tags of its group state: only DaemonSets take of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSource:
    """Where on-demand prices come from; spot prices come from EC2 itself if it was asked."""

    region: str
    as_of: str
    """The date that the catalogue states, such as `2026-07-31`; empty when it states none."""

    def __str__(self) -> str:
        """Return it for people: `us-east-1, 2026-07-31`."""
        return ", ".join(filter(None, (self.region, self.as_of)))
