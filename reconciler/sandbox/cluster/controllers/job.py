"""Jobs: pods until enough have succeeded or too many have failed.

Source: pkg/controller/job. Finished pods are counted once, under the finalizer
`batch.kubernetes.io/job-tracking`, which keeps each of them until it has been counted.
"""

from collections.abc import Hashable, Iterable
from datetime import timedelta
from typing import cast

from reconciler.sandbox.cluster.clock import format_time, parse_time
from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.conditions import is_true, set_condition
from reconciler.sandbox.cluster.objects.resources import JOBS, PODS
from reconciler.sandbox.cluster.objects.status import JsonObject
from reconciler.sandbox.cluster.objects.store import Change, Entry, Key
from reconciler.sandbox.cluster.owned import (
    create_pod,
    delete_pod,
    is_active,
    is_finished,
    is_going,
    is_ready,
    owned,
    owner_key,
    pod_from_template,
)

_TRACKING = "batch.kubernetes.io/job-tracking"
_INDEX = "batch.kubernetes.io/job-completion-index"


class JobController:
    """Runs Jobs; CronJobs are only stored."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def observe(self, change: Change) -> Iterable[Key]:
        """Return the job itself, or the one that owns the pod."""
        if change.entry.resource is JOBS:
            return [change.entry.key]
        if change.entry.resource is PODS:
            key = owner_key(change.entry, JOBS)
            if key is None and _TRACKING in change.entry.body["metadata"].get("finalizers", ()):
                self._release(change.entry)
            return [key] if key else []
        return []

    def reconcile(self, key: Hashable) -> float | None:
        """Count what finished, then start or stop pods, then report."""
        with self._api.store.transaction():
            job = self._api.store.find(JOBS, cast("Key", key))
            if job is None or is_going(job):
                self._release_all(job, cast("Key", key))
                return None
            self._count(job)
            job = self._api.store.get(JOBS, job.key)
            if _is_over(job):
                return self._after_the_end(job)
            if reason := self._failure(job):
                self._finish(job, "Failed", *reason)
            elif self._is_complete(job):
                self._finish(
                    job, "Complete", "CompletionsReached", "Reached expected succeeded pods"
                )
            else:
                self._run(job)
            return self._deadline_seconds(job)

    # Counting

    def _count(self, job: Entry) -> None:
        """Move finished pods into the status and release them."""
        succeeded: list[Entry] = []
        failed: list[Entry] = []
        for pod in owned(self._api, job, PODS):
            if _TRACKING not in pod.body["metadata"].get("finalizers", ()):
                continue
            if is_finished(pod):
                good = pod.body["status"]["phase"] == "Succeeded"
                if good:
                    succeeded.append(pod)
                elif not _is_ignored(job, pod):
                    failed.append(pod)
                self._release(pod)
            elif is_going(pod) and not pod.body["spec"].get("nodeName"):
                self._release(pod)
        if succeeded or failed:
            self._add(job, succeeded, failed)

    def _add(self, job: Entry, succeeded: list[Entry], failed: list[Entry]) -> None:
        indexes = {index for pod in succeeded if (index := _index(pod)) is not None}

        def change(body: JsonObject) -> None:
            status = body.setdefault("status", {})
            if job.body["spec"]["completionMode"] == "Indexed":
                done = _read_indexes(status.get("completedIndexes", "")) | indexes
                status["completedIndexes"] = _write_indexes(done)
                status["succeeded"] = len(done)
            else:
                status["succeeded"] = status.get("succeeded", 0) + len(succeeded)
            status["failed"] = status.get("failed", 0) + len(failed)

        self._api.patch(JOBS, job.key, change, subresource="status")

    def _release(self, pod: Entry) -> None:
        def change(body: JsonObject) -> None:
            kept = [f for f in body["metadata"].get("finalizers", ()) if f != _TRACKING]
            body["metadata"]["finalizers"] = kept
            if not kept:
                del body["metadata"]["finalizers"]

        self._api.mutate(PODS, pod.key, change)

    def _release_all(self, job: Entry | None, key: Key) -> None:
        """Remove the finalizer from all pods of a deleted job."""
        pods = owned(self._api, job, PODS) if job else self._api.store.objects(PODS, key[0])[0]
        for pod in pods:
            tracked = _TRACKING in pod.body["metadata"].get("finalizers", ())
            if tracked and owner_key(pod, JOBS) == key:
                self._release(pod)

    # Deciding

    def _failure(self, job: Entry) -> tuple[str, str] | None:
        spec, status = job.body["spec"], job.body.get("status") or {}
        if status.get("failed", 0) > int(spec["backoffLimit"]):
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        left = self._deadline_seconds(job)
        if left is not None and left <= 0:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        return None

    def _is_complete(self, job: Entry) -> bool:
        succeeded = (job.body.get("status") or {}).get("succeeded", 0)
        completions = job.body["spec"].get("completions")
        if completions is not None:
            return bool(succeeded >= int(completions))
        return bool(succeeded) and not self._active(job)

    def _active(self, job: Entry) -> list[Entry]:
        return [pod for pod in owned(self._api, job, PODS) if is_active(pod)]

    def _deadline_seconds(self, job: Entry) -> float | None:
        limit = job.body["spec"].get("activeDeadlineSeconds")
        start = (job.body.get("status") or {}).get("startTime")
        if limit is None or start is None or _is_over(job):
            return None
        end = parse_time(start) + timedelta(seconds=int(limit))
        return (end - self._api.now()).total_seconds()

    # Acting

    def _run(self, job: Entry) -> None:
        active = self._active(job)
        if job.body["spec"]["suspend"]:
            for pod in active:
                delete_pod(self._api, pod)
        else:
            going = [p for p in owned(self._api, job, PODS) if is_going(p) and not is_finished(p)]
            replace_at_once = job.body["spec"]["podReplacementPolicy"] != "Failed"
            busy = len(active) + (0 if replace_at_once else len(going))
            self._scale(job, active, busy)
        self._report(job)

    def _scale(self, job: Entry, active: list[Entry], busy: int) -> None:
        spec, status = job.body["spec"], job.body.get("status") or {}
        wanted = int(spec["parallelism"])
        completions = spec.get("completions")
        if completions is not None:
            wanted = min(wanted, int(completions) - status.get("succeeded", 0))
        elif status.get("succeeded", 0):
            wanted = min(wanted, busy)  # a work queue: one success means no new pods
        free = self._free_indexes(job, active)
        for number in range(max(0, wanted - busy)):
            index = free[number] if number < len(free) else None
            if create_pod(self._api, job, self._pod(job, index)) is None:
                return
        for pod in sorted(active, key=lambda p: (is_ready(p), -p.version))[: max(0, busy - wanted)]:
            delete_pod(self._api, pod)

    def _free_indexes(self, job: Entry, active: list[Entry]) -> list[int]:
        if job.body["spec"]["completionMode"] != "Indexed":
            return []
        done = _read_indexes((job.body.get("status") or {}).get("completedIndexes", ""))
        taken = done | {index for pod in active if (index := _index(pod)) is not None}
        return [n for n in range(int(job.body["spec"]["completions"])) if n not in taken]

    @staticmethod
    def _pod(job: Entry, index: int | None) -> JsonObject:
        template = job.body["spec"]["template"]
        found = template["metadata"]
        finalizers = [*(found.get("finalizers") or ()), _TRACKING]
        if index is None:
            return pod_from_template(job, template, finalizers=finalizers)
        body = pod_from_template(
            job,
            template,
            finalizers=finalizers,
            generateName=f"{job.key[1]}-{index}-",
            annotations={**(found.get("annotations") or {}), _INDEX: str(index)},
            labels={**(found.get("labels") or {}), _INDEX: str(index)},
        )
        for container in body["spec"]["containers"]:
            variable = {"name": "JOB_COMPLETION_INDEX", "value": str(index)}
            container["env"] = [*(container.get("env") or ()), variable]
        return body

    def _report(self, job: Entry) -> None:
        active = self._active(job)
        suspended = bool(job.body["spec"]["suspend"])
        at = format_time(self._api.now())

        def change(body: JsonObject) -> None:
            status = body.setdefault("status", {})
            status["active"] = len(active)
            status["ready"] = sum(is_ready(pod) for pod in active)
            if suspended:
                status.pop("startTime", None)
            else:
                status.setdefault("startTime", at)
            if suspended or is_true(body, "Suspended"):
                reason = "JobSuspended" if suspended else "JobResumed"
                condition = {"type": "Suspended", "status": str(suspended), "reason": reason}
                set_condition(status, condition, at)

        self._api.mutate(JOBS, job.key, change, subresource="status")

    def _finish(self, job: Entry, kind: str, reason: str, message: str) -> None:
        for pod in self._active(job):
            delete_pod(self._api, pod)
        at = format_time(self._api.now())
        first = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"

        def change(body: JsonObject) -> None:
            status = body.setdefault("status", {})
            status.update(active=0, ready=0, terminating=0)
            status.setdefault("startTime", at)
            if kind == "Complete":
                status["completionTime"] = at
            for name in (first, kind):
                condition = {"type": name, "status": "True", "reason": reason, "message": message}
                set_condition(status, {**condition, "lastProbeTime": at}, at)

        self._api.patch(JOBS, job.key, change, subresource="status")

    def _after_the_end(self, job: Entry) -> float | None:
        """Delete the job when its ttlSecondsAfterFinished is over."""
        ttl = job.body["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return None
        ends = [c for c in job.body["status"]["conditions"] if c["type"] in {"Complete", "Failed"}]
        end = parse_time(ends[0]["lastTransitionTime"]) + timedelta(seconds=int(ttl))
        left = (end - self._api.now()).total_seconds()
        if left > 0:
            return left
        self._api.delete(JOBS, job.key, {"propagationPolicy": "Foreground"})
        return None


def _is_over(job: Entry) -> bool:
    return is_true(job.body, "Complete") or is_true(job.body, "Failed")


def _index(pod: Entry) -> int | None:
    text = (pod.body["metadata"].get("annotations") or {}).get(_INDEX)
    return int(text) if text is not None else None


def _is_ignored(job: Entry, pod: Entry) -> bool:
    """Return whether a podFailurePolicy rule `Ignore` applies: then it is not a failure."""
    for rule in (job.body["spec"].get("podFailurePolicy") or {}).get("rules") or ():
        if rule.get("action") != "Ignore":
            continue
        for pattern in rule.get("onPodConditions") or ():
            if is_true(pod.body, pattern["type"]):
                return True
    return False


def _read_indexes(text: str) -> set[int]:
    """Return `0,2-4` as numbers."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _write_indexes(numbers: set[int]) -> str:
    """Return numbers as `0,2-4`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
