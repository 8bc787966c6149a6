"""Deployments: one ReplicaSet per template, rolled from the old ones to the new one."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import orjson

from reconciler.model.int_or_string import scaled_value
from reconciler.sandbox.cluster.clock import format_time
from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.conditions import get_condition, set_condition
from reconciler.sandbox.cluster.objects.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from reconciler.sandbox.cluster.objects.status import JsonObject
from reconciler.sandbox.cluster.objects.store import Change, Entry, Key
from reconciler.sandbox.cluster.owned import (
    is_finished,
    is_going,
    owned,
    owner_key,
    owner_reference,
    template_hash,
)

_REVISION = "deployment.kubernetes.io/revision"
_HASH_LABEL = "pod-template-hash"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rollout:
    deployment: Entry
    current: Entry
    """The ReplicaSet of the current template."""
    older: list[Entry]

    @property
    def replicas(self) -> int:
        return int(self.deployment.body["spec"]["replicas"])

    def bounds(self) -> tuple[int, int]:
        """Return the maximum of pods at once, and the minimum of available pods."""
        rolling = self.deployment.body["spec"]["strategy"].get("rollingUpdate") or {}
        surge = scaled_value(rolling.get("maxSurge", 0), self.replicas, up=True)
        missing = scaled_value(rolling.get("maxUnavailable", 0), self.replicas, up=False)
        if not surge and not missing:
            missing = 1
        return self.replicas + surge, self.replicas - missing


def _number(entry: Entry, field: str) -> int:
    return int((entry.body.get("status") or {}).get(field, 0))


def _wanted(entry: Entry) -> int:
    return int(entry.body["spec"]["replicas"])


class DeploymentController:
    """Rolls templates out and reports progress."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def observe(self, change: Change) -> Iterable[Key]:
        """Return the deployment itself, the owner of a ReplicaSet, or of a deleted pod."""
        if change.entry.resource is DEPLOYMENTS:
            return [change.entry.key]
        if change.entry.resource is REPLICA_SETS:
            key = owner_key(change.entry, DEPLOYMENTS)
            return [key] if key else []
        if change.entry.resource is PODS and change.type == "DELETED":
            return self._owner_of_pod(change.entry)
        return []

    def _owner_of_pod(self, pod: Entry) -> list[Key]:
        """Return the owner of a pod: Recreate waits for the last old pod."""
        key = owner_key(pod, REPLICA_SETS)
        owner = self._api.store.find(REPLICA_SETS, key) if key else None
        deployment = owner_key(owner, DEPLOYMENTS) if owner else None
        return [deployment] if deployment else []

    def reconcile(self, key: Hashable) -> float | None:
        """Do one step of a rollout, and write the status."""
        entry = self._api.store.find(DEPLOYMENTS, cast("Key", key))
        if entry is None or is_going(entry):
            return None
        sets = owned(self._api, entry, REPLICA_SETS)
        digest = template_hash(entry)
        current = next((s for s in sets if s.key[1] == f"{entry.key[1]}-{digest}"), None)
        if current is None:
            if entry.body["spec"].get("paused"):
                self._report(entry, None, sets)
                return None
            current = self._create(entry, digest, len(sets))
        older = [s for s in sets if s.key != current.key]
        self._roll(_Rollout(deployment=entry, current=current, older=older))
        self._forget(entry, older)
        self._report(entry, current, older)
        return None

    def _create(self, entry: Entry, digest: str, revisions: int) -> Entry:
        spec = entry.body["spec"]
        template: JsonObject = orjson.loads(orjson.dumps(spec["template"]))
        labels = template["metadata"].setdefault("labels", {})
        labels[_HASH_LABEL] = digest
        selector = dict(spec["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _HASH_LABEL: digest}
        revision = str(revisions + 1)
        body: JsonObject = {
            "metadata": {
                "name": f"{entry.key[1]}-{digest}",
                "labels": dict(labels),
                "annotations": {_REVISION: revision},
                "ownerReferences": [owner_reference(entry)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        if spec.get("minReadySeconds"):
            body["spec"]["minReadySeconds"] = spec["minReadySeconds"]

        def annotate(deployment: JsonObject) -> None:
            deployment["metadata"].setdefault("annotations", {})[_REVISION] = revision

        self._api.mutate(DEPLOYMENTS, entry.key, annotate)
        return self._api.create(REPLICA_SETS, entry.key[0], body)

    def _roll(self, rollout: _Rollout) -> None:
        paused = rollout.deployment.body["spec"].get("paused")
        if rollout.deployment.body["spec"]["strategy"]["type"] == "Recreate":
            self._recreate(rollout)
        elif paused or not any(_wanted(old) or _number(old, "replicas") for old in rollout.older):
            self._scale(rollout.current, rollout.replicas)
        else:
            self._roll_step(rollout)

    def _recreate(self, rollout: _Rollout) -> None:
        for old in rollout.older:
            self._scale(old, 0)
        pods = [pod for old in rollout.older for pod in owned(self._api, old, PODS)]
        if not any(not is_finished(pod) for pod in pods):
            self._scale(rollout.current, rollout.replicas)

    def _roll_step(self, rollout: _Rollout) -> None:
        """Add pods as far as the surge allows, remove as far as availability allows."""
        pods_max, available_min = rollout.bounds()
        total = _wanted(rollout.current) + sum(_wanted(old) for old in rollout.older)
        room = max(0, pods_max - total)
        wanted = min(rollout.replicas, _wanted(rollout.current) + room)
        self._scale(rollout.current, wanted)
        unready = _wanted(rollout.current) - _number(rollout.current, "availableReplicas")
        surplus = total - available_min - max(0, unready)
        surplus -= self._drop_unavailable(rollout.older, surplus)
        available = sum(_number(s, "availableReplicas") for s in [rollout.current, *rollout.older])
        surplus = min(surplus, available - available_min)
        for old in rollout.older:
            step = min(_number(old, "availableReplicas"), _wanted(old), max(0, surplus))
            if step:
                self._scale(old, self._wanted_now(old) - step)
                surplus -= step

    def _drop_unavailable(self, older: list[Entry], surplus: int) -> int:
        """Delete old pods that are not ready first; return how many."""
        dropped = 0
        for old in older:
            idle = max(0, _wanted(old) - _number(old, "availableReplicas"))
            step = min(idle, max(0, surplus - dropped))
            if step:
                self._scale(old, _wanted(old) - step)
                dropped += step
        return dropped

    def _wanted_now(self, entry: Entry) -> int:
        return _wanted(self._api.store.get(REPLICA_SETS, entry.key))

    def _scale(self, entry: Entry, replicas: int) -> None:
        def change(body: JsonObject) -> None:
            body["spec"]["replicas"] = replicas

        if self._wanted_now(entry) != replicas:
            self._api.mutate(REPLICA_SETS, entry.key, change)

    def _forget(self, entry: Entry, older: list[Entry]) -> None:
        """Keep revisionHistoryLimit empty old sets."""
        empty = [s for s in older if not _wanted(s) and not _number(s, "replicas")]
        for old in empty[: max(0, len(empty) - int(entry.body["spec"]["revisionHistoryLimit"]))]:
            self._api.delete(REPLICA_SETS, old.key)

    def _report(self, entry: Entry, current: Entry | None, older: list[Entry]) -> None:
        sets = [self._api.store.find(REPLICA_SETS, s.key) for s in [*older, *_some(current)]]
        present = [s for s in sets if s is not None]
        updated = self._api.store.find(REPLICA_SETS, current.key) if current else None
        replicas = int(entry.body["spec"]["replicas"])
        totals = {
            field: sum(_number(s, field) for s in present)
            for field in ("replicas", "readyReplicas", "availableReplicas")
        }
        status: dict[str, Any] = {
            **totals,
            "updatedReplicas": _number(updated, "replicas") if updated else 0,
            "unavailableReplicas": max(0, replicas - totals["availableReplicas"]),
        }
        at = format_time(self._api.now())
        done = updated is not None and _number(updated, "availableReplicas") >= replicas
        minimum = self._fewest(entry)

        def change(body: JsonObject) -> None:
            conditions = (body.get("status") or {}).get("conditions") or []
            body["status"] = {k: v for k, v in status.items() if v} | {"conditions": conditions}
            body["status"]["observedGeneration"] = body["metadata"]["generation"]
            for condition in _conditions(
                available=totals["availableReplicas"] >= minimum, done=done
            ):
                set_condition(body["status"], {**condition, "lastUpdateTime": at}, at)

        before = entry.body.get("status") or {}
        if not _same(before, status, done=done, body=entry.body):
            self._api.mutate(DEPLOYMENTS, entry.key, change, subresource="status")

    @staticmethod
    def _fewest(entry: Entry) -> int:
        spec = entry.body["spec"]
        rolling = spec["strategy"].get("rollingUpdate") or {}
        return int(spec["replicas"]) - scaled_value(
            rolling.get("maxUnavailable", 0), int(spec["replicas"]), up=False
        )


def _some(entry: Entry | None) -> list[Entry]:
    return [] if entry is None else [entry]


def _conditions(*, available: bool, done: bool) -> list[JsonObject]:
    enough = "MinimumReplicasAvailable" if available else "MinimumReplicasUnavailable"
    progress = "NewReplicaSetAvailable" if done else "ReplicaSetUpdated"
    return [
        {"type": "Available", "status": str(available), "reason": enough, "message": ""},
        {"type": "Progressing", "status": "True", "reason": progress, "message": ""},
    ]


def _same(before: JsonObject, status: dict[str, Any], *, done: bool, body: JsonObject) -> bool:
    """Return whether a status already equals the new one, apart from times."""
    if before.get("observedGeneration") != body["metadata"]["generation"]:
        return False
    if any(before.get(field, 0) != value for field, value in status.items()):
        return False
    progress = get_condition({"status": before}, "Progressing") or {}
    return (progress.get("reason") == "NewReplicaSetAvailable") is done
