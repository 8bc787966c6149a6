"""Node lifecycle: silence becomes Unknown, conditions become taints, taints evict pods.

Source: pkg/controller/nodelifecycle, tainteviction and podgc of Kubernetes 1.36.
"""

from collections.abc import Hashable, Iterable
from datetime import datetime, timedelta

from reconciler.model.cluster import Taint, Toleration
from reconciler.sandbox.cluster.clock import format_time, parse_time
from reconciler.sandbox.cluster.events import Recorder
from reconciler.sandbox.cluster.kubelets.nodes import is_kubelet_stopped
from reconciler.sandbox.cluster.objects.admission import NOT_READY_TAINT
from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.conditions import get_condition, set_condition
from reconciler.sandbox.cluster.objects.resources import NODES, PODS
from reconciler.sandbox.cluster.objects.status import JsonObject
from reconciler.sandbox.cluster.objects.store import Change, Entry
from reconciler.sandbox.cluster.owned import is_finished, is_going
from reconciler.sandbox.cluster.settings import ClusterSettings

_UNREACHABLE = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_MANAGED = {NOT_READY_TAINT, _UNREACHABLE, _UNSCHEDULABLE}
_COMPONENT = "node-controller"


class NodeLifecycle:
    """Updates each node's Ready condition, and applies its taints to its pods."""

    def __init__(self, api: Api, settings: ClusterSettings, recorder: Recorder) -> None:
        self._api = api
        self._settings = settings
        self._recorder = recorder
        self._silent_since: dict[str, datetime] = {}
        self._gone_since: dict[str, datetime] = {}

    def observe(self, change: Change) -> Iterable[str]:
        """Return nodes that changed, and nodes that pods were bound to."""
        if change.entry.resource is NODES:
            return [change.entry.key[1]]
        if change.entry.resource is PODS and change.type != "DELETED":
            node = change.entry.body["spec"].get("nodeName")
            return [node] if node else []
        return []

    def reconcile(self, key: Hashable) -> float | None:
        """Settle one node; return the seconds until a grace period of it is over."""
        name = str(key)
        node = self._api.store.find(NODES, ("", name))
        if node is None:
            self._silent_since.pop(name, None)
            return self._collect(name)
        silent = self._watch_silence(node)
        current = self._api.store.find(NODES, ("", name)) or node
        self._set_taints(current)
        current = self._api.store.find(NODES, ("", name)) or node
        delays = [delay for delay in (silent, self._evict(current)) if delay is not None]
        return min(delays, default=None)

    def _watch_silence(self, node: Entry) -> float | None:
        name = node.key[1]
        if not is_kubelet_stopped(node):
            self._silent_since.pop(name, None)
            return None
        since = self._silent_since.setdefault(name, self._api.now())
        due = since + timedelta(seconds=self._settings.node_monitor_grace_seconds)
        left = (due - self._api.now()).total_seconds()
        if left > 0:
            return left
        if (get_condition(node.body, "Ready") or {}).get("status") != "Unknown":
            self._mark_unknown(node)
        return None

    def _mark_unknown(self, node: Entry) -> None:
        at = format_time(self._api.now())
        message = "Kubelet stopped posting node status."

        def change(body: JsonObject) -> None:
            for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"):
                old = get_condition(body, kind) or {}
                condition = {"type": kind, "status": "Unknown", "reason": "NodeStatusUnknown"}
                condition["message"] = message
                condition["lastHeartbeatTime"] = old.get("lastHeartbeatTime", at)
                set_condition(body["status"], condition, at)

        self._api.mutate(NODES, node.key, change, subresource="status")
        text = f"Node {node.key[1]} status is now: NodeNotReady"
        self._recorder.record(node, "NodeNotReady", text, component=_COMPONENT)
        for pod in self._api.store.pods_on(node.key[1]):
            self._mark_pod(pod, at)

    def _mark_pod(self, pod: Entry, at: str) -> None:
        """Mark a pod on a silent node as not Ready."""
        if (get_condition(pod.body, "Ready") or {}).get("status") != "True":
            return

        def change(body: JsonObject) -> None:
            set_condition(body["status"], {"type": "Ready", "status": "False"}, at)

        self._api.mutate(PODS, pod.key, change, subresource="status")

    def _set_taints(self, node: Entry) -> None:
        ready = (get_condition(node.body, "Ready") or {}).get("status")
        wanted: list[JsonObject] = []
        if ready == "Unknown" or (ready is None and is_kubelet_stopped(node)):
            wanted = _both_effects(_UNREACHABLE)
        elif ready == "False":
            wanted = _both_effects(NOT_READY_TAINT)
        elif ready is None:
            wanted = [{"key": NOT_READY_TAINT, "effect": "NoSchedule"}]
        if node.body["spec"].get("unschedulable"):
            wanted.append({"key": _UNSCHEDULABLE, "effect": "NoSchedule"})
        present = node.body["spec"].get("taints") or []
        if _identities(t for t in present if t["key"] in _MANAGED) == _identities(wanted):
            return
        at = format_time(self._api.now())

        def change(body: JsonObject) -> None:
            kept = [t for t in body["spec"].get("taints") or () if t["key"] not in _MANAGED]
            body["spec"]["taints"] = [*kept, *({**taint, "timeAdded": at} for taint in wanted)]
            if not body["spec"]["taints"]:
                del body["spec"]["taints"]

        self._api.mutate(NODES, node.key, change)

    def _evict(self, node: Entry) -> float | None:
        """Delete the pods that do not tolerate a NoExecute taint, or not this long."""
        taints = [t for t in node.body["spec"].get("taints") or () if t["effect"] == "NoExecute"]
        if not taints:
            return None
        delays = []
        for pod in self._api.store.pods_on(node.key[1]):
            if is_going(pod) or is_finished(pod):
                continue
            left = self._tolerated_seconds(pod, taints)
            if left is None:
                continue
            if left > 0:
                delays.append(left)
            else:
                text = f"Marking for deletion Pod {pod.key[0]}/{pod.key[1]}"
                component = "taint-eviction-controller"
                self._recorder.record(pod, "TaintManagerEviction", text, component=component)
                self._api.delete(PODS, pod.key)
        return min(delays, default=None)

    def _tolerated_seconds(self, pod: Entry, taints: list[JsonObject]) -> float | None:
        """Return how long a pod may stay; None: without limit."""
        ends: list[float] = []
        for body in taints:
            taint = Taint(key=body["key"], value=body.get("value", ""), effect="NoExecute")
            matching = [
                t for t in pod.body["spec"].get("tolerations") or () if _tolerates(t, taint)
            ]
            if not matching:
                return 0.0
            limits = [t["tolerationSeconds"] for t in matching if "tolerationSeconds" in t]
            if limits:
                added = parse_time(body["timeAdded"]) if "timeAdded" in body else self._api.now()
                end = added + timedelta(seconds=min(limits))
                ends.append(max(0.0, (end - self._api.now()).total_seconds()))
        return min(ends, default=None)

    def _collect(self, name: str) -> float | None:
        """Fail and remove pods of a deleted node without waiting for anybody."""
        pods = self._api.store.pods_on(name)
        if not pods:
            return None
        if self._settings.pod_gc_seconds > 0:
            since = self._gone_since.setdefault(name, self._api.now())
            due = since + timedelta(seconds=self._settings.pod_gc_seconds)
            left = (due - self._api.now()).total_seconds()
            if left > 0:
                return left
            del self._gone_since[name]
        for pod in pods:
            if not is_finished(pod):
                self._fail(pod)
            self._api.delete(PODS, pod.key, {"gracePeriodSeconds": 0})
        return None

    def _fail(self, pod: Entry) -> None:
        at = format_time(self._api.now())
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
        }

        def change(body: JsonObject) -> None:
            body["status"]["phase"] = "Failed"
            set_condition(body["status"], condition, at)

        self._api.mutate(PODS, pod.key, change, subresource="status")


def _both_effects(key: str) -> list[JsonObject]:
    return [{"key": key, "effect": effect} for effect in ("NoSchedule", "NoExecute")]


def _identities(taints: Iterable[JsonObject]) -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in taints}


def _tolerates(toleration: JsonObject, taint: Taint) -> bool:
    return Toleration(
        key=toleration.get("key", ""),
        operator=toleration.get("operator", "Equal"),
        value=toleration.get("value", ""),
        effect=toleration.get("effect", ""),
    ).tolerates(taint)
