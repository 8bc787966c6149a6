"""State that must survive a restart: of fleets, demand, lost fleets, interruptions, ends.

All of it is kept in the Lease annotation `fleet-state` (docs/failures.md).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from reconciler.model.cluster import NO_RESOURCES, Resources, Taint
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.ids import FleetId, InstanceId, Region

NODE_FACTS_MAX = 32
"""How many labels, and how many taints, of nodes are remembered of one group at most."""

FailureKind = Literal["capacity", "quota", "launch-fails", "denied"]
"""Why EC2 gave a fleet nothing: it lacks capacity; a quota of the account is reached; launches fail
for another reason, such as the launch template; or it refuses to raise the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFleetState:
    """The state of one fleet: its failures, its cool-off, what its nodes offered."""

    fleet: str
    region: Region
    unavailable_until: datetime | None = None
    failures: int = 0
    """Failed launches, or series of stuck instances, since it last recovered: the cool-off doubles
    with each."""
    last_error_at: datetime | None = None
    """The latest failed launch that was counted, so that none is counted twice."""
    reason: str = ""
    """AWS's code or words for that failure, or for a raise that it refused."""
    failure: FailureKind = "capacity"
    """What the last cool-off was for."""
    below_target_since: datetime | None = None
    """When EC2 was first seen to have fewer instances than the target; None while it has enough."""
    silent_since: datetime | None = None
    """When EC2 was first seen not to answer in the Region; None while it answers."""
    stuck_in_a_row: int = 0
    """How many instances in a row never became usable nodes."""
    stuck_because: str = ""
    """What is the matter with the last of them, in words."""
    last_stuck_launched_at: datetime | None = None
    """Launch of the last instance counted in `stuck_in_a_row`, so that none is counted twice."""
    learned: Resources = NO_RESOURCES
    """The least that Ready nodes offered while the fleet had `learned_version`."""
    learned_version: str = ""
    """What its nodes were made from at that time, as in `SavedDemandState.version`."""
    unseen_since: datetime | None = None
    """Since when no node offers this little any more; None while one does."""
    node_labels: Labels = NO_LABELS
    """What its nodes have or had in common in addition to what config and tags say: only for
    groups, and at most `NODE_FACTS_MAX`."""
    node_taints: tuple[Taint, ...] = ()
    node_template: str = ""
    """The launch template at that time as a digest; empty if it was unknown."""
    nodes_gone_since: datetime | None = None
    """Since when no node shows that any more; None while one does."""
    halted_version: str = ""
    """The launch template version at which its rolling update is halted."""
    halted_because: str = ""
    """The reason, in words."""
    resumed_version: str = ""
    """A version whose halt a person has lifted: it is not halted again."""
    canary_version: str = ""
    """The launch template version whose first new node its rolling update watches, or has
    watched."""
    canary_since: datetime | None = None
    """Since when it is watched, later by the time in which nothing could be judged; None until
    pods came to it, and again if no such node takes pods before the version is proven."""
    canary_seen_at: datetime | None = None
    """When it was last judged, to the minute; None while it is not watched, and on a Lease of an
    older version of this program that did not save it."""
    canary_proven: bool = False
    """Whether it was watched for `canary_time` without a failure."""
    spot_return_at: datetime | None = None
    """When the latest batch of this spot fleet's stand-ins began to be replaced by spot nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDemandState:
    """Nodes that were asked of one fleet for pods of one kind."""

    demand: str
    """Digest of namespace and spec: the same for all pods that a template makes."""
    fleet: str
    region: Region
    bought_at: datetime
    """When nodes were first asked for; older nodes prove nothing."""
    version: str
    """Digests of the fleet's config and launch template at that time, the second one empty if
    EC2 did not return it; after a change the fleet is tried again."""
    strikes: int = 0
    """How often such nodes joined without any of the pods being bound."""
    judged_at: datetime | None = None
    """When that was last seen; older nodes are not counted again."""
    gone_at: datetime | None = None
    """Since when no such pod has been pending; None while some are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRaise:
    """By how much targets were raised for pods and headroom within a few minutes."""

    at: datetime
    """The first of these raises."""
    nodes: int
    nano_usd_per_hour: int
    """The price of these nodes per hour, in billionths of a dollar."""
    nodes_before: int = 0
    """Nodes that existed, or were asked for, before."""
    nano_usd_before: int = 0
    """Their price per hour."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class InterruptedPool:
    """An instance type in a zone in which EC2 took one of our spot instances back."""

    instance_type: str
    zone: str
    at: datetime
    """When EC2 took the last one, or will take it according to its notice."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ProtectedInstance:
    """An instance that EC2 refused to end, as it is protected from termination."""

    instance: InstanceId
    at: datetime
    """When EC2 last refused it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFleet:
    """A fleet that instances with our tags name, and that EC2 does not list."""

    id: FleetId
    region: Region
    since: datetime
    """When it was first missing."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class StuckEnd:
    """An instance that never became a node and was terminated by a plan."""

    at: datetime
    instance: InstanceId
