"""Which objects the API server refuses: names, labels, quantities, and the shapes that matter.

A tight selection of pkg/apis/*/validation: what manifests and patches get wrong in practice.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from reconciler.model.quantity import parse_quantity
from reconciler.sandbox.cluster.objects.resources import (
    BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from reconciler.sandbox.cluster.objects.selectors import selector_of
from reconciler.sandbox.cluster.objects.status import ApiError, JsonObject, invalid

_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_QUALIFIED = re.compile(
    r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
_PATH_SEGMENT = re.compile(r"^(?!\.\.?$)[^/%]+$")
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character"
)
_EFFECTS = {"NoSchedule", "PreferNoSchedule", "NoExecute"}
_LENIENT_GROUPS = {"rbac.authorization.k8s.io"}

Fault = tuple[str, str]
"""Field path and what is wrong there."""


def _metadata(resource: Resource, body: JsonObject) -> Iterator[Fault]:
    metadata = body["metadata"]
    name = metadata["name"]
    if resource.group in _LENIENT_GROUPS:
        if not _PATH_SEGMENT.match(name):
            yield "metadata.name", f"Invalid value: \"{name}\": may not contain '/' or '%'"
    elif len(name) > 253 or not _SUBDOMAIN.match(name):
        yield "metadata.name", f'Invalid value: "{name}": {_SUBDOMAIN_RULE}'
    yield from _labels("metadata.labels", metadata.get("labels"))
    for key in metadata.get("annotations") or {}:
        if not _QUALIFIED.match(key.lower()):
            yield "metadata.annotations", f'Invalid value: "{key}": not a qualified name'


def _labels(path: str, labels: JsonObject | None) -> Iterator[Fault]:
    for key, value in (labels or {}).items():
        if not _QUALIFIED.match(key):
            yield path, f'Invalid value: "{key}": name part must be a qualified name'
        if not isinstance(value, str) or not _VALUE.match(value):
            yield path, f'Invalid value: "{value}": a valid label must be 63 characters or less'


def _quantities(path: str, amounts: JsonObject | None) -> Iterator[Fault]:
    for name, amount in (amounts or {}).items():
        try:
            negative = parse_quantity(str(amount)) < 0
        except ValueError as error:
            yield f"{path}[{name}]", f'Invalid value: "{amount}": {error}'
        else:
            if negative:
                message = f'Invalid value: "{amount}": must be greater than or equal to 0'
                yield f"{path}[{name}]", message


def _container(path: str, container: JsonObject) -> Iterator[Fault]:
    if not container.get("name"):
        yield f"{path}.name", "Required value"
    elif not _LABEL.match(container["name"]):
        yield f"{path}.name", f'Invalid value: "{container["name"]}": a lowercase RFC 1123 label'
    if not container.get("image"):
        yield f"{path}.image", "Required value"
    resources = container.get("resources") or {}
    for key in ("requests", "limits"):
        yield from _quantities(f"{path}.resources.{key}", resources.get(key))
    yield from _within_limits(path, resources)


def _within_limits(path: str, resources: JsonObject) -> Iterator[Fault]:
    limits = resources.get("limits") or {}
    for name, amount in (resources.get("requests") or {}).items():
        try:
            beyond = name in limits and parse_quantity(str(amount)) > parse_quantity(
                str(limits[name])
            )
        except ValueError:
            continue  # reported as a bad quantity already
        if beyond:
            message = f'Invalid value: "{amount}": must be less than or equal to {name} limit'
            yield f"{path}.resources.requests", f"{message} of {limits[name]}"


def _pod_spec(path: str, spec: JsonObject) -> Iterator[Fault]:
    if not spec.get("containers"):
        yield f"{path}.containers", "Required value"
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield from _container(f"{path}.{kind}[{index}]", container)
    yield from _labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    if spec.get("restartPolicy") not in {"Always", "OnFailure", "Never"}:
        yield f"{path}.restartPolicy", f'Unsupported value: "{spec.get("restartPolicy")}"'


def _pod(body: JsonObject) -> Iterator[Fault]:
    yield from _pod_spec("spec", body["spec"])
    gates = body["spec"].get("schedulingGates")
    if gates and body["spec"].get("nodeName"):
        yield (
            "spec.nodeName",
            "Forbidden: cannot be set until all schedulingGates have been cleared",
        )


def _workload(body: JsonObject) -> Iterator[Fault]:
    spec = body["spec"]
    yield from _pod_spec("spec.template.spec", spec["template"]["spec"])
    selector = selector_of(spec.get("selector"))
    labels = spec["template"]["metadata"].get("labels") or {}
    yield from _labels("spec.template.metadata.labels", labels)
    if selector is None:
        yield "spec.selector", "Required value"
    elif not selector.matches(labels):
        message = f"Invalid value: {labels}: `selector` does not match template `labels`"
        yield "spec.template.metadata.labels", message
    replicas = spec.get("replicas", 1)
    if not isinstance(replicas, int) or replicas < 0:
        yield "spec.replicas", f"Invalid value: {replicas}: must be greater than or equal to 0"


def _job(body: JsonObject) -> Iterator[Fault]:
    spec = body["spec"]["template"]["spec"]
    yield from _pod_spec("spec.template.spec", spec)
    if spec.get("restartPolicy") == "Always":
        field = "spec.template.spec.restartPolicy"
        yield field, 'Unsupported value: "Always": supported values: "OnFailure", "Never"'


def _budget(body: JsonObject) -> Iterator[Fault]:
    spec = body["spec"]
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield "spec", "Invalid value: minAvailable and maxUnavailable cannot be both set"


def _claim(body: JsonObject) -> Iterator[Fault]:
    requests = (body["spec"].get("resources") or {}).get("requests") or {}
    if "storage" not in requests:
        yield "spec.resources[storage]", "Required value"
    yield from _quantities("spec.resources.requests", requests)
    if not body["spec"].get("accessModes"):
        yield "spec.accessModes", "Required value: at least 1 access mode is required"


def _node(body: JsonObject) -> Iterator[Fault]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate((body.get("spec") or {}).get("taints") or ()):
        key, effect = taint.get("key", ""), taint.get("effect", "")
        if not _QUALIFIED.match(key):
            yield f"spec.taints[{index}].key", f'Invalid value: "{key}": not a qualified name'
        if effect not in _EFFECTS:
            yield f"spec.taints[{index}].effect", f'Unsupported value: "{effect}"'
        if (key, effect) in seen:
            yield f"spec.taints[{index}]", f'Duplicate value: "{key}:{effect}"'
        seen.add((key, effect))
    for part in ("capacity", "allocatable"):
        yield from _quantities(f"status.{part}", (body.get("status") or {}).get(part))


_RULES: dict[Resource, Callable[[JsonObject], Iterator[Fault]]] = {
    PODS: _pod,
    NODES: _node,
    DEPLOYMENTS: _workload,
    REPLICA_SETS: _workload,
    STATEFUL_SETS: _workload,
    DAEMON_SETS: _workload,
    JOBS: _job,
    BUDGETS: _budget,
    PERSISTENT_VOLUME_CLAIMS: _claim,
}


def validate(resource: Resource, body: JsonObject) -> None:
    """Refuse what breaks a rule; defaults are already applied to the body.

    Raises:
        ApiError: 422 for the first broken rule, 400 for a shape that cannot be read at all.
    """
    rules = _RULES.get(resource)
    try:
        faults = [*_metadata(resource, body), *(rules(body) if rules else ())]
    except (AttributeError, KeyError, TypeError) as error:
        raise ApiError(
            400, "BadRequest", f"{resource.kind} in version {resource.version!r} cannot be "
            f"handled as a {resource.kind}: {type(error).__name__}: {error}",
        ) from error  # fmt: skip
    for field, message in faults:
        raise invalid(resource, str(body["metadata"]["name"]), field, message)


_POD_MUTABLE = ("tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds")


def _fixed_part(spec: JsonObject) -> JsonObject:
    fixed: JsonObject = {key: value for key, value in spec.items() if key not in _POD_MUTABLE}
    fixed.pop("schedulingGates", None)
    for kind in ("containers", "initContainers"):
        containers: list[Any] = fixed.get(kind) or []
        fixed[kind] = [{**item, "image": "", "imagePullPolicy": ""} for item in containers]
    return fixed


def _pod_update_faults(old: JsonObject, new: JsonObject) -> Iterator[Fault]:
    if _fixed_part(old["spec"]) != _fixed_part(new["spec"]):
        yield (
            "spec",
            (
                "Forbidden: pod updates may not change fields other than "
                "`spec.containers[*].image`,`spec.initContainers[*].image`,"
                "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
                "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if "
                "it was previously negative)"
            ),
        )
    gates = [gate["name"] for gate in old["spec"].get("schedulingGates") or ()]
    if any(gate["name"] not in gates for gate in new["spec"].get("schedulingGates") or ()):
        message = "Forbidden: only deletion is allowed, but found new scheduling gate"
        yield "spec.schedulingGates", message


def _node_update_faults(old: JsonObject, new: JsonObject) -> Iterator[Fault]:
    provider = (old.get("spec") or {}).get("providerID")
    if provider and (new.get("spec") or {}).get("providerID") != provider:
        yield "spec.providerID", "Forbidden: node updates may not change providerID once it is set"


def _selector_faults(old: JsonObject, new: JsonObject) -> Iterator[Fault]:
    if old["spec"].get("selector") != new["spec"].get("selector"):
        yield "spec.selector", "Invalid value: field is immutable"


def validate_update(resource: Resource, old: JsonObject, new: JsonObject) -> None:
    """Refuse changes of immutable fields.

    Raises:
        ApiError: 422.
    """
    rules: dict[Resource, Callable[[JsonObject, JsonObject], Iterator[Fault]]] = {
        PODS: _pod_update_faults,
        NODES: _node_update_faults,
        **dict.fromkeys(
            (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS), _selector_faults
        ),
    }
    rule = rules.get(resource)
    for field, message in rule(old, new) if rule else ():
        raise invalid(resource, str(new["metadata"]["name"]), field, message)
