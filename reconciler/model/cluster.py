"""The Kubernetes objects that planning reads: pods, nodes, budgets, volumes."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal
from weakref import WeakValueDictionary

from reconciler.model.containers import ContainerState
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.model.ids import InstanceId, NodeName, PodKey, ResourceName
from reconciler.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm

Resources = FrozenMap[ResourceName, int]
"""Amounts: milli for `cpu`, bytes for memory and storage, counts elsewhere."""

NO_RESOURCES: Resources = FrozenMap()
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - Kubernetes' word for every address of a node
DEFAULT_SCHEDULER: Final = "default-scheduler"
FARGATE_SCHEDULER: Final = "fargate-scheduler"
"""The scheduler of pods on EKS Fargate, each on a machine of its own that AWS adds."""
TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Taint:
    """A node's taint."""

    key: str
    value: str = ""
    effect: TaintEffect


NOT_READY: Final = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
"""The API server adds it to each new node, and Kubernetes removes it when the node is Ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A pod's toleration.

    An empty key with Exists matches any taint, an empty effect any effect.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Return whether a taint is tolerated, as Toleration.ToleratesTaint of k8s.io/api does."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in {"", "Equal"}:
            return self.value == taint.value
        return self.operator == "Exists"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAffinityTerm:
    """A required or preferred (anti-)affinity term, matchLabelKeys still unresolved."""

    topology_key: str
    selector: LabelSelector | None
    namespaces: frozenset[str] = frozenset()
    namespace_selector: LabelSelector | None = None
    """None for only `namespaces`, or the pod's own if that is empty too.

    Empty for all namespaces.
    """
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySpreadConstraint:
    """A topology spread constraint; `hard` is DoNotSchedule."""

    topology_key: str
    max_skew: int
    hard: bool
    selector: LabelSelector | None
    min_domains: int = 1
    honor_node_affinity: bool = True
    honor_node_taints: bool = False
    match_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class HostPort:
    """A port that a pod takes on its node; 0.0.0.0 collides with every address."""

    address: str
    protocol: str
    port: int

    def collides(self, other: "HostPort") -> bool:
        """Return whether no node can give both ports to different pods."""
        same = (self.protocol, self.port) == (other.protocol, other.port)
        addresses = {self.address, other.address}
        return same and (len(addresses) == 1 or ANY_ADDRESS in addresses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """A soft node affinity term and its weight, 1 to 100."""

    weight: int
    term: NodeSelectorTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPreference:
    """A soft inter-pod (anti-)affinity term; the weight is negative for anti-affinity."""

    weight: int
    term: PodAffinityTerm


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class PodSpec:
    """The parts of a pod's spec that its replicas share and a decision can depend on.

    The decoder of pods interns these: equal specs are one object, so that grouping tens of
    thousands of pods costs an identity look-up each.
    """

    requests: Resources
    """Effective requests with overhead, `pods: 1` included (behaviour: "Which pods count")."""
    node_selector: Labels = NO_LABELS
    node_affinity: NodeSelector | None = None
    """Required terms; None if there are none."""
    node_preferences: tuple[Preference, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    pod_affinity: tuple[PodAffinityTerm, ...] = ()
    pod_anti_affinity: tuple[PodAffinityTerm, ...] = ()
    pod_preferences: tuple[PodPreference, ...] = ()
    topology_spread: tuple[TopologySpreadConstraint, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    priority: int = 0
    preempts: bool = True
    """False with preemptionPolicy Never: then it does not displace balloon pods."""
    scheduler_name: str = DEFAULT_SCHEDULER
    termination_grace_seconds: int = 30
    ends_by_itself: bool = field(default=False, metadata={"in_digests": False})
    """Whether its restartPolicy is OnFailure or Never: it does some work and ends. Digests of specs
    leave it out: it says nothing of where the pod fits, and those on the Lease stay the same."""
    local_storage: bool = False
    """Whether it has an emptyDir on disk or a hostPath; an emptyDir in memory does not count."""
    too_complex: str = ""
    """Of what it has more than planning supports, in words; what exceeds a limit is left out.

    Such a pod is no demand and is never moved; where it runs, it counts.
    """
    takes_all: bool = False
    """Whether host ports or extended resources were left out: then it counts as taking all on
    its node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The controlling owner of a pod."""

    kind: str
    name: str
    uid: str = ""


PodPhase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
QosClass = Literal["BestEffort", "Burstable", "Guaranteed"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class PodTraits:
    """What a pod and its replicas share for planning: all but name, node, labels and claims.

    Pods with one spec object share one of these, so that tens of thousands of them are grouped with
    one look-up each. Identity is only an optimisation: two of these may have equal content, and
    code that needs classes compares the content.
    """

    namespace: str
    spec: PodSpec
    phase: PodPhase
    bound: bool
    """Whether the pod is bound to a node."""
    nominated: bool
    volumes: bool
    """Whether the pod has claims or volumes of its own: then pods of one group may differ in
    these."""
    daemon: bool
    mirror: bool
    gated: bool
    left_to_scheduler: bool
    deleting: bool
    unreadable: bool

    @property
    def finished(self) -> bool:
        """Return whether the pod has Succeeded or Failed and so holds no resources any more."""
        return self.phase in {"Succeeded", "Failed"}


_TRAITS: WeakValueDictionary[tuple[object, ...], PodTraits] = WeakValueDictionary()
"""The traits in use. Keys hold ids of specs, which live as long as the traits do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod as the API server holds it."""

    key: PodKey
    spec: PodSpec
    labels: Labels = NO_LABELS
    annotations: Labels = NO_LABELS
    """Only the annotations that a decision depends on."""
    owner: Owner | None = None
    phase: PodPhase = "Pending"
    node_name: NodeName | None = None
    nominated_node_name: NodeName | None = None
    claims: tuple[str, ...] = ()
    """PersistentVolumeClaims by name, generic ephemeral ones included."""
    ebs_volume_ids: tuple[str, ...] = ()
    """In-tree awsElasticBlockStore volumes named in the pod itself."""
    gated: bool = False
    left_to_scheduler: bool = False
    """Whether it waits for a scheduler of its own that has not marked it Unschedulable."""
    mirror: bool = False
    deleting: bool = False
    ready: bool = False
    created_at: datetime | None = None
    deletion_at: datetime | None = None
    """When it will be deleted: the end of its grace period (metadata.deletionTimestamp)."""
    scheduled_at: datetime | None = None
    """When it was bound to its node, by the API server's clock; None when that is not known."""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    restarts: int = 0
    """How often its containers were restarted, in total, without init containers."""
    qos: QosClass | None = None
    """None when the API server does not say."""
    reason: str = ""
    """Why it is in its phase, such as `Evicted`; usually empty."""
    containers: tuple[ContainerState, ...] = ()
    """Only those with an unusual state."""
    unreadable: bool = False
    """Whether its spec could not be decoded: it occupies its node, is never moved, and requests
    nothing."""
    traits: PodTraits = field(init=False, repr=False, compare=False)
    """What it shares with its replicas."""

    def __post_init__(self) -> None:
        """Find the traits, so that planning need not read each pod in every cycle."""
        object.__setattr__(self, "traits", _traits_of(self))

    @property
    def finished(self) -> bool:
        """Return whether the pod has Succeeded or Failed and so holds no resources any more."""
        return self.phase in {"Succeeded", "Failed"}

    @property
    def daemon(self) -> bool:
        """Return whether a DaemonSet made the pod."""
        return self.owner is not None and self.owner.kind == "DaemonSet"

    @property
    def runs_to_completion(self) -> bool:
        """Return whether its controller made it for work that ends, as Jobs do.

        So do Spark, Argo, Tekton and Kubeflow. Pods of ReplicaSets, StatefulSets and DaemonSets
        have restartPolicy Always, which the API server requires.
        """
        owner = self.owner
        return owner is not None and (owner.kind == "Job" or self.spec.ends_by_itself)


