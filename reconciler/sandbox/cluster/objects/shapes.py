"""Whether a body has the JSON types that its fields must have: what decoding does in Go.

By field name, for the types of object that something in the cluster acts on; unknown fields are
let through, as the API server does without strict field validation.
"""

import re
from collections.abc import Callable
from typing import Any

from reconciler.sandbox.cluster.objects.resources import (
    BUDGETS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from reconciler.sandbox.cluster.objects.status import ApiError, JsonObject, bad_request

_CHECKED = {
    BUDGETS, CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, JOBS, NODES, PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES, PODS, REPLICA_SETS, STATEFUL_SETS,
}  # fmt: skip
_PERCENTAGE = re.compile(r"^\d{1,9}%$")


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_share(value: Any) -> bool:
    """Return whether an IntOrString is a number or a percentage."""
    return _is_whole(value) or (isinstance(value, str) and bool(_PERCENTAGE.match(value)))


def _is_quantity_map(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(amount, (str, int, float)) and not isinstance(amount, bool)
        for amount in value.values()
    )


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_scalar_list(value: Any) -> bool:
    """Return whether it is a list of texts (selectors) or of exit codes (podFailurePolicy)."""
    return isinstance(value, list) and all(isinstance(item, (str, int)) for item in value)


def _is_object_list(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_object, value))


_KINDS: dict[Callable[[Any], bool], str] = {
    _is_object: (
        "metadata spec template selector strategy rollingUpdate updateStrategy resources affinity "
        "nodeAffinity podAffinity podAntiAffinity labelSelector persistentVolumeClaim "
        "securityContext requiredDuringSchedulingIgnoredDuringExecution jobTemplate"
    ),
    _is_text: (
        "name namespace generateName key operator effect nodeName schedulerName "
        "priorityClassName restartPolicy topologyKey claimName providerID kind apiVersion uid "
        "storageClassName volumeName podManagementPolicy completionMode podReplacementPolicy"
    ),
    _is_whole: (
        "replicas completions parallelism backoffLimit activeDeadlineSeconds "
        "ttlSecondsAfterFinished minReadySeconds revisionHistoryLimit partition "
        "terminationGracePeriodSeconds tolerationSeconds priority containerPort hostPort"
    ),
    _is_share: "minAvailable maxUnavailable maxSurge",
    _is_quantity_map: "requests limits capacity allocatable overhead",
    _is_text_map: "labels annotations nodeSelector matchLabels",
    _is_text_list: "finalizers command args accessModes",
    _is_scalar_list: "values",
    _is_object_list: (
        "containers initContainers tolerations volumes taints conditions ownerReferences "
        "matchExpressions matchFields nodeSelectorTerms ports env schedulingGates addresses "
        "topologySpreadConstraints volumeClaimTemplates containerStatuses volumeMounts"
    ),
}
_RULES = {name: check for check, names in _KINDS.items() for name in names.split()}
_NEEDED: dict[str, tuple[str, ...]] = {
    "conditions": ("type", "status"),
    "taints": ("key", "effect"),
    "ownerReferences": ("apiVersion", "kind", "name", "uid"),
    "matchExpressions": ("key", "operator"),
    "matchFields": ("key", "operator"),
    "schedulingGates": ("name",),
    "volumes": ("name",),
    "addresses": ("type", "address"),
}
"""Fields that every item of a list has, and that are texts."""
_PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution"


def check_shape(resource: Resource, body: JsonObject) -> None:
    """Drop nulls, which mean "not stated", and refuse fields of the wrong JSON types.

    Raises:
        ApiError: 400.
    """
    _walk("metadata", {"metadata": body.get("metadata")})
    if resource in _CHECKED:
        _drop_nulls(body)
        status = body.get("status")
        if status is not None and not isinstance(status, dict):
            raise _wrong(resource.kind, "status", status)
        for part in ("spec", "status"):
            _walk(resource.kind, {key: body[key] for key in (part,) if key in body})


def _drop_nulls(value: Any) -> None:
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
        for item in value.values():
            _drop_nulls(item)
    elif isinstance(value, list):
        for item in value:
            _drop_nulls(item)


def _walk(path: str, body: JsonObject) -> None:
    for key, value in body.items():
        if value is None:
            continue
        check = _RULES.get(key)
        pod_terms = key == _PREFERRED and isinstance(value, list)  # of pods, terms are a list
        if check is not None and not check(value) and not pod_terms:
            raise _wrong(path, key, value)
        if isinstance(value, dict) and key not in {"labels", "annotations", "matchLabels"}:
            _walk(f"{path}.{key}", value)
        elif isinstance(value, list):
            _walk_items(path, key, value)


def _walk_items(path: str, key: str, items: list[Any]) -> None:
    needed = _NEEDED.get(key, ())
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            continue
        for field in needed:
            if not isinstance(item.get(field), str):
                raise _wrong(f"{path}.{key}[{index}]", field, item.get(field))
        _walk(f"{path}.{key}[{index}]", item)


def _wrong(path: str, key: str, value: Any) -> ApiError:
    kind = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
    found = kind.get(type(value), "number")
    return bad_request(f"json: cannot unmarshal {found} into Go struct field {path}.{key}")
