"""What the built-in admission plugins of an API server do to a new object."""

from typing import Any

from reconciler.sandbox.cluster.objects.defaults import default_tolerations
from reconciler.sandbox.cluster.objects.resources import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
    Resource,
)
from reconciler.sandbox.cluster.objects.status import ApiError, JsonObject, forbidden, not_found
from reconciler.sandbox.cluster.objects.store import Entry, Store

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"


def admit(store: Store, resource: Resource, body: JsonObject) -> None:
    """Change a new object in place as admission does, after its defaults.

    Raises:
        ApiError: 404 for a namespace that does not exist, 403 for one that is going.
    """
    if resource.namespaced:
        _namespace(store, resource, body)
    if resource is PODS:
        default_tolerations(body["spec"])
        body["spec"].setdefault("serviceAccountName", "default")
        _priority(store, body)
    elif resource is NODES:
        _taint_new_node(body)
    elif resource is PERSISTENT_VOLUME_CLAIMS:
        _default_storage_class(store, body["spec"])


def _namespace(store: Store, resource: Resource, body: JsonObject) -> None:
    namespace = body["metadata"]["namespace"]
    entry = store.find(NAMESPACES, ("", namespace))
    if entry is None:
        raise not_found(NAMESPACES, namespace)
    if "deletionTimestamp" in entry.body["metadata"]:
        why = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        error = forbidden(resource, body["metadata"]["name"], why)
        causes = [{"reason": "NamespaceTerminating", "message": why, "field": "metadata.namespace"}]
        details = {**(error.details or {}), "causes": causes}
        raise ApiError(error.code, error.reason, error.message, details)


def _priority(store: Store, body: JsonObject) -> None:
    """Set the priority as the Priority plugin does: of its class, or the global default."""
    spec = body["spec"]
    name = spec.get("priorityClassName")
    if name:
        entry = store.find(PRIORITY_CLASSES, ("", name))
        if entry is None:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden(PODS, body["metadata"]["name"], why)
    else:
        entry = _global_default(store)
    given = spec.get("priority")
    value: Any = entry.body["value"] if entry else 0
    if given is not None and given != value:
        why = (
            f"the integer value of priority ({given}) must not be provided in pod spec; priority "
            f"admission controller computed {value} from the given PriorityClass name"
        )
        raise forbidden(PODS, body["metadata"]["name"], why)
    spec["priority"] = value
    if entry is not None:
        spec["priorityClassName"] = entry.key[1]
        policy = entry.body.get("preemptionPolicy")
        spec["preemptionPolicy"] = policy or "PreemptLowerPriority"


def _global_default(store: Store) -> Entry | None:
    classes, _ = store.objects(PRIORITY_CLASSES)
    return next((entry for entry in classes if entry.body.get("globalDefault")), None)


def _taint_new_node(body: JsonObject) -> None:
    """Taint a node that has not reported Ready, as the TaintNodesByCondition plugin does."""
    taints = body.setdefault("spec", {}).setdefault("taints", [])
    if not any(t["key"] == NOT_READY_TAINT and t["effect"] == "NoSchedule" for t in taints):
        taints.append({"key": NOT_READY_TAINT, "effect": "NoSchedule"})


def _default_storage_class(store: Store, spec: JsonObject) -> None:
    if "storageClassName" in spec:
        return
    for entry in store.objects(STORAGE_CLASSES)[0]:
        annotations = entry.body["metadata"].get("annotations") or {}
        if annotations.get(_DEFAULT_CLASS) == "true":
            spec["storageClassName"] = entry.key[1]
            return
