"""Conditions of an object's status, kept by type."""

from reconciler.sandbox.cluster.objects.status import JsonObject


def set_condition(status: JsonObject, condition: JsonObject, at: str) -> bool:
    """Set one condition by type; its transition time moves only with its status.

    Returns:
        Whether anything changed.
    """
    conditions: list[JsonObject] = status.setdefault("conditions", [])
    for index, old in enumerate(conditions):
        if old["type"] != condition["type"]:
            continue
        moved = old["status"] != condition["status"]
        since = at if moved else old.get("lastTransitionTime", at)
        conditions[index] = {**condition, "lastTransitionTime": since}
        return conditions[index] != old
    conditions.append({**condition, "lastTransitionTime": at})
    return True


def get_condition(body: JsonObject, kind: str) -> JsonObject | None:
    """Return one condition of an object's status by type."""
    conditions: list[JsonObject] = (body.get("status") or {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == kind), None)


def is_true(body: JsonObject, kind: str) -> bool:
    """Return whether a condition is there and True."""
    condition = get_condition(body, kind)
    return condition is not None and condition["status"] == "True"
