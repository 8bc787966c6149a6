"""The changes that actions need, each bound to exactly the object that it was decided for."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reconciler.adapters.kubernetes.errors import (
    is_budget_refusal,
    of_status,
    retry_after_seconds,
    status_object,
)
from reconciler.adapters.kubernetes.kinds import leases_path, node_path, pod_path
from reconciler.adapters.kubernetes.leases import lease_object, make_lease
from reconciler.adapters.kubernetes.listing import page_of
from reconciler.adapters.kubernetes.namespace import LeaseHome
from reconciler.adapters.kubernetes.transport import MERGE_PATCH, Reply, Transport
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.counted_pods import counts
from reconciler.model.errors import Conflict, NotFound, PortError, Refused, Unavailable
from reconciler.model.ids import NodeName, PodKey
from reconciler.records.kubernetes import LEASE_NAME, ClusterObject, ObjectDecoder

ATTEMPTS_MAX = 5
"""How often a node may change during our write before we give up and observe again."""

RawTaints = list[dict[str, Any]]


class Verbs:
    """Changes over one transport.

    Args:
        transport: How to reach the server.
        home: Where the Lease `fleet-reconciler` is kept.
        version_of_node: Returns the version in which a node was seen last; empty: it has to be
            read.
    """

    def __init__(
        self,
        transport: Transport,
        home: LeaseHome,
        version_of_node: Callable[[NodeName], str] = lambda _: "",
    ) -> None:
        self._transport = transport
        self._home = home
        self._version_of_node = version_of_node

    def taint_node(self, node: NodeName, taint: Taint) -> bool:
        """Put the taint on the node; see ports.cluster."""
        wanted = {"key": taint.key, "value": taint.value, "effect": taint.effect}

        def with_taint(taints: RawTaints) -> RawTaints | None:
            if any(_parts(each) == wanted for each in taints):
                return None
            others = [
                each
                for each in taints
                if (each.get("key"), each.get("effect")) != (taint.key, taint.effect)
            ]
            return [*others, wanted]

        return self._change_taints(node, with_taint)

    def untaint_node(self, node: NodeName, key: str) -> bool:
        """Remove every taint with this key; see ports.cluster."""

        def without(taints: RawTaints) -> RawTaints | None:
            kept = [taint for taint in taints if taint.get("key") != key]
            return kept if len(kept) < len(taints) else None

        return self._change_taints(node, without)

    def _change_taints(
        self, node: NodeName, change: Callable[[RawTaints], RawTaints | None]
    ) -> bool:
        """Read, change, and write under the version that was read; retry after a conflict."""
        path = node_path(node)
        for attempt in range(1, ATTEMPTS_MAX + 1):
            found, metadata = self._read(path)
            taints = change(_taints_in(found, f"GET {path}"))
            if taints is None:
                return False
            version = metadata.get("resourceVersion")
            patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": taints}}
            try:
                self._transport.expect("PATCH", path, body=patch, content_type=MERGE_PATCH)
            except Conflict:
                if attempt == ATTEMPTS_MAX:
                    raise
                continue
            return True
        return False

    def annotate_node(self, node: NodeName, annotations: Mapping[str, str | None]) -> None:
        """Set annotations under the version that was seen last, then under the current one.

        See ports.cluster. Before each attempt it is checked that this process still leads: a write
        that a former leader had begun is refused when the node changed meanwhile, and then not
        retried.
        """
        path, version = node_path(node), self._version_of_node(node)
        for attempt in range(1, ATTEMPTS_MAX + 1):
            if not version:
                _, metadata = self._read(path)
                present = _mapping(metadata.get("annotations") or {}, f"GET {path}")
                if all(present.get(key) == value for key, value in annotations.items()):
                    return
                version = metadata.get("resourceVersion") or ""
            patch = {"metadata": {"resourceVersion": version, "annotations": dict(annotations)}}
            try:
                self._transport.expect("PATCH", path, body=patch, content_type=MERGE_PATCH)
            except Conflict:
                if attempt == ATTEMPTS_MAX:
                    raise
                version = ""
                continue
            return

    def evict_pod(self, pod: PodKey, grace_seconds: int) -> bool:
        """Ask the Eviction API; see ports.cluster."""
        path = pod_path(pod.namespace, pod.name)
        if not self._lives(path, pod):
            return False
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": pod.namespace, "name": pod.name},
            "deleteOptions": _delete_options(pod, grace_seconds),
        }
        reply = self._transport.request("POST", f"{path}/eviction", body=eviction)
        if reply.status == 404:
            return False
        if reply.status == 409 and not self._lives(path, pod):  # another pod has the name by now
            return False
        if not 200 <= reply.status < 300:
            raise _eviction_refusal(f"pod {pod}", reply)
        return True

    def _lives(self, path: str, pod: PodKey) -> bool:
        """Return whether exactly this pod exists and is not being deleted already."""
        try:
            _, metadata = self._read(path)
        except NotFound:
            return False
        same = not pod.uid or metadata.get("uid") == pod.uid
        return same and not metadata.get("deletionTimestamp")

    def _read(self, path: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the current object and its metadata.

        Raises:
            PortError: It does not exist, or the answer is not a Kubernetes object.
        """
        found = self._transport.expect("GET", path).json()
        metadata = _mapping(found.get("metadata"), f"GET {path}")
        if not metadata.get("uid"):  # each stored object has one; a Status has none
            raise Unavailable(f"GET {path}", "answered no object of Kubernetes")
        return found, metadata

    def _list(self, kind: str, path: str, query: Mapping[str, str]) -> Iterator[ClusterObject]:
        """Yield the objects of a current list, read in one piece.

        Raises:
            PortError: There is no answer, or it is not the whole list: an object could be missing.
        """
        reply = self._transport.expect("GET", path, query=query)
        page = page_of(reply, kind)
        if page.continue_token:
            raise Unavailable(reply.where, "answered a part of the list only")
        decoder = ObjectDecoder()
        for decoded in (decoder.decode(kind, raw) for raw in page.items):
            if decoded is None:
                continue
            if decoded.value is None:
                detail = decoded.ignored.detail if decoded.ignored else kind
                raise Unavailable(reply.where, f"the list cannot be read: {detail}"[:300])
            yield decoded.value

    def delete_pod(self, pod: PodKey, grace_seconds: int) -> bool:
        """Delete regardless of any budget; see ports.cluster."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", **_delete_options(pod, grace_seconds)}
        path = pod_path(pod.namespace, pod.name)
        try:
            self._transport.expect("DELETE", path, body=body)
        except NotFound:
            return False
        except Conflict:
            if self._lives(path, pod):
                raise
            return False
        return True

    def counted_pods_on(self, node: NodeName) -> tuple[PodKey, ...]:
        """List the node's pods now; see ports.cluster. Unreadable ones count."""
        pods = self._list("Pod", "/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
        return tuple(sorted(pod.key for pod in pods if isinstance(pod, Pod) and counts(pod)))

    def nodes(self) -> tuple[Node, ...]:
        """List the nodes now, in one piece; see ports.cluster. Seldom needed."""
        found = self._list("Node", "/api/v1/nodes", {})
        return tuple(node for node in found if isinstance(node, Node))

    def delete_node(self, node: NodeName, uid: str) -> bool:
        """Delete the Node object; see ports.cluster."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", **_only(uid)}
        try:
            self._transport.expect("DELETE", node_path(node), body=body)
        except (NotFound, Conflict):
            return False
        return True

    def remember(self, annotations: Mapping[str, str | None]) -> None:
        """Annotate the Lease, which is created when there is none; see ports.cluster."""
        path = leases_path(self._home.namespace)
        patch = {"metadata": {"annotations": dict(annotations)}}
        try:
            self._annotate_lease(path, patch)
        except NotFound:
            kept = {key: value for key, value in annotations.items() if value is not None}
            try:
                make_lease(
                    self._transport, self._home, lease_object(metadata={"annotations": kept})
                )
            except Conflict:  # somebody else created it in the meantime
                self._annotate_lease(path, patch)

    def _annotate_lease(self, path: str, patch: Mapping[str, Any]) -> None:
        self._transport.expect(
            "PATCH", f"{path}/{LEASE_NAME}", body=patch, content_type=MERGE_PATCH
        )


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    """Return a part of an answer that has to be an object; raise Unavailable otherwise."""
    if not isinstance(value, dict):
        raise Unavailable(where, "answered no object of Kubernetes")
    return value


def _taints_in(node: Mapping[str, Any], where: str) -> RawTaints:
    """Return a node's current taints; raise Unavailable when they are not a list of objects."""
    taints = _mapping(node.get("spec") or {}, where).get("taints") or []
    if not isinstance(taints, list) or not all(isinstance(taint, dict) for taint in taints):
        raise Unavailable(where, "answered no object of Kubernetes")
    return taints


def _parts(taint: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "key": taint.get("key"),
        "value": taint.get("value") or "",
        "effect": taint.get("effect"),
    }


def _delete_options(pod: PodKey, grace_seconds: int) -> dict[str, Any]:
    return {"gracePeriodSeconds": grace_seconds, **_only(pod.uid)}


def _only(uid: str) -> dict[str, Any]:
    """Return the DeleteOptions that protect another object of the name."""
    return {"preconditions": {"uid": uid}} if uid else {}


def _eviction_refusal(where: str, reply: Reply) -> PortError:
    """Return the error for a refused eviction; one by a budget is retried later only."""
    answer = status_object(reply.body)
    text = str(answer.get("message", ""))
    if reply.status == 429 and is_budget_refusal(answer):
        return Refused(where, text, retry_after_seconds(answer, reply.headers))
    if reply.status == 500 and "more than one PodDisruptionBudget" in text:
        return Refused(where, text)
    return of_status(where, reply.status, reply.body, reply.headers, changing=True)
