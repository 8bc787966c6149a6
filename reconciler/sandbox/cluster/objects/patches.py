"""JSON patch, JSON merge patch and strategic merge patch on parsed objects.

Sources: RFC 6902, RFC 7386; k8s.io/apimachinery/pkg/util/strategicpatch. Server-side apply of a
plain manifest is a strategic merge here: field ownership is not kept.
"""

import copy
from collections.abc import Callable
from typing import Any

from reconciler.sandbox.cluster.objects.status import (
    ApiError,
    JsonObject,
    bad_request,
    unsupported_patch_type,
)

APPLY = "application/apply-patch+yaml"

_MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "schedulingGates": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort", "port"),
    "conditions": ("type",),
    "addresses": ("type",),
    "ownerReferences": ("uid",),
    "hostAliases": ("ip",),
    "podIPs": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "secrets": ("name",),
}
"""Lists of objects that merge by key (`patchMergeKey` in k8s.io/api); the first key present wins.

`taints` is not among them: NodeSpec.taints has no patchStrategy, so a patch replaces the list.
"""
_SETS = {"finalizers"}
"""Lists of scalars that merge as sets (`patchStrategy=merge` without a key)."""


def merge_patch(target: Any, patch: Any) -> Any:
    """Merge by RFC 7386: objects merge, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def strategic_merge_patch(target: Any, patch: Any) -> Any:
    """Merge as `kubectl patch` does by default, directives (`$patch` and so on) included.

    Args:
        target: The current object; it is not changed.
        patch: The patch to apply.
    """
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    directive = patch.get("$patch")
    if directive == "replace":
        return {k: copy.deepcopy(v) for k, v in patch.items() if k != "$patch"}
    if directive == "delete":
        return {}
    result = dict(target) if isinstance(target, dict) else {}
    if "$retainKeys" in patch:
        result = {k: v for k, v in result.items() if k in patch["$retainKeys"]}
    for key, value in patch.items():
        if key.startswith("$"):
            _directive(result, key, value)
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, list):
            result[key] = _merge_list(key, result.get(key), value)
        else:
            result[key] = strategic_merge_patch(result.get(key), value)
    return result


def _directive(result: JsonObject, key: str, value: Any) -> None:
    name, _, field = key.partition("/")
    if name == "$deleteFromPrimitiveList" and isinstance(result.get(field), list):
        result[field] = [item for item in result[field] if item not in value]


def _merge_list(key: str, current: Any, patch: list[Any]) -> list[Any]:
    present = current if isinstance(current, list) else []
    if key in _SETS:
        return present + [item for item in patch if item not in present]
    merge_key = _merge_key(key, [*present, *patch])
    if merge_key is None:
        return copy.deepcopy([item for item in patch if not _is_directive(item)])
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return copy.deepcopy([item for item in patch if not _is_directive(item)])
    return _merge_by_key(merge_key, present, patch)


def _merge_key(key: str, items: list[Any]) -> str | None:
    objects = [item for item in items if isinstance(item, dict) and not _is_directive(item)]
    candidates = _MERGE_KEYS.get(key, ())
    return next((c for c in candidates if all(c in item for item in objects)), None)


def _is_directive(item: Any) -> bool:
    return isinstance(item, dict) and set(item) == {"$patch"}


def _merge_by_key(merge_key: str, present: list[Any], patch: list[Any]) -> list[Any]:
    result = list(present)
    for item in patch:
        value = item.get(merge_key)
        index = next((i for i, old in enumerate(result) if old.get(merge_key) == value), None)
        if item.get("$patch") == "delete":
            if index is not None:
                del result[index]
        elif index is None:
            result.append(strategic_merge_patch({}, item))
        else:
            result[index] = strategic_merge_patch(result[index], item)
    return result


def json_patch(target: JsonObject, operations: Any) -> JsonObject:
    """Return the object changed as RFC 6902 defines.

    Raises:
        ApiError: 400 when an operation is malformed, 422 when it cannot be applied.
    """
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    document = copy.deepcopy(target)
    for operation in operations:
        try:
            document = _operate(document, operation)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            message = f"the server rejected our request due to an error in our request: {error}"
            raise ApiError(422, "Invalid", message, {}) from error
    return document


def _operate(document: Any, operation: JsonObject) -> Any:
    path = _pointer(operation["path"])
    match operation["op"]:
        case "add":
            return _add(document, path, copy.deepcopy(operation["value"]))
        case "remove":
            return _remove(document, path)
        case "replace":
            _find(document, path)
            return _add(_remove(document, path), path, copy.deepcopy(operation["value"]))
        case "move":
            source = _pointer(operation["from"])
            value = _find(document, source)
            return _add(_remove(document, source), path, value)
        case "copy":
            source = _pointer(operation["from"])
            return _add(document, path, copy.deepcopy(_find(document, source)))
        case "test":
            if _find(document, path) != operation["value"]:
                raise ValueError(f"testing value {operation['path']} failed")
            return document
        case unknown:
            raise ValueError(f"unexpected kind: {unknown}")


def _pointer(text: str) -> list[str]:
    if text == "":
        return []
    if not text.startswith("/"):
        raise ValueError(f"{text} is not a JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _find(document: Any, path: list[str]) -> Any:
    for part in path:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _find(document, path[:-1])
    if not isinstance(parent, list):
        parent[path[-1]] = value
    elif path[-1] == "-":
        parent.append(value)
    else:
        index = int(path[-1])
        if not 0 <= index <= len(parent):
            raise IndexError(f"{index} is outside of the list")
        parent.insert(index, value)
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        return {}
    parent = _find(document, path[:-1])
    del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]
    return document


def _without_nulls(patch: JsonObject) -> JsonObject:
    """Remove nulls: in an applied manifest null means "not stated", not "remove"."""
    return {key: value for key, value in patch.items() if value is not None}


def patch_function(content_type: str, patch: Any) -> Callable[[JsonObject], JsonObject]:
    """Return what a PATCH request does to an object, by its content type.

    Raises:
        ApiError: 400 for a patch of the wrong shape, 415 for a type that does not exist.
    """
    if content_type == "application/json-patch+json":
        return lambda body: json_patch(body, patch)
    merges: dict[str, Callable[[JsonObject], Any]] = {
        "application/merge-patch+json": lambda body: merge_patch(body, patch),
        "application/strategic-merge-patch+json": lambda body: strategic_merge_patch(body, patch),
        APPLY: lambda body: strategic_merge_patch(body, _without_nulls(patch)),
    }
    if content_type not in merges:
        raise unsupported_patch_type(content_type)
    if not isinstance(patch, dict):
        raise bad_request("the patch must be an object")
    return merges[content_type]
