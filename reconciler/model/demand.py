"""What a cluster was asked to run, over time: the demand that simulations are fed with."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from reconciler.model.cluster import Owner, PodSpec, Resources
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.selectors import LabelSelector

ControllerKind = Literal["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"]
FaultKind = Literal["capacity", "interruption", "never-join", "slow-launch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDemand:
    """A pod is created.

    One that runs for `ran_seconds` ends by itself so long after it was bound; one with `until` is
    deleted by its owner at that time; one with neither stays.
    """

    at: datetime
    id: str
    """Tells it from every other pod; its name in the simulation."""
    spec: PodSpec
    namespace: str = "default"
    controller: Owner | None = None
    labels: Labels = NO_LABELS
    annotations: Labels = NO_LABELS
    ran_seconds: float | None = None
    kept_seconds: float | None = None
    """For how long it stays in the cluster after it has ended by itself; None: unknown."""
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEnd:
    """A pod of an earlier line has ended: what its line could not say yet."""

    at: datetime
    id: str
    ran_seconds: float | None = None
    """How long it ran, of one that ended by itself; None: it was deleted at this time."""
    kept_seconds: float | None = None
    """For how long it stayed in the cluster after that; None: it is still there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerDemand:
    """A controller has so many replicas from now on, or another template, or is gone.

    A changed template, which is spec, labels and annotations, is a rollout.
    """

    at: datetime
    controller: Owner
    """Of a `ControllerKind`."""
    namespace: str = "default"
    replicas: int | None = None
    """None: as before. Without meaning for a DaemonSet."""
    spec: PodSpec | None = None
    """None: as before."""
    labels: Labels = NO_LABELS
    """Of its pods; empty: as before."""
    annotations: Labels = NO_LABELS
    """Of its pods; empty: as before."""
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
    """Likewise; one of the two."""
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
    pods: int = 1
    """Of each Job."""
    ran_seconds: float = 60.0
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultDemand:
    """Something of EC2 goes wrong."""

    at: datetime
    fault: FaultKind
    fleet: str = ""
    """Its name; empty: every fleet."""
    instance_type: str = ""
    """Empty: every type. Of capacity errors and interruptions only."""
    zone: str = ""
    """Empty: every zone. Of capacity errors and interruptions only."""
    code: str = "InsufficientInstanceCapacity"
    """What EC2 answers, of a capacity error."""
    instances: int = 1
    """How many spot instances are taken back, of an interruption."""
    seconds: float = 0.0
    """How much longer launches take, of a slow launch."""
    until: datetime | None = None
    """When it ends; None: never. An interruption has no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFact:
    """What a fleet's target was from this time on: recorded, to compare a replay with."""

    at: datetime
    fleet: str
    target: int
    joined: int | None = None
    """Nodes that it had; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFact:
    """What nodes of a type of a fleet offered to pods: recorded, so that a replay's offer the same.

    A config tells no more than an estimate of it.
    """

    at: datetime
    instance_type: str
    allocatable: Resources
    fleet: str = ""
    """Empty: of nodes of no fleet, or it was not known."""


DemandLine = (
    PodDemand
    | PodEnd
    | ControllerDemand
    | BudgetDemand
    | CronDemand
    | FaultDemand
    | FleetFact
    | NodeFact
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Everything of one file, in order of time."""

    lines: tuple[DemandLine, ...]
    """Without `PodEnd`: the pods have what it said."""
    end: datetime
    """The last moment that it tells of."""
    name: str = field(default="demand", compare=False)
    """What errors call it: its file."""

    @property
    def begin(self) -> datetime:
        """The first moment that it tells of."""
        return self.lines[0].at if self.lines else self.end
