"""DaemonSets: one pod on every node that the template's affinity and tolerations allow.

Source: pkg/controller/daemon of Kubernetes 1.36: the pods are pinned by node affinity on
metadata.name and placed by the scheduler. The planner's filters say which nodes are allowed.
"""

from collections.abc import Hashable, Iterable
from typing import cast

import orjson

from reconciler.model.cluster import Node, PodSpec
from reconciler.planner.placement.filters import node_affinity, taints
from reconciler.planner.placement.kinds import NodeKind, with_zone_aliases
from reconciler.records.kubernetes import ObjectDecoder
from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.resources import DAEMON_SETS, NODES, PODS
from reconciler.sandbox.cluster.objects.status import JsonObject
from reconciler.sandbox.cluster.objects.store import Change, Entry, Key
from reconciler.sandbox.cluster.owned import (
    create_pod,
    delete_pod,
    is_finished,
    is_going,
    is_ready,
    owned,
    owner_key,
    pod_from_template,
    template_hash,
)

_REVISION = "controller-revision-hash"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""What every daemon pod tolerates in addition."""


class DaemonSetController:
    """Creates a pod per eligible node and replaces pods of an older template one by one."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._decoder = ObjectDecoder()

    def observe(self, change: Change) -> Iterable[Key]:
        """Return the set itself, the owner of a pod, and every set when a node changes in kind."""
        entry = change.entry
        if entry.resource is DAEMON_SETS:
            return [entry.key]
        if entry.resource is PODS:
            key = owner_key(entry, DAEMON_SETS)
            return [key] if key else []
        if entry.resource is NODES and _matters(change):
            return [each.key for each in self._api.store.objects(DAEMON_SETS)[0]]
        return []

    def reconcile(self, key: Hashable) -> float | None:
        """Bring one set to its spec."""
        entry = self._api.store.find(DAEMON_SETS, cast("Key", key))
        if entry is None:
            return None
        nodes = self._eligible(entry)
        pods: dict[str, list[Entry]] = {}
        for pod in owned(self._api, entry, PODS):
            pods.setdefault(_node_of(pod), []).append(pod)
        revision = template_hash(entry)
        if not is_going(entry):
            self._place(entry, nodes, pods, revision)
            self._update(entry, nodes, pods, revision)
        self._report(entry, nodes, revision)
        return None

    def _eligible(self, entry: Entry) -> list[str]:
        spec = self._spec(entry)
        if spec is None:
            return []
        found = []
        for node_entry in self._api.store.objects(NODES)[0]:
            decoded = self._decoder.decode(NODES.kind, node_entry.raw)
            node = decoded.value if decoded else None
            if isinstance(node, Node) and _is_eligible(spec, node):
                found.append(str(node.name))
        return found

    def _spec(self, entry: Entry) -> PodSpec | None:
        body = pod_from_template(entry, entry.body["spec"]["template"], name="template")
        body["metadata"].pop("generateName")
        _tolerate(body["spec"])
        decoded = self._decoder.decode(PODS.kind, orjson.dumps(body))
        return getattr(decoded.value, "spec", None) if decoded else None

    def _place(
        self, entry: Entry, nodes: list[str], pods: dict[str, list[Entry]], revision: str
    ) -> None:
        for node in nodes:
            present = pods.get(node, [])
            for pod in present:
                if is_finished(pod):
                    delete_pod(self._api, pod)
            if not present:
                create_pod(self._api, entry, _pod(entry, node, revision))
        for node in set(pods) - set(nodes):
            for pod in pods[node]:
                delete_pod(self._api, pod)

    def _update(
        self, entry: Entry, nodes: list[str], pods: dict[str, list[Entry]], revision: str
    ) -> None:
        """Update as RollingUpdate: replace old pods while at most maxUnavailable are missing."""
        strategy = entry.body["spec"]["updateStrategy"]
        if strategy["type"] != "RollingUpdate":
            return
        limit = strategy["rollingUpdate"]["maxUnavailable"]
        most = limit if isinstance(limit, int) else max(1, len(nodes) * int(limit[:-1]) // 100)
        present = [pod for node in nodes for pod in pods.get(node, [])]
        unavailable = len(nodes) - sum(is_ready(pod) and not is_going(pod) for pod in present)
        for pod in present:
            old = (pod.body["metadata"].get("labels") or {}).get(_REVISION) != revision
            if old and not is_going(pod) and (unavailable < most or not is_ready(pod)):
                unavailable += is_ready(pod)
                delete_pod(self._api, pod)

    def _report(self, entry: Entry, nodes: list[str], revision: str) -> None:
        pods = [pod for pod in owned(self._api, entry, PODS) if not is_going(pod)]
        on_nodes = [pod for pod in pods if _node_of(pod) in nodes]
        ready = sum(is_ready(pod) for pod in on_nodes)
        status: JsonObject = {
            "currentNumberScheduled": len(on_nodes),
            "desiredNumberScheduled": len(nodes),
            "numberAvailable": ready,
            "numberMisscheduled": len(pods) - len(on_nodes),
            "numberReady": ready,
            "numberUnavailable": len(nodes) - ready,
            "observedGeneration": entry.body["metadata"]["generation"],
            "updatedNumberScheduled": sum(
                (pod.body["metadata"].get("labels") or {}).get(_REVISION) == revision
                for pod in on_nodes
            ),
        }

        def change(body: JsonObject) -> None:
            body["status"] = status

        self._api.mutate(DAEMON_SETS, entry.key, change, subresource="status")


def _is_eligible(spec: PodSpec, node: Node) -> bool:
    kind = NodeKind(variants=(with_zone_aliases(node.labels),), name=node.name)
    refused = node_affinity.refuses(spec.node_selector, spec.node_affinity, kind)
    return not refused and taints.untolerated(node.taints, spec.tolerations) is None


def _matters(change: Change) -> bool:
    """Return whether a node was added or removed, or has other labels or taints."""
    if change.before is None or change.type == "DELETED":
        return True
    old, new = change.before.body, change.entry.body
    return bool(
        old["spec"] != new["spec"] or old["metadata"].get("labels") != new["metadata"].get("labels")
    )


def _tolerate(spec: JsonObject) -> None:
    tolerations = spec.setdefault("tolerations", [])
    for key, effect in _TOLERATED:
        tolerations.append({"key": key, "operator": "Exists", "effect": effect})
    if spec.get("hostNetwork"):
        key = "node.kubernetes.io/network-unavailable"
        tolerations.append({"key": key, "operator": "Exists", "effect": "NoSchedule"})


def _pod(entry: Entry, node: str, revision: str) -> JsonObject:
    template = entry.body["spec"]["template"]
    labels = {**(template["metadata"].get("labels") or {}), _REVISION: revision}
    body = pod_from_template(entry, template, labels=labels)
    _tolerate(body["spec"])
    pinned = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = body["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [{**term, "matchFields": [pinned]} for term in terms]
    return body


def _node_of(pod: Entry) -> str:
    """Return the node that a daemon pod is on, or is pinned to."""
    spec = pod.body["spec"]
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return ""
