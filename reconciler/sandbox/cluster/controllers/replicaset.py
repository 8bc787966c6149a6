"""ReplicaSets: as many pods of a template as the spec says."""

from collections.abc import Hashable, Iterable
from typing import cast

from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.resources import PODS, REPLICA_SETS
from reconciler.sandbox.cluster.objects.selectors import labels_of, selector_of
from reconciler.sandbox.cluster.objects.status import JsonObject
from reconciler.sandbox.cluster.objects.store import Change, Entry, Key
from reconciler.sandbox.cluster.owned import (
    available_in,
    create_pod,
    delete_pod,
    deletion_order,
    is_active,
    is_going,
    is_ready,
    owned,
    owner_key,
    pod_from_template,
)


class ReplicaSetController:
    """Creates and deletes pods; pods that it did not make are not adopted."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def observe(self, change: Change) -> Iterable[Key]:
        """Return the set itself, or the one that owns the pod."""
        if change.entry.resource is REPLICA_SETS:
            return [change.entry.key]
        if change.entry.resource is PODS:
            key = owner_key(change.entry, REPLICA_SETS)
            return [key] if key else []
        return []

    def reconcile(self, key: Hashable) -> float | None:
        """Correct the number of pods, then report it."""
        entry = self._api.store.find(REPLICA_SETS, cast("Key", key))
        if entry is None:
            return None
        pods = [pod for pod in owned(self._api, entry, PODS) if is_active(pod)]
        if not is_going(entry):
            self._scale(entry, pods)
        return self._report(entry)

    def _scale(self, entry: Entry, pods: list[Entry]) -> None:
        missing = int(entry.body["spec"]["replicas"]) - len(pods)
        for _ in range(missing):
            body = pod_from_template(entry, entry.body["spec"]["template"])
            if create_pod(self._api, entry, body) is None:
                return
        if missing < 0:
            for pod in deletion_order(pods)[:-missing]:
                delete_pod(self._api, pod)

    def _report(self, entry: Entry) -> float | None:
        pods = [pod for pod in owned(self._api, entry, PODS) if is_active(pod)]
        wait = int(entry.body["spec"].get("minReadySeconds") or 0)
        delays = [available_in(self._api, pod, wait) for pod in pods]
        template = entry.body["spec"]["template"]["metadata"].get("labels") or {}
        selector = selector_of({"matchLabels": template})
        status: JsonObject = {
            "replicas": len(pods),
            "fullyLabeledReplicas": sum(
                selector is not None and selector.matches(labels_of(pod.body)) for pod in pods
            ),
            "readyReplicas": sum(is_ready(pod) for pod in pods),
            "availableReplicas": sum(delay == 0 for delay in delays),
            "observedGeneration": entry.body["metadata"]["generation"],
        }

        def change(body: JsonObject) -> None:
            body["status"] = {k: v for k, v in status.items() if v or k == "replicas"}

        self._api.mutate(REPLICA_SETS, entry.key, change, subresource="status")
        return min((delay for delay in delays if delay), default=None)
