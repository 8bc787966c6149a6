"""The scale subresource: autoscaling/v1 Scale over a workload's replicas."""

from collections.abc import Callable

from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.resources import Resource
from reconciler.sandbox.cluster.objects.status import STALE, JsonObject, conflict, invalid
from reconciler.sandbox.cluster.objects.store import Entry, Key

_COPIED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def _selector_text(selector: JsonObject | None) -> str:
    """Return only what replicas are counted by in practice: matchLabels."""
    labels = (selector or {}).get("matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _scale_of(entry: Entry) -> JsonObject:
    metadata, spec = entry.body["metadata"], entry.body["spec"]
    status: JsonObject = {"replicas": (entry.body.get("status") or {}).get("replicas", 0)}
    status["selector"] = _selector_text(spec.get("selector"))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: metadata[field] for field in _COPIED},
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": status,
    }


def get_scale(api: Api, resource: Resource, key: Key) -> JsonObject:
    """Read the Scale of a workload.

    Raises:
        ApiError: 404.
    """
    return _scale_of(api.store.get(resource, key))


def set_scale(
    api: Api, resource: Resource, key: Key, change: Callable[[JsonObject], JsonObject]
) -> JsonObject:
    """Write the Scale that `change` makes of the present one.

    Raises:
        ApiError: 404, 409 for a stale resourceVersion, 422 for what is no number of replicas.
    """
    with api.store.transaction():
        present = _scale_of(api.store.get(resource, key))
        wanted = change(present)
        version = (wanted.get("metadata") or {}).get("resourceVersion")
        if version and version != present["metadata"]["resourceVersion"]:
            raise conflict(resource, key[1], STALE)
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or replicas < 0:
            raise invalid(resource, key[1], "spec.replicas", f"Invalid value: {replicas}")

        def rescale(body: JsonObject) -> None:
            body["spec"]["replicas"] = replicas

        return _scale_of(api.patch(resource, key, rescale))
