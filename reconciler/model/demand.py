"""The demand of a cluster over time, which simulations replay."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from reconciler.model.cluster import Owner, PodSpec, Resources
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.selectors import LabelSelector
from reconciler.model.volumes import EBS_DRIVER, ONE_NODE

ControllerKind = Literal["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"]
PodManagementPolicy = Literal["OrderedReady", "Parallel"]
FaultKind = Literal["capacity", "interruption", "never-join", "slow-launch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodVolumes:
    """The persistent volumes that a pod, or a pod template, names."""

    claims: tuple[str, ...] = ()
    """PersistentVolumeClaims by name."""
    ephemeral: tuple[str, ...] = ()
    """Generic ephemeral volumes by name: each pod has a claim of its own for each of them, which is
    deleted with the pod."""


NO_VOLUMES = PodVolumes()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTemplate:
    """One of a StatefulSet's volumeClaimTemplates: replica N uses the claim `<name>-<set>-N`."""

    name: str
    storage_class: str = ""
    """Empty: the default class."""
    access_modes: tuple[str, ...] = (ONE_NODE,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDemand:
    """A pod is created.

    With `ran_seconds` it ends by itself this long after it was bound; with `until` its owner
    deletes it at that time; with neither it stays.
    """

    at: datetime
    id: str
    """Its id, which no other pod has; its name in the simulation."""
    spec: PodSpec
    namespace: str = "default"
    controller: Owner | None = None
    labels: Labels = NO_LABELS
    annotations: Labels = NO_LABELS
    volumes: PodVolumes = NO_VOLUMES
    ran_seconds: float | None = None
    kept_seconds: float | None = None
    """How long it stays in the cluster after it has ended by itself; None: unknown."""
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEnd:
    """A pod of an earlier line has ended; that line could not say so yet."""

    at: datetime
    id: str
    ran_seconds: float | None = None
    """How long it ran if it ended by itself; None: it was deleted at this time."""
    kept_seconds: float | None = None
    """How long it stayed in the cluster after that; None: it is still there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerDemand:
    """From now on a controller has this many replicas or this template, or it is gone.

    A changed template, which is spec, labels and annotations, is a rollout; of a ReplicaSet it is
    that of later pods.
    """

    at: datetime
    controller: Owner
    """Of a `ControllerKind`."""
    namespace: str = "default"
    replicas: int | None = None
    """None: unchanged. Ignored for a DaemonSet."""
    spec: PodSpec | None = None
    """None: unchanged."""
    volumes: PodVolumes = NO_VOLUMES
    """Those of `spec`; ignored without one, and for a DaemonSet."""
    claim_templates: tuple[ClaimTemplate, ...] = ()
    """Of a StatefulSet; empty: unchanged."""
    pod_management_policy: PodManagementPolicy | None = None
    """Of a StatefulSet; None: unchanged, at first `OrderedReady`."""
    labels: Labels = NO_LABELS
    """Labels of its pods; empty: unchanged."""
    annotations: Labels = NO_LABELS
    """Annotations of its pods; empty: unchanged."""
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetDemand:
    """A PodDisruptionBudget is created or changed."""

    at: datetime
    id: str
    """Its name."""
    namespace: str = "default"
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    """Pods, or a percentage of them such as `50%`."""
    max_unavailable: int | str | None = None
    """Pods, or a percentage of them; at most one of the two limits is set."""
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CronDemand:
    """A CronJob is created or changed: its Jobs start by its schedule until it is deleted."""

    at: datetime
    id: str
    """Its name."""
    schedule: str
    spec: PodSpec
    namespace: str = "default"
    time_zone: str = "UTC"
    labels: Labels = NO_LABELS
    annotations: Labels = NO_LABELS
    volumes: PodVolumes = NO_VOLUMES
    pods: int = 1
    """Of each Job."""
    ran_seconds: float = 60.0
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimDemand:
    """A PersistentVolumeClaim exists from now on, or is deleted once no pod names it.

    Without such a line a claim exists from the first pod that names it on, and is of EKS's usual
    class: its EBS volume is made in the zone of that pod's node.
    """

    at: datetime
    id: str
    """Its name."""
    namespace: str = "default"
    zone: str = ""
    """The zone of the volume that it is bound to; empty: it has no volume yet, or one that every
    zone reaches."""
    storage_class: str = ""
    """Empty: the default class. What the first claim of a class says of its driver, and of when it
    binds, counts for all claims of the class."""
    driver: str = EBS_DRIVER
    """The CSI driver. Only EBS attaches volumes, and makes each in one zone."""
    immediate: bool = False
    """Whether the volume is made at once (volumeBindingMode Immediate), in whatever zone, and not
    where its first pod is."""
    access_modes: tuple[str, ...] = (ONE_NODE,)
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultDemand:
    """A fault of EC2."""

    at: datetime
    fault: FaultKind
    fleet: str = ""
    """Its name; empty: every fleet."""
    instance_type: str = ""
    """Empty: every type."""
    zone: str = ""
    """Empty: every zone."""
    code: str = "InsufficientInstanceCapacity"
    """EC2's error code, of a capacity error."""
    instances: int = 1
    """How many spot instances are interrupted, of an interruption."""
    seconds: float = 0.0
    """How much longer launches take, of slow launches."""
    until: datetime | None = None
    """When it ends; None: never. An interruption has no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFact:
    """A fleet's target from this time on, in all regions together.

    It is recorded so that a replay can be compared with it.
    """

    at: datetime
    fleet: str
    target: int
    joined: int | None = None
    """Nodes that it had; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFact:
    """What nodes of one type in a fleet offered to pods: recorded, so that a replay uses the same.

    A config gives only an estimate of it.
    """

    at: datetime
    instance_type: str
    allocatable: Resources
    fleet: str = ""
    """Empty: the nodes are of no fleet, or the fleet was not known."""


DemandLine = (
    PodDemand
    | PodEnd
    | ControllerDemand
    | BudgetDemand
    | CronDemand
    | ClaimDemand
    | FaultDemand
    | FleetFact
    | NodeFact
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The content of one file, in order of time."""

    lines: tuple[DemandLine, ...]
    """Without `PodEnd`: what these lines say is in the pods."""
    end: datetime
    """The last moment that the file covers."""
    recorded_from: datetime | None = None
    """When its recording began, which may be long before the first line; None: it does not say."""
    name: str = field(default="demand", compare=False)
    """The name of the file in error messages."""

    @property
    def begin(self) -> datetime:
        """Return the first moment that the file covers."""
        if self.recorded_from is not None:
            return self.recorded_from
        return self.lines[0].at if self.lines else self.end
