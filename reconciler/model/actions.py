"""Everything the capacity loop can do: a closed union, listed in the order of execution.

A new action is a new power: model, planner, executor handler, codec and docs, on purpose.
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
"""What must still be true of an instance right before it is ended; the executor checks it.

`empty`: no pod that counts runs on its node. `not-ready`: its node is not Ready, whatever runs
there. `never-joined`: it has no node. `orphan`: its fleet is gone, and no pod that counts runs on
its node, if it has one.
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
ROLLING_UPDATE = "fleet-reconciler.io/rolling-update"
FALLBACK_FROM = "fleet-reconciler.io/fallback-from"
SPOT_RETURN = "fleet-reconciler.io/spot-return"
REPLACEMENT_SET = "fleet-reconciler.io/replacement-set"
REPLACEMENT_SET_FAILED = "fleet-reconciler.io/replacement-set-failed"
DO_NOT_DISRUPT = "fleet-reconciler.io/do-not-disrupt"
LAST_DRAIN = "fleet-reconciler.io/last-drain"
LAST_DESCHEDULED = "fleet-reconciler.io/last-descheduled"
FLEET_STATE = "fleet-reconciler.io/fleet-state"
BOUND_TO = "fleet-reconciler.io/bound-to"
RESUME_UPDATE = "fleet-reconciler.io/resume-update"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Common part: who decided it and why, for people."""

    policy: PolicyName
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCapacity(Action):
    """Make a fleet aim at an absolute number of instances, never ending any."""

    fleet: str
    provider: Provider
    id: FleetId
    region: Region
    from_capacity: int
    to_capacity: int
    places_taken: str = ""
    """Which pods took the places that were bought before, by name: for operators only, since
    Events on a pod must not name pods of other namespaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintNode(Action):
    """Put a taint of ours on a node."""

    node: NodeName
    taint: Taint


@dataclass(frozen=True, slots=True, kw_only=True)
class UntaintNode(Action):
    """Take a taint of ours off a node."""

    node: NodeName
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateNode(Action):
    """Set an annotation of ours on a node; None removes it."""

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
    """The descheduler's policy that evicts it; None for every other move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod(Action):
    """Delete a pod past its budget; only when the time of its node has run out."""

    pod: PodKey
    node: NodeName
    grace_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateInstance(Action):
    """End an instance; with `decrement` its fleet's target goes down by one first."""

    instance: InstanceId
    node: NodeName | None
    """None where the instance never joined."""
    fleet: str
    fleet_id: FleetId
    provider: Provider
    region: Region
    decrement: bool
    precondition: Precondition
    from_capacity: int | None = None
    """The fleet's target that the plan was made from; None when it is not known. A target that is
    another by now has been lowered for this very instance, perhaps."""
    stuck_terminating: tuple[PodKey, ...] = ()
    """Pods that are still there long after their grace period ended: they do not keep the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteNode(Action):
    """Remove the Node object of an instance that is gone."""

    node: NodeName
    instance: InstanceId | None = None
    """Looked up once more before the object goes; None where there is nothing to look up."""
    provider: Provider = "ec2-fleet"
    region: Region | None = None
    uid: str = ""
    """Of the very object: a new machine may go by the same name by now. Empty: whichever it is."""


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
    """Whether the action puts our draining taint on a node; a soft taint moves nothing."""
    return isinstance(action, TaintNode) and action.taint.key == DRAINING_TAINT


def ends_drain(action: AnyAction) -> TypeGuard[UntaintNode]:
    """Whether the action takes our draining taint off a node."""
    return isinstance(action, UntaintNode) and action.key == DRAINING_TAINT
