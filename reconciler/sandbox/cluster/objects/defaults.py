"""Fills in what an object omits, as the API server does.

Source: pkg/apis/*/v1/defaults.go and the registries' PrepareForCreate of Kubernetes 1.36.
"""

from collections.abc import Callable
from typing import Any

from reconciler.sandbox.cluster.objects.resources import (
    BUDGETS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    Resource,
)
from reconciler.sandbox.cluster.objects.status import JsonObject

_DEFAULT_TOLERATION_SECONDS = 300


def _fill(target: JsonObject, **defaults: Any) -> None:
    for key, value in defaults.items():
        if target.get(key) is None:
            target[key] = value


def _container(container: JsonObject) -> None:
    image = str(container.get("image", ""))
    tag = image.rpartition("/")[2].partition(":")[2]
    always = "@" not in image and tag in {"", "latest"}
    _fill(
        container,
        imagePullPolicy="Always" if always else "IfNotPresent",
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    resources = container["resources"]
    for name, amount in (resources.get("limits") or {}).items():
        resources.setdefault("requests", {}).setdefault(name, amount)
    for port in container.get("ports") or ():
        _fill(port, protocol="TCP")


def pod_spec(spec: JsonObject) -> None:
    """Set the defaults of a PodSpec, in a pod and in a template."""
    _fill(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
        terminationGracePeriodSeconds=30,
        securityContext={},
    )
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            _container(container)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _fill(constraint, nodeAffinityPolicy="Honor", nodeTaintsPolicy="Ignore")


def default_tolerations(spec: JsonObject) -> None:
    """The DefaultTolerationSeconds admission plugin: 5 min on a dead or unreachable node."""
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates_no_execute(item, key) for item in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _DEFAULT_TOLERATION_SECONDS,
                }
            )


def _tolerates_no_execute(toleration: JsonObject, key: str) -> bool:
    return toleration.get("key", "") in {"", key} and toleration.get("effect", "") in {
        "",
        "NoExecute",
    }


def qos_class(spec: JsonObject) -> str:
    """Return Guaranteed, Burstable or BestEffort. Source: pkg/apis/core/helper/qos."""
    requests: list[dict[str, str]] = []
    limits: list[dict[str, str]] = []
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        for found, key in ((requests, "requests"), (limits, "limits")):
            amounts = resources.get(key) or {}
            found.append({name: amounts[name] for name in ("cpu", "memory") if name in amounts})
    if not any(requests) and not any(limits):
        return "BestEffort"
    guaranteed = requests == limits and all(len(limit) == 2 for limit in limits)
    return "Guaranteed" if guaranteed else "Burstable"


def _template(body: JsonObject) -> None:
    template = body["spec"].setdefault("template", {})
    template.setdefault("metadata", {})
    pod_spec(template.setdefault("spec", {}))


def _pod(body: JsonObject) -> None:
    pod_spec(body.setdefault("spec", {}))
    _fill(body["spec"], enableServiceLinks=True, preemptionPolicy="PreemptLowerPriority")


