"""The sandbox's kube-scheduler: the planner's own filters, LeastAllocated among what they allow.

There is no second implementation of a filter: what fits where is asked of the planner's
`Simulation`. Here are only the order of pods, the choice among nodes, preemption of pods with a
negative priority, and what is written back.
"""

import time
from collections.abc import Hashable, Iterable

import numpy as np

from reconciler.model.cluster import Pod
from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.preferences import Preferences
from reconciler.planner.placement.simulation import Simulation
from reconciler.sandbox.cluster.clock import format_time
from reconciler.sandbox.cluster.events import Recorder
from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.conditions import get_condition, set_condition
from reconciler.sandbox.cluster.objects.resources import PODS
from reconciler.sandbox.cluster.objects.status import ApiError, JsonObject
from reconciler.sandbox.cluster.objects.store import Change, Entry, Key
from reconciler.sandbox.cluster.owned import delete_pod
from reconciler.sandbox.cluster.scheduling.reasons import unschedulable_message
from reconciler.sandbox.cluster.scheduling.scoring import score_rows
from reconciler.sandbox.cluster.scheduling.view import SchedulerView
from reconciler.sandbox.cluster.scheduling.volumes import VolumeBinder

_NAME = "default-scheduler"
_CYCLE = "cycle"
_REST_FACTOR = 2.0
"""After a cycle the scheduler pauses this many times as long as the cycle took."""
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class Scheduler:
    """Binds pending pods, highest priority first, oldest first among equals."""

    def __init__(self, api: Api, recorder: Recorder, binder: VolumeBinder) -> None:
        self._api = api
        self._recorder = recorder
        self._binder = binder
        self._view = SchedulerView(api.store)
        self._waiting: dict[Key, None] = {}
        self._rest_until = 0.0

    def observe(self, change: Change) -> Iterable[str]:
        """Return a cycle for every change that could let a waiting pod be bound."""
        relevant = self._view.note(change)
        entry = change.entry
        if entry.resource is PODS:
            if change.type != "DELETED" and _wants_a_node(entry):
                if entry.key in self._waiting and not _lets_retry(change):
                    return []
                self._waiting[entry.key] = None
                return [_CYCLE]
            self._waiting.pop(entry.key, None)
            relevant = _frees_room(change)
        return [_CYCLE] if relevant and self._waiting else []

    def reconcile(self, key: Hashable) -> float | None:
        """Run one scheduling cycle over all waiting pods."""
        assert key == _CYCLE
        now = time.monotonic()
        if now < self._rest_until:
            return self._rest_until - now
        self._view.refresh()
        waiting = self._candidates()
        if waiting:
            self._schedule(waiting)
        spent = time.monotonic() - now
        self._rest_until = time.monotonic() + spent * _REST_FACTOR
        return None

    def _candidates(self) -> list[tuple[Entry, Pod]]:
        """Return waiting pods in the order in which they are scheduled."""
        found: list[tuple[Entry, Pod]] = []
        for key in list(self._waiting):
            entry = self._api.store.find(PODS, key)
            if entry is None or not _wants_a_node(entry):
                del self._waiting[key]
                continue
            if entry.body["spec"].get("schedulingGates"):
                self._report(entry, _GATED)
                continue
            pod = self._view.decode_pod(entry.raw)
            if pod is not None:
                found.append((entry, pod))
        return sorted(found, key=lambda item: _turn(*item))

    def _schedule(self, waiting: list[tuple[Entry, Pod]]) -> None:
        sim = self._view.simulation([pod for _, pod in waiting])
        preferences = Preferences(sim, self._view.nodes)
        refused: dict[int, str] = {}
        for entry, pod in waiting:
            pod_class = sim.table.of(pod, bound=False)
            if pod_class.number in refused:
                self._refuse(entry, refused[pod_class.number])
                continue
            row = self._choose(sim, pod_class, pod, preferences)
            if row is None:
                message = unschedulable_message(sim, pod_class)
                if sim.links(pod_class).plain:
                    refused[pod_class.number] = message
                self._refuse(entry, message)
                continue
            sim.place(pod_class, np.array([row]), np.array([1]))
            if (sim.free[row, pod_class.columns] < 0).any():
                self._preempt(sim, pod_class, entry, row)
            else:
                self._bind(entry, sim.names[row])

    @staticmethod
    def _choose(
        sim: Simulation, pod_class: PodClass, pod: Pod, preferences: Preferences
    ) -> int | None:
        """Return the best row that all filters allow; rows without preemption first."""
        room = sim.room(pod_class)
        if not len(room) or not (room > 0).any():
            return None
        columns = pod_class.columns
        free_now = (sim.free[:, columns] >= pod_class.requests[columns]).all(axis=1)
        allowed = room > 0
        if (allowed & free_now).any():
            allowed &= free_now
        if pod.nominated_node_name in sim.names:
            nominated = sim.names.index(str(pod.nominated_node_name))
            if allowed[nominated]:
                return nominated
        scores = np.where(allowed, score_rows(sim, pod_class, preferences), -np.inf)
        return int(scores.argmax())

    def _bind(self, entry: Entry, node: str) -> None:
        try:
            self._binder.bind(entry, node)
            bound = self._api.bind(entry.key, node)
        except ApiError:
            return  # it changed meanwhile; the change starts another cycle
        self._waiting.pop(entry.key, None)
        text = f"Successfully assigned {entry.key[0]}/{entry.key[1]} to {node}"
        self._recorder.record(bound, "Scheduled", text, component=_NAME)

    def _preempt(self, sim: Simulation, pod_class: PodClass, entry: Entry, row: int) -> None:
        """Make room on a node by deleting pods whose priority is negative, lowest first."""
        node = sim.names[row]
        pods = [
            pod for pod in self._api.store.pods_on(node) if pod.body["spec"].get("priority", 0) < 0
        ]
        lacking: IntArray = -sim.free[row, pod_class.columns]
        for victim in sorted(pods, key=lambda pod: pod.body["spec"]["priority"]):
            if not (lacking > 0).any():
                break
            decoded = self._view.decode_pod(victim.raw)
            if decoded is None:
                continue
            lacking = lacking - sim.table.of(decoded, bound=True).requests[pod_class.columns]
            text = f"Preempted by pod {entry.uid} on node {node}"
            self._recorder.record(victim, "Preempted", text, component=_NAME)
            delete_pod(self._api, victim)

        def change(body: JsonObject) -> None:
            body["status"]["nominatedNodeName"] = node

        self._api.mutate(PODS, entry.key, change, subresource="status")

    def _refuse(self, entry: Entry, message: str) -> None:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        if self._report(entry, condition):
            self._recorder.record(entry, "FailedScheduling", message, component=_NAME, warning=True)

    def _report(self, entry: Entry, condition: JsonObject) -> bool:
        """Write a PodScheduled condition; return whether it differs from the last one."""
        old = get_condition(entry.body, "PodScheduled") or {}
        if all(old.get(field) == value for field, value in condition.items()):
            return False
        at = format_time(self._api.now())

        def change(body: JsonObject) -> None:
            set_condition(body["status"], condition, at)

        return self._api.mutate(PODS, entry.key, change, subresource="status") is not None


