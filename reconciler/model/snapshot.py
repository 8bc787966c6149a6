"""One consistent observation of cluster and cloud: everything that the planner knows."""

from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.binding import IDENTITY_NAMESPACE, KeptProof
from reconciler.model.cluster import DaemonSet, Namespace, Node, Pod, PodDisruptionBudget
from reconciler.model.fleet import Fleet, Instance, Provider
from reconciler.model.ids import FleetId, Region
from reconciler.model.notices import Notice
from reconciler.model.saved_state import (
    InterruptedPool,
    LostFleet,
    ProtectedInstance,
    SavedDemandState,
    SavedFleetState,
    SavedRaise,
    StuckEnd,
)
from reconciler.model.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Ignored:
    """An object that planning does not use, and why."""

    code: str
    namespace: str = ""
    pod: str = ""
    kind: str = ""
    name: str = ""
    count: int = 0
    detail: str = field(default="", compare=False)
    """Why an object cannot be decoded; empty if the code says it all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """What the Kubernetes API answered, each kind by namespace and name (`decode_cluster` sorts).

    Of two equal pods the first one is moved first, so another order may move the other one.
    """

    pods: tuple[Pod, ...] = ()
    nodes: tuple[Node, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CsiNode, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    last_drain_at: datetime | None = None
    """From the Lease's annotation; None when no drain is known."""
    last_descheduled_at: datetime | None = None
    """The same for the descheduler's last eviction."""
    fleet_states: tuple[SavedFleetState, ...] = ()
    demands: tuple[SavedDemandState, ...] = ()
    lost_fleets: tuple[LostFleet, ...] = ()
    stuck_ends: tuple[StuckEnd, ...] = ()
    """Instances that never joined and were terminated in the last hour, as saved on the Lease."""
    proof: KeptProof | None = None
    """From our Lease: the proof that this cluster's nodes were instances of our fleets."""
    raises: tuple[SavedRaise, ...] = ()
    """By how much targets were raised recently."""
    resumed_updates: tuple[str, ...] = ()
    """Fleets whose halted rolling update a person has resumed, from the Lease."""
    interrupted_pools: tuple[InterruptedPool, ...] = ()
    """Where EC2 recently took our spot instances back."""
    protected_instances: tuple[ProtectedInstance, ...] = ()
    """Instances that EC2 refused to end, as they are protected from termination."""
    ignored: tuple[Ignored, ...] = ()
    """Objects of unused kinds and objects that could not be read."""
    relists: int = 1
    """Full lists read since start; the safety stop needs two that agree."""
    heard_again: bool = False
    """Whether the API server was out of reach shortly before, and no second list has confirmed the
    first one since: it shows kubelets as they were before they reached the server again."""
    server_time: datetime | None = None
    """The API server's own clock when this was observed; None when it is not known."""

    @property
    def uid(self) -> str:
        """Return the cluster's identity, the UID of namespace kube-system; empty when not known."""
        found = (
            namespace.uid for namespace in self.namespaces if namespace.name == IDENTITY_NAMESPACE
        )
        return next(found, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudState:
    """What EC2 answered, over all regions."""

    fleets: tuple[Fleet, ...] = ()
    other_fleets: frozenset[FleetId] = frozenset()
    """Live EC2 Fleets that are not planned with: of another type, without our tags, or unreadable.

    Their instances are no orphans.
    """
    instances: tuple[Instance, ...] = ()
    regions: frozenset[Region] = frozenset()
    """Regions that answered; a fleet in any other region is unknown, not missing."""
    silent: frozenset[Region] = frozenset()
    """Regions that were asked and did not answer for every provider.

    They never count as empty, and what is not shown there is not gone.
    """
    answered_in_part: frozenset[tuple[Provider, Region]] = frozenset()
    """Of the silent regions, the providers that answered: their fleets and members are shown."""
    providers: frozenset[Provider] = frozenset()
    """The providers whose fleets are shown; empty if unknown."""
    ignored: tuple[Ignored, ...] = ()
    instances_known: bool = False
    """Whether any answer about instances was given: without one none is stuck or gone."""
    instances_asked: bool = False
    """Whether EC2 itself was just asked for instances: then an unknown instance is doubtful, and
    not merely missing from a file."""
    server_time: datetime | None = None
    """EC2's own clock when everything was observed; None when it is not known."""

    def is_silent(self, provider: Provider, region: Region) -> bool:
        """Return whether the provider was asked for its fleets in the region and did not answer."""
        return region in self.silent and (provider, region) not in self.answered_in_part


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything from which one plan is made."""

    at: datetime
    """The time of the plan, aware UTC."""
    previous_at: datetime | None = None
    """When this process made its previous plan; None if it has made none."""
    cluster: ClusterState = field(default_factory=ClusterState)
    cloud: CloudState | None = None
    """None without any answer of EC2 (offline planning from the cluster only)."""
    notices: tuple[Notice, ...] = ()
    """The interruption queue's notices that no cycle has settled, sorted."""
