"""StatefulSets: pods with fixed names, in order, and a claim each per template."""

from collections.abc import Hashable, Iterable
from typing import cast

import orjson

from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
)
from reconciler.sandbox.cluster.objects.status import JsonObject
from reconciler.sandbox.cluster.objects.store import Change, Entry, Key
from reconciler.sandbox.cluster.owned import (
    available_in,
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


class StatefulSetController:
    """Creates from the lowest ordinal, deletes and updates from the highest."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def observe(self, change: Change) -> Iterable[Key]:
        """Return the set itself, or the one that owns the pod."""
        if change.entry.resource is STATEFUL_SETS:
            return [change.entry.key]
        if change.entry.resource is PODS:
            key = owner_key(change.entry, STATEFUL_SETS)
            return [key] if key else []
        return []

    def reconcile(self, key: Hashable) -> float | None:
        """Do one step towards the spec, and write the status."""
        entry = self._api.store.find(STATEFUL_SETS, cast("Key", key))
        if entry is None:
            return None
        revision = template_hash(entry)
        pods = {_ordinal(pod): pod for pod in owned(self._api, entry, PODS)}
        if not is_going(entry) and not self._step_up(entry, pods, revision):
            self._step_down(entry, pods, revision)
        return self._report(entry, revision)

    def _step_up(self, entry: Entry, pods: dict[int, Entry], revision: str) -> bool:
        """Create missing pods; return True while a lower one is not Ready yet."""
        parallel = entry.body["spec"]["podManagementPolicy"] == "Parallel"
        for ordinal in range(int(entry.body["spec"]["replicas"])):
            pod = pods.get(ordinal)
            if pod is not None and is_finished(pod) and not is_going(pod):
                delete_pod(self._api, pod)  # a finished pod is replaced under its name
            if pod is None:
                self._create(entry, ordinal, revision)
            if not parallel and (pod is None or is_going(pod) or not is_ready(pod)):
                return True
        return False

    def _create(self, entry: Entry, ordinal: int, revision: str) -> None:
        name = f"{entry.key[1]}-{ordinal}"
        template = entry.body["spec"]["template"]
        labels = {
            **(template["metadata"].get("labels") or {}),
            "apps.kubernetes.io/pod-index": str(ordinal),
            "statefulset.kubernetes.io/pod-name": name,
            _REVISION: revision,
        }
        body = pod_from_template(entry, template, name=name, labels=labels)
        body["metadata"].pop("generateName")
        body["spec"]["hostname"] = name
        for claim in entry.body["spec"].get("volumeClaimTemplates") or ():
            self._claim(entry, body, claim, f"{claim['metadata']['name']}-{name}")
        create_pod(self._api, entry, body)

    def _claim(self, entry: Entry, pod: JsonObject, claim: JsonObject, name: str) -> None:
        volumes = [
            v for v in pod["spec"].get("volumes") or () if v["name"] != claim["metadata"]["name"]
        ]
        reference = {"claimName": name}
        volumes.append({"name": claim["metadata"]["name"], "persistentVolumeClaim": reference})
        pod["spec"]["volumes"] = volumes
        if self._api.store.find(PERSISTENT_VOLUME_CLAIMS, (entry.key[0], name)) is None:
            body: JsonObject = {
                "metadata": {"name": name, "labels": claim["metadata"].get("labels") or {}},
                "spec": orjson.loads(orjson.dumps(claim["spec"])),
            }
            self._api.create(PERSISTENT_VOLUME_CLAIMS, entry.key[0], body)

    def _step_down(self, entry: Entry, pods: dict[int, Entry], revision: str) -> None:
        """Delete surplus pods first, then one of an older template, highest ordinal first."""
        spec = entry.body["spec"]
        if (
            any(is_going(pod) for pod in pods.values())
            and spec["podManagementPolicy"] != "Parallel"
        ):
            return
        surplus = sorted((n for n in pods if n >= int(spec["replicas"])), reverse=True)
        if surplus:
            parallel = spec["podManagementPolicy"] == "Parallel"
            for ordinal in surplus if parallel else surplus[:1]:
                delete_pod(self._api, pods[ordinal])
            return
        if spec["updateStrategy"]["type"] != "RollingUpdate":
            return
        partition = int((spec["updateStrategy"].get("rollingUpdate") or {}).get("partition") or 0)
        for ordinal in sorted((n for n in pods if n >= partition), reverse=True):
            labels = pods[ordinal].body["metadata"].get("labels") or {}
            if labels.get(_REVISION) != revision:
                delete_pod(self._api, pods[ordinal])
                return
            if not is_ready(pods[ordinal]):
                return

    def _report(self, entry: Entry, revision: str) -> float | None:
        pods = [pod for pod in owned(self._api, entry, PODS) if not is_going(pod)]
        wait = int(entry.body["spec"].get("minReadySeconds") or 0)
        delays = [available_in(self._api, pod, wait) for pod in pods]
        updated = sum(
            (pod.body["metadata"].get("labels") or {}).get(_REVISION) == revision for pod in pods
        )
        status: JsonObject = {
            "replicas": len(pods),
            "readyReplicas": sum(is_ready(pod) for pod in pods),
            "availableReplicas": sum(delay == 0 for delay in delays),
            "currentReplicas": updated,
            "updatedReplicas": updated,
            "currentRevision": f"{entry.key[1]}-{revision}",
            "updateRevision": f"{entry.key[1]}-{revision}",
            "observedGeneration": entry.body["metadata"]["generation"],
            "collisionCount": 0,
        }

        def change(body: JsonObject) -> None:
            body["status"] = status

        self._api.mutate(STATEFUL_SETS, entry.key, change, subresource="status")
        return min((delay for delay in delays if delay), default=None)


def _ordinal(pod: Entry) -> int:
    number = pod.key[1].rpartition("-")[2]
    return int(number) if number.isdigit() else -1