def _turn(entry: Entry, pod: Pod) -> tuple[int, str, Key]:
    """Return the order: priority first, then age, then name."""
    return -pod.spec.priority, entry.body["metadata"]["creationTimestamp"], entry.key


def _wants_a_node(entry: Entry) -> bool:
    spec, metadata = entry.body["spec"], entry.body["metadata"]
    return (
        not spec.get("nodeName")
        and spec.get("schedulerName") == _NAME
        and entry.body["status"].get("phase") == "Pending"
        and "deletionTimestamp" not in metadata
    )


def _lets_retry(change: Change) -> bool:
    """Return whether spec or labels of a waiting pod changed; its own condition does not count."""
    before = change.before
    if before is None:
        return True
    old, new = before.body, change.entry.body
    return bool(
        old["spec"] != new["spec"] or old["metadata"].get("labels") != new["metadata"].get("labels")
    )


def _frees_room(change: Change) -> bool:
    """Return whether a bound pod was added, removed, finished or is being deleted."""
    if change.type != "MODIFIED" or change.before is None:
        return True
    old, new = change.before.body, change.entry.body
    moved = old["spec"].get("nodeName") != new["spec"].get("nodeName")
    ended = old["status"].get("phase") != new["status"].get("phase")
    ended &= new["status"].get("phase") in {"Succeeded", "Failed"}
    labels = old["metadata"].get("labels") != new["metadata"].get("labels")
    return bool(moved or ended or labels)
