"""Which resource types the sandbox cluster serves, and how each of them behaves.

Names, scopes, short names and subresources are those of Kubernetes 1.36. Differences between types
(generation, unconditional updates, DELETE's answer) are data here, not code.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource type of the API."""

    group: str
    """Empty for the core group."""
    version: str = "v1"
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    """Of `status`, `scale`, `eviction`, `binding`, `token`."""
    keeps_status_on_create: bool = False
    """The API server drops the status of what it creates, except for nodes and a few others."""
    has_generation: bool = False
    unconditional_update: bool = True
    """Whether PUT may leave out the resourceVersion."""
    returns_deleted: bool = False
    """Whether DELETE answers with the object rather than with a Status."""

    @property
    def group_version(self) -> str:
        """Return the apiVersion of its objects, such as `v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """Return its name in error messages, such as `pods` or `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def list_kind(self) -> str:
        """Return the kind of its lists."""
        return f"{self.kind}List"

    @property
    def has_status(self) -> bool:
        """Return whether the status is written through a subresource of its own."""
        return "status" in self.subresources


_STATUS = frozenset({"status"})
_STATUS_SCALE = frozenset({"status", "scale"})

PODS = Resource(
    group="", plural="pods", kind="Pod", short_names=("po",), categories=("all",),
    subresources=frozenset({"status", "eviction", "binding"}), has_generation=True,
    returns_deleted=True,
)  # fmt: skip
NODES = Resource(
    group="", plural="nodes", kind="Node", namespaced=False, short_names=("no",),
    subresources=_STATUS, keeps_status_on_create=True,
)  # fmt: skip
NAMESPACES = Resource(
    group="", plural="namespaces", kind="Namespace", namespaced=False, short_names=("ns",),
    subresources=_STATUS,
)  # fmt: skip
EVENTS = Resource(group="", plural="events", kind="Event", short_names=("ev",))
PERSISTENT_VOLUMES = Resource(
    group="", plural="persistentvolumes", kind="PersistentVolume", namespaced=False,
    short_names=("pv",), subresources=_STATUS, returns_deleted=True,
)  # fmt: skip
PERSISTENT_VOLUME_CLAIMS = Resource(
    group="", plural="persistentvolumeclaims", kind="PersistentVolumeClaim",
    short_names=("pvc",), subresources=_STATUS, returns_deleted=True,
)  # fmt: skip
SERVICE_ACCOUNTS = Resource(
    group="", plural="serviceaccounts", kind="ServiceAccount", short_names=("sa",),
    subresources=frozenset({"token"}), returns_deleted=True,
)  # fmt: skip
DEPLOYMENTS = Resource(
    group="apps", plural="deployments", kind="Deployment", short_names=("deploy",),
    categories=("all",), subresources=_STATUS_SCALE, has_generation=True,
)  # fmt: skip
REPLICA_SETS = Resource(
    group="apps", plural="replicasets", kind="ReplicaSet", short_names=("rs",),
    categories=("all",), subresources=_STATUS_SCALE, has_generation=True,
)  # fmt: skip
DAEMON_SETS = Resource(
    group="apps", plural="daemonsets", kind="DaemonSet", short_names=("ds",),
    categories=("all",), subresources=_STATUS, has_generation=True,
)  # fmt: skip
STATEFUL_SETS = Resource(
    group="apps", plural="statefulsets", kind="StatefulSet", short_names=("sts",),
    categories=("all",), subresources=_STATUS_SCALE, has_generation=True,
)  # fmt: skip
JOBS = Resource(
    group="batch", plural="jobs", kind="Job", categories=("all",), subresources=_STATUS,
    has_generation=True,
)  # fmt: skip
CRON_JOBS = Resource(
    group="batch", plural="cronjobs", kind="CronJob", short_names=("cj",), categories=("all",),
    subresources=_STATUS, has_generation=True,
)  # fmt: skip
BUDGETS = Resource(
    group="policy", plural="poddisruptionbudgets", kind="PodDisruptionBudget",
    short_names=("pdb",), subresources=_STATUS, has_generation=True, unconditional_update=False,
)  # fmt: skip
LEASES = Resource(
    group="coordination.k8s.io", plural="leases", kind="Lease", unconditional_update=False
)
STORAGE_CLASSES = Resource(
    group="storage.k8s.io", plural="storageclasses", kind="StorageClass", namespaced=False,
    short_names=("sc",), returns_deleted=True,
)  # fmt: skip
CSI_NODES = Resource(
    group="storage.k8s.io", plural="csinodes", kind="CSINode", namespaced=False,
    returns_deleted=True,
)  # fmt: skip
PRIORITY_CLASSES = Resource(
    group="scheduling.k8s.io", plural="priorityclasses", kind="PriorityClass", namespaced=False,
    short_names=("pc",),
)  # fmt: skip

_RBAC = "rbac.authorization.k8s.io"
_STORED = (
    Resource(group="", plural="configmaps", kind="ConfigMap", short_names=("cm",)),
    Resource(group="", plural="secrets", kind="Secret"),
    Resource(group="", plural="endpoints", kind="Endpoints", short_names=("ep",)),
    Resource(group="", plural="limitranges", kind="LimitRange", short_names=("limits",)),
    Resource(group="", plural="podtemplates", kind="PodTemplate", returns_deleted=True),
    Resource(
        group="", plural="resourcequotas", kind="ResourceQuota", short_names=("quota",),
        subresources=_STATUS, returns_deleted=True,
    ),
    Resource(
        group="", plural="services", kind="Service", short_names=("svc",), categories=("all",),
        subresources=_STATUS, returns_deleted=True,
    ),
    Resource(
        group="", plural="replicationcontrollers", kind="ReplicationController",
        short_names=("rc",), categories=("all",), subresources=_STATUS_SCALE, has_generation=True,
    ),
    Resource(group="apps", plural="controllerrevisions", kind="ControllerRevision"),
    Resource(
        group="autoscaling", version="v2", plural="horizontalpodautoscalers",
        kind="HorizontalPodAutoscaler", short_names=("hpa",), categories=("all",),
        subresources=_STATUS,
    ),
    Resource(group="discovery.k8s.io", plural="endpointslices", kind="EndpointSlice"),
    Resource(group="events.k8s.io", plural="events", kind="Event", short_names=("ev",)),
    Resource(
        group="networking.k8s.io", plural="networkpolicies", kind="NetworkPolicy",
        short_names=("netpol",), has_generation=True,
    ),
    Resource(
        group="networking.k8s.io", plural="ingresses", kind="Ingress", short_names=("ing",),
        subresources=_STATUS, has_generation=True,
    ),
    Resource(group=_RBAC, plural="roles", kind="Role"),
    Resource(group=_RBAC, plural="rolebindings", kind="RoleBinding"),
    Resource(group=_RBAC, plural="clusterroles", kind="ClusterRole", namespaced=False),
    Resource(
        group=_RBAC, plural="clusterrolebindings", kind="ClusterRoleBinding", namespaced=False
    ),
    Resource(group="storage.k8s.io", plural="csidrivers", kind="CSIDriver", namespaced=False),
    Resource(
        group="storage.k8s.io", plural="volumeattachments", kind="VolumeAttachment",
        namespaced=False, subresources=_STATUS,
    ),
)  # fmt: skip
"""Types in manifests that nothing in the sandbox acts on: they are stored and served."""

RESOURCES: tuple[Resource, ...] = (
    PODS, NODES, NAMESPACES, EVENTS, PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS,
    SERVICE_ACCOUNTS, DEPLOYMENTS, REPLICA_SETS, DAEMON_SETS, STATEFUL_SETS, JOBS, CRON_JOBS,
    BUDGETS, LEASES, STORAGE_CLASSES, CSI_NODES, PRIORITY_CLASSES, *_STORED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Looks up resource types by the parts of a URL or of an object."""

    by_path: dict[tuple[str, str, str], Resource] = field(
        default_factory=lambda: {(r.group, r.version, r.plural): r for r in RESOURCES}
    )
    by_kind: dict[tuple[str, str], Resource] = field(
        default_factory=lambda: {(r.group_version, r.kind): r for r in RESOURCES}
    )


CATALOGUE = Catalogue()
