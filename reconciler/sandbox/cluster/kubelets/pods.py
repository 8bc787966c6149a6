"""The kubelets: they report the pods that are bound to their nodes.

Containers are simulated. A pod starts, runs for the time in its annotations or its command, ends
with a code, and stops when it is deleted. A node whose kubelet is stopped reports nothing.
"""

import itertools
from collections.abc import Hashable, Iterable
from datetime import datetime, timedelta
from typing import Any, cast

from reconciler.sandbox.cluster.clock import format_time, parse_time
from reconciler.sandbox.cluster.kubelets.nodes import is_kubelet_stopped
from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.conditions import set_condition
from reconciler.sandbox.cluster.objects.resources import JOBS, NODES, PODS
from reconciler.sandbox.cluster.objects.status import JsonObject
from reconciler.sandbox.cluster.objects.store import Change, Entry, Key
from reconciler.sandbox.cluster.owned import controller_of, is_finished, is_going
from reconciler.sandbox.cluster.settings import (
    DURATION,
    EXIT_CODE,
    TERMINATION,
    ClusterSettings,
)

_INSTANT = {"true", "false", "exit"}
"""Commands that end at once."""
_STARTED = "started"
_ASKED = "asked"
_RESTART_SECONDS_MAX = 300.0
_KILLED = 137
"""Exit code of a container that was killed when its grace period was over."""
_STOPPED = 143
"""Exit code of a container that ended on SIGTERM."""


def _annotation_seconds(pod: Entry, key: str) -> float | None:
    text = (pod.body["metadata"].get("annotations") or {}).get(key)
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:
        return None


def _command(pod: Entry) -> list[str]:
    """Return the words that the first container runs, with those of a shell's script."""
    container = pod.body["spec"]["containers"][0]
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return " ".join(str(word) for word in words).replace(";", " ").replace("&&", " ").split()


def _number_after(words: list[str], verb: str) -> float | None:
    for word, value in itertools.pairwise(words):
        if word.rpartition("/")[2] == verb:
            try:
                return float(value.rstrip("s"))
            except ValueError:
                return None
    return None


def _exit_code(pod: Entry) -> int:
    text = (pod.body["metadata"].get("annotations") or {}).get(EXIT_CODE, "")
    if text.isdigit():
        return int(text)
    words = _command(pod)
    if "false" in words:
        return 1
    return int(_number_after(words, "exit") or 0)


