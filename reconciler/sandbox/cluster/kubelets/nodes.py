"""The kubelets as far as nodes are concerned: registration, conditions, heartbeats, leases."""

from collections.abc import Hashable, Iterable
from datetime import timedelta

from reconciler.sandbox.cluster.clock import format_micro_time, format_time, parse_time
from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.conditions import get_condition, set_condition
from reconciler.sandbox.cluster.objects.resources import LEASES, NODES
from reconciler.sandbox.cluster.objects.status import ApiError, JsonObject
from reconciler.sandbox.cluster.objects.store import Change, Entry
from reconciler.sandbox.cluster.owned import is_going
from reconciler.sandbox.cluster.settings import KUBELET, KUBELET_STOPPED, ClusterSettings

_LEASE_NAMESPACE = "kube-node-lease"
_LEASE_DURATION_SECONDS = 40
_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory"),
    ("DiskPressure", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "KubeletHasSufficientPID"),
)
_PLAIN_NODE = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "50Gi", "pods": "110"}
"""What a Node object without resources of its own offers."""


def is_kubelet_stopped(node: Entry) -> bool:
    """Return whether a node's kubelet does not answer any more."""
    annotations = node.body["metadata"].get("annotations") or {}
    return bool(annotations.get(KUBELET) == KUBELET_STOPPED)


class NodeKubelet:
    """Reports nodes: first conditions, heartbeats, and the Lease in kube-node-lease."""

    def __init__(self, api: Api, settings: ClusterSettings) -> None:
        self._api = api
        self._settings = settings

    def observe(self, change: Change) -> Iterable[str]:
        """Return nodes that join, and kubelets that stop or are back."""
        entry = change.entry
        if entry.resource is not NODES or change.type == "DELETED":
            return []
        before = change.before
        if before is None or is_kubelet_stopped(before) != is_kubelet_stopped(entry):
            return [entry.key[1]]
        unknown = (get_condition(entry.body, "Ready") or {}).get("status") == "Unknown"
        return [entry.key[1]] if unknown else []

    def reconcile(self, key: Hashable) -> float | None:
        """Register, renew, report."""
        node = self._api.store.find(NODES, ("", str(key)))
        if node is None or is_kubelet_stopped(node) or is_going(node):
            return None
        ready = get_condition(node.body, "Ready")
        if ready is None:
            created = parse_time(node.body["metadata"]["creationTimestamp"])
            due = created + timedelta(seconds=self._settings.node_ready_seconds)
            left = (due - self._api.now()).total_seconds()
            if left > 0 and self._settings.node_ready_seconds > 0:
                return left
        if ready is None or self._is_due(ready):
            self._report(node)
        self._renew_lease(node)
        return self._settings.lease_seconds

    def _is_due(self, ready: JsonObject) -> bool:
        if ready["status"] == "Unknown" or "lastHeartbeatTime" not in ready:
            return True
        last = parse_time(ready["lastHeartbeatTime"])
        return (self._api.now() - last).total_seconds() >= self._settings.heartbeat_seconds

    def _report(self, node: Entry) -> None:
        at = format_time(self._api.now())

        def change(body: JsonObject) -> None:
            status = body.setdefault("status", {})
            _fill_status(body)
            for condition in _conditions(status):
                set_condition(status, {**condition, "lastHeartbeatTime": at}, at)

        self._api.mutate(NODES, node.key, change, subresource="status")
        self._api.mutate(NODES, node.key, _fill_labels)

    def _renew_lease(self, node: Entry) -> None:
        name, renewed = node.key[1], format_micro_time(self._api.now())

        def change(body: JsonObject) -> None:
            body["spec"]["renewTime"] = renewed

        if self._api.mutate(LEASES, (_LEASE_NAMESPACE, name), change) is not None:
            return
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.uid}
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": _LEASE_DURATION_SECONDS,
            "renewTime": renewed,
        }
        body: JsonObject = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
        try:
            self._api.create(LEASES, _LEASE_NAMESPACE, body)
        except ApiError as error:
            if error.code != 404:
                raise  # 404: somebody deleted the namespace; nodes work without leases


def _conditions(status: JsonObject) -> list[JsonObject]:
    """Return conditions of a healthy node; a Ready that somebody set to False stays False."""
    found = [
        {"type": kind, "status": "False", "reason": reason, "message": reason}
        for kind, reason in _PRESSURES
    ]
    ready = get_condition({"status": status}, "Ready")
    if ready is not None and ready["status"] == "False":
        return [*found, {k: v for k, v in ready.items() if k != "lastTransitionTime"}]
    message = "kubelet is posting ready status"
    good = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": message}
    return [*found, good]


def _fill_status(body: JsonObject) -> None:
    status, name = body["status"], body["metadata"]["name"]
    labels = body["metadata"].get("labels") or {}
    if not status.get("capacity"):
        status["capacity"] = dict(status.get("allocatable") or _PLAIN_NODE)
    if not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    status["capacity"].setdefault("pods", "110")
    status["allocatable"].setdefault("pods", "110")
    status.setdefault(
        "addresses",
        [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
    )
    status.setdefault(
        "nodeInfo",
        {
            "architecture": labels.get("kubernetes.io/arch", "amd64"),
            "operatingSystem": "linux",
            "kubeletVersion": "v1.36.3+sandbox",
            "kubeProxyVersion": "",
            "containerRuntimeVersion": "sandbox://1",
            "osImage": "sandbox",
            "kernelVersion": "0",
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
        },
    )
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 10250}})


def _fill_labels(body: JsonObject) -> None:
    labels = body["metadata"].setdefault("labels", {})
    labels.setdefault("kubernetes.io/hostname", body["metadata"]["name"])
    labels.setdefault("kubernetes.io/os", "linux")
    labels.setdefault("kubernetes.io/arch", "amd64")