def _deployment(body: JsonObject) -> None:
    spec = body["spec"]
    _fill(spec, replicas=1, strategy={}, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    _fill(spec["strategy"], type="RollingUpdate")
    if spec["strategy"]["type"] == "RollingUpdate":
        _fill(spec["strategy"], rollingUpdate={})
        _fill(spec["strategy"]["rollingUpdate"], maxUnavailable="25%", maxSurge="25%")
    _template(body)


def _replica_set(body: JsonObject) -> None:
    _fill(body["spec"], replicas=1)
    _template(body)


def _daemon_set(body: JsonObject) -> None:
    _fill(body["spec"], updateStrategy={}, revisionHistoryLimit=10)
    _fill(body["spec"]["updateStrategy"], type="RollingUpdate")
    if body["spec"]["updateStrategy"]["type"] == "RollingUpdate":
        _fill(body["spec"]["updateStrategy"], rollingUpdate={})
        _fill(body["spec"]["updateStrategy"]["rollingUpdate"], maxUnavailable=1, maxSurge=0)
    _template(body)


def _stateful_set(body: JsonObject) -> None:
    spec = body["spec"]
    _fill(
        spec,
        replicas=1,
        podManagementPolicy="OrderedReady",
        updateStrategy={},
        revisionHistoryLimit=10,
    )
    _fill(spec["updateStrategy"], type="RollingUpdate")
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        _fill(spec["updateStrategy"], rollingUpdate={})
        _fill(spec["updateStrategy"]["rollingUpdate"], partition=0)
    for claim in spec.get("volumeClaimTemplates") or ():
        _claim(claim)
    _template(body)


def job_spec(spec: JsonObject) -> None:
    """Set the defaults of a JobSpec. Source: pkg/apis/batch/v1/defaults.go."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        _fill(spec, completions=1)
    _fill(spec, parallelism=1, backoffLimit=6, completionMode="NonIndexed", suspend=False)
    _fill(spec, manualSelector=False, podReplacementPolicy="TerminatingOrFailed")


def _job(body: JsonObject) -> None:
    job_spec(body["spec"])
    _template(body)
    if body["spec"]["manualSelector"] or "uid" not in body["metadata"]:
        return
    uid, name = body["metadata"]["uid"], body["metadata"]["name"]
    labels = body["spec"]["template"]["metadata"].setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels[f"{prefix}controller-uid"] = uid
        labels[f"{prefix}job-name"] = name
    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    body["spec"].setdefault("selector", selector)


def _cron_job(body: JsonObject) -> None:
    spec = body["spec"]
    _fill(spec, concurrencyPolicy="Allow", suspend=False)
    _fill(spec, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    job = spec.get("jobTemplate")
    if isinstance(job, dict):
        _template(job)


def _namespace(body: JsonObject) -> None:
    name = body["metadata"]["name"]
    body["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    _fill(body, spec={"finalizers": ["kubernetes"]}, status={"phase": "Active"})


def _volume(body: JsonObject) -> None:
    _fill(body["spec"], persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    _fill(body, status={"phase": "Pending"})


def _claim(body: JsonObject) -> None:
    _fill(body.setdefault("spec", {}), volumeMode="Filesystem")
    _fill(body, status={"phase": "Pending"})


def _storage_class(body: JsonObject) -> None:
    _fill(body, reclaimPolicy="Delete", volumeBindingMode="Immediate", allowVolumeExpansion=False)


_DEFAULTS: dict[Resource, Callable[[JsonObject], None]] = {
    PODS: _pod,
    DEPLOYMENTS: _deployment,
    REPLICA_SETS: _replica_set,
    DAEMON_SETS: _daemon_set,
    STATEFUL_SETS: _stateful_set,
    JOBS: _job,
    CRON_JOBS: _cron_job,
    NAMESPACES: _namespace,
    PERSISTENT_VOLUMES: _volume,
    PERSISTENT_VOLUME_CLAIMS: _claim,
    STORAGE_CLASSES: _storage_class,
}


def apply_defaults(resource: Resource, body: JsonObject) -> None:
    """Fill in, in place, the type's defaults for omitted fields."""
    fill = _DEFAULTS.get(resource)
    if fill is not None:
        fill(body)


_ALWAYS_COUNTED: dict[Resource, tuple[str, ...]] = {
    REPLICA_SETS: ("replicas",),
    STATEFUL_SETS: ("replicas", "availableReplicas"),
    DAEMON_SETS: (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
    ),
    BUDGETS: ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"),
}
"""Numbers that the API server shows from the beginning, and that clients need."""


def initial_status(resource: Resource, body: JsonObject) -> None:
    """Drop, in place, a status that the creator may not set, and set the first one."""
    if resource.has_status and not resource.keeps_status_on_create:
        body.pop("status", None)
    if resource is PODS:
        body["status"] = {"phase": "Pending", "qosClass": qos_class(body["spec"])}
    elif resource.has_status:
        counts = dict.fromkeys(_ALWAYS_COUNTED.get(resource, ()), 0)
        body["status"] = {**counts, **(body.get("status") or {})}
