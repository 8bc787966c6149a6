"""The Cluster port over files that `kubectl get … -o json` wrote: one observation, no change."""

from collections.abc import Mapping, Sequence
from typing import BinaryIO, NoReturn

from reconciler.adapters.files.reading import read_inputs
from reconciler.model.cluster import Node, Taint
from reconciler.model.counted_pods import counts
from reconciler.model.errors import Refused
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.snapshot import ClusterState
from reconciler.ports.changes import HandledChanges, Window
from reconciler.records.kubernetes import LEASE_NAMESPACE, decode_cluster, split_documents
from reconciler.records.kubernetes.documents import HINT


class FileCluster:
    """A cluster from files.

    Args:
        paths: Files, `-` for standard input.
        stdin: Stands in for standard input.
        lease_namespace: The namespace whose Lease counts when the files have several.

    Raises:
        InputError: A file cannot be read or is not JSON of Kubernetes.
    """

    def __init__(
        self,
        paths: Sequence[str],
        stdin: BinaryIO | None = None,
        lease_namespace: str = LEASE_NAMESPACE,
    ) -> None:
        objects = [
            split_document
            for where, body in read_inputs(paths, stdin, hint=HINT)
            for split_document in split_documents(body, where)
        ]
        self._state = decode_cluster(objects, lease_namespace=lease_namespace)

    def observe(self) -> ClusterState:
        """Return the content of the files."""
        return self._state

    def wait_for_change(self, timeout_seconds: float) -> bool:  # noqa: ARG002 - part of the port
        """Return False at once: files do not change."""
        return False

    def demand_waits(self) -> bool:
        """Return False: files do not change."""
        return False

    def gather(self, window: Window) -> float:  # noqa: ARG002 - part of the port
        """Return at once: files do not change."""
        return 0.0

    def acknowledge(self) -> tuple[HandledChanges, ...]:
        """Return nothing: files do not change."""
        return ()

    def taint_node(self, node: NodeName, taint: Taint) -> bool:  # noqa: ARG002 - part of the port
        """Raise Refused."""
        _refuse(node)

    def untaint_node(self, node: NodeName, key: str) -> bool:  # noqa: ARG002 - part of the port
        """Raise Refused."""
        _refuse(node)

    def annotate_node(
        self,
        node: NodeName,
        annotations: Mapping[str, str | None],  # noqa: ARG002 - part of the port
    ) -> None:
        """Raise Refused."""
        _refuse(node)

    def evict_pod(self, pod: PodKey, grace_seconds: int) -> bool:  # noqa: ARG002 - part of the port
        """Raise Refused."""
        _refuse(str(pod))

    def delete_pod(
        self,
        pod: PodKey,
        grace_seconds: int,  # noqa: ARG002 - part of the port
    ) -> bool:
        """Raise Refused."""
        _refuse(str(pod))

    def counted_pods_on(self, node: NodeName) -> tuple[PodKey, ...]:
        """Return the pods in the files that count on the node."""
        return tuple(pod.key for pod in self._state.pods if pod.node_name == node and counts(pod))

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the files."""
        return self._state.nodes

    def delete_node(self, node: NodeName, uid: str) -> bool:  # noqa: ARG002 - part of the port
        """Raise Refused."""
        _refuse(node)

    def remember(self, annotations: Mapping[str, str | None]) -> None:  # noqa: ARG002 - part of the port
        """Raise Refused."""
        _refuse("Lease fleet-reconciler")

    def close(self) -> None:
        """Do nothing: nothing is open."""


def _refuse(where: str) -> NoReturn:
    raise Refused(where, "this cluster was read from files, which cannot be changed")
