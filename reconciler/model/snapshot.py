"""One consistent picture of cluster and cloud: all that the planner knows."""

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
    """Why an object cannot be read; empty where the code says it all."""


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
    """Instances that never joined and were terminated in the last hour, as far as the Lease has
    them."""
    proof: KeptProof | None = None
    """From our own Lease: that this cluster's nodes were instances of our fleets before."""
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
    server_time: datetime | None = None
    """The API server's own clock when this was observed; None when it is not known."""

    @property
    def uid(self) -> str:
        """Return the cluster's identity, the UID of namespace kube-system; empty when not known."""
        found = (each.uid for each in self.namespaces if each.name == IDENTITY_NAMESPACE)
        return next(found, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudState:
    """What EC2 answered, over all regions."""

    fleets: tuple[Fleet, ...] = ()
    other_fleets: frozenset[FleetId] = frozenset()
    """EC2 Fleets that are alive and not planned with: of another type, without our tags, or not
    readable. What they hold is no orphan."""
    instances: tuple[Instance, ...] = ()
    regions: frozenset[Region] = frozenset()
    """Regions that answered; a fleet of any other region is unknown, not missing."""
    silent: frozenset[Region] = frozenset()
    """Regions that were asked and did not answer for every provider; these never look as if they
    were empty, and what is not shown there is not gone."""
    answered_in_part: frozenset[tuple[Provider, Region]] = frozenset()
    """Of the silent regions, the providers that answered: their fleets and members are shown."""
    providers: frozenset[Provider] = frozenset()
    """Whose fleets are shown; empty: not said."""
    ignored: tuple[Ignored, ...] = ()
    instances_known: bool = False
    """Whether any answer about instances was given: without one none is stuck or gone."""
    instances_asked: bool = False
    """Whether EC2 itself was asked for them just now: an unknown instance is then in doubt, and not
    merely left out of a file."""
    server_time: datetime | None = None
    """EC2's own clock when everything was observed; None when it is not known."""

    def is_silent(self, provider: Provider, region: Region) -> bool:
        """Return whether the provider was asked for its fleets in the region and did not answer."""
        return region in self.silent and (provider, region) not in self.answered_in_part


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that one plan is made from."""

    at: datetime
    """The clock, aware UTC."""
    previous_at: datetime | None = None
    """When this process made its previous plan; None: it has made none."""
    cluster: ClusterState = field(default_factory=ClusterState)
    cloud: CloudState | None = None
    """None: no answer of EC2 at all (offline planning from the cluster alone)."""
    notices: tuple[Notice, ...] = ()
    """The interruption queue's notices that no cycle has settled, sorted."""
