"""Claims, volumes, their classes, and how many volumes a node attaches."""

from dataclasses import dataclass
from typing import Final

from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.model.ids import NodeName
from reconciler.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm

EBS_DRIVER: Final = "ebs.csi.aws.com"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""The provisioner of classes whose volumes are made by hand (local disks)."""
ONE_NODE: Final = "ReadWriteOnce"
ONE_POD: Final = "ReadWriteOncePod"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistentVolumeClaim:
    """A claim for a volume."""

    namespace: str
    name: str
    volume_name: str = ""
    """The volume that it is bound to, or that its author wants it to be bound to."""
    volume_bound: bool = True
    """False when it names a volume without being bound to it: not yet, never, or no longer."""
    storage_class: str | None = None
    access_modes: tuple[str, ...] = ()
    selected_node: NodeName | None = None
    """The node that kube-scheduler has selected for its volume, while it is not bound."""
    request_bytes: int = 0
    selector: LabelSelector | None = None
    """Volumes that may be bound to it; None: any."""
    too_complex: str = ""
    """Which part of its selector is too large to be compared; it is then left out."""
    block: bool = False
    """volumeMode Block instead of Filesystem."""
    of_pod: bool = False
    """Whether a pod owns it, so that it is deleted with the pod: a generic ephemeral volume."""
    deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistentVolume:
    """A volume, and where it can be attached."""

    name: str
    node_affinity: NodeSelector | None = None
    labels: Labels = NO_LABELS
    csi_driver: str = ""
    volume_handle: str = ""
    storage_class: str = ""
    access_modes: tuple[str, ...] = ()
    capacity_bytes: int = 0
    block: bool = False
    """volumeMode Block instead of Filesystem."""
    claim: tuple[str, str] | None = None
    """Namespace and name of the claim that holds or has reserved it."""
    deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClass:
    """How claims of a class are bound."""

    name: str
    provisioner: str
    wait_for_first_consumer: bool
    allowed_topologies: tuple[NodeSelectorTerm, ...] = ()
    default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CsiNode:
    """Attach limits per CSI driver on one node; None means no limit known."""

    name: NodeName
    limits: FrozenMap[str, int | None]