class PodKubelet:
    """Reports pods: Pending, Running and Ready, ended, gone."""

    def __init__(self, api: Api, settings: ClusterSettings) -> None:
        self._api = api
        self._settings = settings
        self._addresses = 0
        self._moments: dict[tuple[str, str], datetime] = {}
        """When something began, more precisely than the API's whole seconds."""

    def _since(self, pod: Entry, what: str, otherwise: datetime) -> datetime:
        return self._moments.get((pod.uid, what), otherwise)

    def observe(self, change: Change) -> Iterable[Key]:
        """Return bound pods; and all of a node's when the node joins or its kubelet is back."""
        entry = change.entry
        if entry.resource is PODS:
            return self._observe_pod(change)
        if entry.resource is NODES and change.type != "DELETED":
            before = change.before
            if before is None or is_kubelet_stopped(before) != is_kubelet_stopped(entry):
                return [pod.key for pod in self._api.store.pods_on(entry.key[1])]
        return []

    def _observe_pod(self, change: Change) -> list[Key]:
        pod, before = change.entry, change.before
        if change.type == "DELETED":
            for what in (_STARTED, _ASKED):
                self._moments.pop((pod.uid, what), None)
            return []
        if before is not None and is_going(pod) and not is_going(before):
            self._moments[pod.uid, _ASKED] = self._api.now()
        return [pod.key] if pod.body["spec"].get("nodeName") else []

    def reconcile(self, key: Hashable) -> float | None:
        """Do one step in the life of one pod."""
        pod = self._api.store.find(PODS, cast("Key", key))
        if pod is None or not pod.body["spec"].get("nodeName"):
            return None
        node = self._api.store.find(NODES, ("", pod.body["spec"]["nodeName"]))
        if node is None or is_kubelet_stopped(node):
            return None
        if is_going(pod):
            return self._stop(pod)
        return None if is_finished(pod) else self._live(pod, node)

    def _live(self, pod: Entry, node: Entry) -> float | None:
        if not pod.body["status"].get("startTime"):
            return self._admit(pod, node)
        if pod.body["status"]["phase"] == "Pending":
            return self._start(pod)
        return self._run(pod)

    def _admit(self, pod: Entry, node: Entry) -> float | None:
        """Accept a new pod: its containers are being created."""
        if self._settings.pod_start_seconds <= 0:
            return self._start(pod, node)
        at = format_time(self._api.now())

        def change(body: JsonObject) -> None:
            body["status"].update(startTime=at, hostIP=_host_address(node))
            ready = {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}
            set_condition(body["status"], ready, at)

        self._api.mutate(PODS, pod.key, change, subresource="status")
        return self._settings.pod_start_seconds

    def _start(self, pod: Entry, node: Entry | None = None) -> float | None:
        """Mark the containers as running."""
        now = self._api.now()
        started = pod.body["status"].get("startTime")
        if started:
            due = parse_time(started) + timedelta(seconds=self._settings.pod_start_seconds)
            if due > now:
                return (due - now).total_seconds()
        at = format_time(now)
        self._moments[pod.uid, _STARTED] = now
        address = self._next_address()

        def change(body: JsonObject) -> None:
            status = body["status"]
            status.update(phase="Running", podIP=address, podIPs=[{"ip": address}])
            status.setdefault("startTime", at)
            if node is not None:
                status["hostIP"] = _host_address(node)
            running = {"running": {"startedAt": at}}
            status["containerStatuses"] = _container_statuses(body, running, ready=True)
            for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"):
                set_condition(status, {"type": kind, "status": "True"}, at)

        self._api.mutate(PODS, pod.key, change, subresource="status")
        return None

    def _next_address(self) -> str:
        self._addresses += 1
        high, low = divmod(self._addresses, 256)
        return f"10.{128 + high // 256 % 64}.{high % 256}.{low}"

    def _run(self, pod: Entry) -> float | None:
        """End a running pod when its time is over."""
        seconds = self._duration(pod)
        if seconds is None:
            return None
        first = pod.body["status"]["containerStatuses"][0]
        written = parse_time(first["state"]["running"]["startedAt"])
        begun = self._since(pod, _STARTED, written)
        pause = self._pause_seconds(first["restartCount"])
        due = begun + timedelta(seconds=seconds + pause)
        left = (due - self._api.now()).total_seconds()
        if left > 0:
            return left
        code = _exit_code(pod)
        policy = pod.body["spec"]["restartPolicy"]
        if policy == "Always" or (policy == "OnFailure" and code):
            self._restart(pod)
        else:
            self._finish(pod, code)
        return None

    def _pause_seconds(self, restarts: int) -> float:
        """Return the pause before this run, as if the container had been in CrashLoopBackOff."""
        if not restarts:
            return 0.0
        return float(
            min(_RESTART_SECONDS_MAX, self._settings.restart_seconds * 2 ** (restarts - 1))
        )

    def _duration(self, pod: Entry) -> float | None:
        """Return seconds until the containers end; None: never."""
        seconds = _annotation_seconds(pod, DURATION)
        if seconds is None:
            seconds = _number_after(_command(pod), "sleep")
        if seconds is not None:
            return seconds
        if _INSTANT & set(_command(pod)):
            return 0.0
        job = (controller_of(pod) or {}).get("kind") == JOBS.kind
        return self._settings.job_seconds if job else None

    def _restart(self, pod: Entry) -> None:
        now = self._api.now()
        self._moments[pod.uid, _STARTED] = now
        at = format_time(now)

        def change(body: JsonObject) -> None:
            for status in body["status"]["containerStatuses"]:
                status["restartCount"] += 1
                status["state"] = {"running": {"startedAt": at}}

        self._api.mutate(PODS, pod.key, change, subresource="status")

    def _finish(self, pod: Entry, code: int) -> None:
        at = format_time(self._api.now())

        def change(body: JsonObject) -> None:
            status = body["status"]
            status["phase"] = "Failed" if code else "Succeeded"
            ended: JsonObject = {
                "exitCode": code,
                "reason": "Error" if code else "Completed",
                "finishedAt": at,
            }
            old = (status.get("containerStatuses") or [{}])[0].get("state") or {}
            ended["startedAt"] = (old.get("running") or {}).get("startedAt", at)
            status["containerStatuses"] = _container_statuses(
                body, {"terminated": ended}, ready=False
            )
            reason = "PodFailed" if code else "PodCompleted"
            for kind in ("Ready", "ContainersReady"):
                set_condition(status, {"type": kind, "status": "False", "reason": reason}, at)

        self._api.mutate(PODS, pod.key, change, subresource="status")

    def _stop(self, pod: Entry) -> float | None:
        """Stop a pod that is being deleted: containers end, then the object is removed."""
        metadata = pod.body["metadata"]
        grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
        written = parse_time(metadata["deletionTimestamp"]) - timedelta(seconds=grace)
        asked = self._since(pod, _ASKED, written)
        takes = _annotation_seconds(pod, TERMINATION)
        takes = self._settings.termination_seconds if takes is None else takes
        left = (asked + timedelta(seconds=min(takes, grace)) - self._api.now()).total_seconds()
        if left > 0 and not is_finished(pod):
            return left
        if not is_finished(pod) and pod.body["status"]["phase"] == "Running":
            self._finish(pod, _KILLED if takes > grace else _STOPPED)
        if grace:
            self._api.delete(PODS, pod.key, {"gracePeriodSeconds": 0})
        return None


def _host_address(node: Entry) -> str:
    addresses = (node.body.get("status") or {}).get("addresses") or []
    return next((str(a["address"]) for a in addresses if a["type"] == "InternalIP"), "127.0.0.1")


def _container_statuses(pod: JsonObject, state: JsonObject, *, ready: bool) -> list[JsonObject]:
    old: dict[str, Any] = {
        status["name"]: status for status in pod["status"].get("containerStatuses") or ()
    }
    return [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "restartCount": old.get(container["name"], {}).get("restartCount", 0),
            "ready": ready,
            "started": ready,
            "state": state,
        }
        for container in pod["spec"]["containers"]
    ]
