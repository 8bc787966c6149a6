"""Everything the capacity loop can do: a closed union, listed in the order of execution.

A new action is a new power, so it needs changes in model, planner, executor, codec and docs.
"""

from dataclasses import dataclass
from typing import Literal, TypeGuard

from reconciler.model.cluster import Taint
from reconciler.model.fleet import Provider
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey, Region

PolicyName = Literal[
    "scale-up",
    "min-capacity",
    "max-capacity",
    "scale-in",
    "consolidation",
    "spot-reschedule",
    "deschedule",
    "interruption",
    "rolling-update",
    "expiry",
    "spot-return",
    "stuck-instance",
    "overflow",
]

PodPolicy = Literal[
    "RemoveDuplicates",
    "LowNodeUtilization",
    "HighNodeUtilization",
    "RemovePodsViolatingInterPodAntiAffinity",
    "RemovePodsViolatingNodeAffinity",
    "RemovePodsViolatingNodeTaints",
    "RemovePodsViolatingTopologySpreadConstraint",
    "RemovePodsHavingTooManyRestarts",
    "PodLifeTime",
    "RemoveFailedPods",
]
"""The policies of the descheduler, by their names in descheduler/v1alpha2."""

Precondition = Literal["empty", "not-ready", "never-joined", "orphan"]
"""What must still be true of an instance right before it is terminated; the executor checks it.

`empty`: no counted pod runs on its node. `not-ready`: its node is not Ready, whatever runs there.
`never-joined`: it has no node. `orphan`: its fleet is gone, and no pod that counts runs on its
node, if it has one.
"""

DRAINING_TAINT = "fleet-reconciler.io/draining"
UNNEEDED_TAINT = "fleet-reconciler.io/unneeded"
UNNEEDED_SINCE = "fleet-reconciler.io/unneeded-since"
DRAIN_STARTED = "fleet-reconciler.io/drain-started"
DRAIN_PROGRESS = "fleet-reconciler.io/drain-progress"
DRAIN_FAILED = "fleet-reconciler.io/drain-failed"
PODS_BLOCK_SINCE = "fleet-reconciler.io/pods-block-since"
REPLACEMENT_ASKED = "fleet-reconciler.io/replacement-asked"
INTERRUPTION = "fleet-reconciler.io/interruption"
FURTHER_INTERRUPTIONS = "fleet-reconciler.io/further-interruptions"
ROLLING_UPDATE = "fleet-reconciler.io/rolling-update"
FALLBACK_FROM = "fleet-reconciler.io/fallback-from"
SPOT_RETURN = "fleet-reconciler.io/spot-return"
REPLACEMENT_SET = "fleet-reconciler.io/replacement-set"
REPLACEMENT_SET_FAILED = "fleet-reconciler.io/replacement-set-failed"
DO_NOT_DISRUPT = "fleet-reconciler.io/do-not-disrupt"
DO_NOT_DRAIN = "openai/do-not-drain"
"""The label with which users of kubernetes-ec2-autoscaler protect pods."""
LAST_DRAIN = "fleet-reconciler.io/last-drain"
LAST_DESCHEDULED = "fleet-reconciler.io/last-descheduled"
FLEET_STATE = "fleet-reconciler.io/fleet-state"
BOUND_TO = "fleet-reconciler.io/bound-to"
RESUME_UPDATE = "fleet-reconciler.io/resume-update"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Common part of all actions: which policy decided it and why, for people."""

    policy: PolicyName
    because: str
    forced: bool = False
    """Whether it is done although an earlier step on its node failed, as EC2 takes the node in any
    case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCapacity(Action):
    """Set a fleet's target to an absolute number of instances; this never ends an instance."""

    fleet: str
    provider: Provider
    id: FleetId
    region: Region
    from_capacity: int
    to_capacity: int
    places_taken: str = ""
    """Which pods took the nodes that were bought before, by name: for operators only, since Events
    on a pod must not name pods of other namespaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintNode(Action):
    """Put one of our taints on a node."""

    node: NodeName
    taint: Taint


@dataclass(frozen=True, slots=True, kw_only=True)
class UntaintNode(Action):
    """Remove one of our taints from a node."""

    node: NodeName
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateNode(Action):
    """Set one of our annotations on a node; None removes it."""

    node: NodeName
    key: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictPod(Action):
    """Ask the Eviction API to end a pod."""

    pod: PodKey
    node: NodeName
    grace_seconds: int
    pod_policy: PodPolicy | None = None
    """The descheduler's policy that evicts it; None for every other eviction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod(Action):
    """Delete a pod regardless of its budget; only once the time of its node is over."""

    pod: PodKey
    node: NodeName
    grace_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateInstance(Action):
    """Terminate an instance; with `decrement` its fleet's target is lowered by one first."""

    instance: InstanceId
    node: NodeName | None
    """None if the instance never joined."""
    fleet: str
    fleet_id: FleetId
    provider: Provider
    region: Region
    decrement: bool
    precondition: Precondition
    from_capacity: int | None = None
    """The fleet's target that the plan is based on; None when it is not known.

    If the target has changed since, it may have been lowered for this instance already.
    """
    stuck_terminating: tuple[PodKey, ...] = ()
    """Pods that are still there long after their grace period ended: they do not keep the node.

    Of an overdue node also those that come back as often as they are deleted.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteNode(Action):
    """Delete the Node object of an instance that is gone."""

    node: NodeName
    instance: InstanceId | None = None
    """Checked once more before the object is deleted; None if there is nothing to check."""
    provider: Provider = "ec2-fleet"
    region: Region | None = None
    uid: str = ""
    """UID of this object: a new node may have the same name by now. Empty: any object of the
    name."""


AnyAction = (
    SetCapacity
    | TaintNode
    | UntaintNode
    | AnnotateNode
    | EvictPod
    | DeletePod
    | TerminateInstance
    | DeleteNode
)


def begins_drain(action: AnyAction) -> TypeGuard[TaintNode]:
    """Return whether the action puts our draining taint on a node; a soft taint moves no pod."""
    return isinstance(action, TaintNode) and action.taint.key == DRAINING_TAINT


def ends_drain(action: AnyAction) -> TypeGuard[UntaintNode]:
    """Return whether the action removes our draining taint from a node."""
    return isinstance(action, UntaintNode) and action.key == DRAINING_TAINT