def _traits_of(pod: Pod) -> PodTraits:
    """Return the one object for pods like this one."""
    volumes = bool(pod.claims or pod.ebs_volume_ids)
    bound, nominated = pod.node_name is not None, pod.nominated_node_name is not None
    waits = (pod.gated, pod.left_to_scheduler)
    rare = (pod.daemon, pod.mirror, *waits, pod.deleting, pod.unreadable)
    key = (pod.key.namespace, id(pod.spec), pod.phase, bound, nominated, volumes, *rare)
    known = _TRAITS.get(key)
    if known is None:
        known = PodTraits(
            namespace=pod.key.namespace,
            spec=pod.spec,
            phase=pod.phase,
            bound=bound,
            nominated=nominated,
            volumes=volumes,
            daemon=pod.daemon,
            mirror=pod.mirror,
            gated=pod.gated,
            left_to_scheduler=pod.left_to_scheduler,
            deleting=pod.deleting,
            unreadable=pod.unreadable,
        )
        _TRAITS[key] = known
    return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as the API server holds it."""

    name: NodeName
    uid: str = ""
    provider_id: str = ""
    instance_id: InstanceId | None = None
    labels: Labels = NO_LABELS
    annotations: Labels = NO_LABELS
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    ready_changed_at: datetime | None = None
    """Last transition of the Ready condition; None when the node never reported one."""
    created_at: datetime | None = None
    deleting: bool = False
    allocatable: Resources = NO_RESOURCES
    capacity: Resources = NO_RESOURCES
    unreadable: bool = False
    """Whether it could not be decoded: then it is never removed and never a destination."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSet:
    """A DaemonSet's template: what will run on each new node that it matches."""

    namespace: str
    name: str
    uid: str = ""
    spec: PodSpec
    labels: Labels = NO_LABELS
    """The annotations of its pods."""
    makes_no_pods: bool = False
    """Whether it should have pods on nodes and has none: a quota or an admission policy forbids
    them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDisruptionBudget:
    """A PodDisruptionBudget; `disruptions_allowed` is the API server's own count."""

    namespace: str
    name: str
    selector: LabelSelector | None
    disruptions_allowed: int
    unhealthy_pod_eviction_policy: str = "IfHealthyBudget"
    current_healthy: int = 0
    desired_healthy: int = 0
    unreadable: bool = False
    """Whether it could not be decoded: then there are no evictions in its namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A namespace's labels, for namespaceSelector."""

    name: str
    labels: Labels = NO_LABELS
    uid: str = ""
