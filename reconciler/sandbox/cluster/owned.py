"""Shared by controllers of pods: owners, templates, and how pods are counted."""

import hashlib
from collections.abc import Iterable
from datetime import timedelta

import orjson

from reconciler.sandbox.cluster.clock import parse_time
from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.conditions import get_condition
from reconciler.sandbox.cluster.objects.resources import PODS, Resource
from reconciler.sandbox.cluster.objects.status import ApiError, JsonObject
from reconciler.sandbox.cluster.objects.store import Entry, Key


def controller_of(entry: Entry) -> JsonObject | None:
    """Return the owner reference that controls an object."""
    owners: list[JsonObject] = entry.body["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def owner_key(entry: Entry, kind: Resource) -> Key | None:
    """Return the key of the controlling owner if it is of that kind."""
    owner = controller_of(entry)
    if owner is None or owner.get("kind") != kind.kind:
        return None
    return (entry.key[0], str(owner["name"]))


def template_hash(owner: Entry) -> str:
    """Return what tells the pod template of a controller from its earlier ones."""
    text = orjson.dumps(owner.body["spec"]["template"], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:10]


def owner_reference(owner: Entry) -> JsonObject:
    """Return the reference that a controller puts on what it makes."""
    return {
        "apiVersion": owner.resource.group_version,
        "kind": owner.resource.kind,
        "name": owner.key[1],
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned(api: Api, owner: Entry, kind: Resource) -> list[Entry]:
    """Return what an owner controls, oldest first."""
    entries = api.store.owned_by(owner.uid, kind)
    return [e for e in entries if (controller_of(e) or {}).get("uid") == owner.uid]


def pod_from_template(owner: Entry, template: JsonObject, **metadata: object) -> JsonObject:
    """Return a pod body made from a template; keyword arguments replace metadata fields."""
    copy: JsonObject = orjson.loads(orjson.dumps(template))
    found = copy.get("metadata") or {}
    kept = {key: found[key] for key in ("labels", "annotations", "finalizers") if key in found}
    head = {"generateName": f"{owner.key[1]}-", "ownerReferences": [owner_reference(owner)]}
    return {"metadata": {**kept, **head, **metadata}, "spec": copy["spec"]}


def create_pod(api: Api, owner: Entry, body: JsonObject) -> Entry | None:
    """Create a pod; None when its namespace is being deleted or the name is taken."""
    try:
        return api.create(PODS, owner.key[0], body)
    except ApiError as error:
        if error.code in {403, 404, 409}:
            return None
        raise


def delete_pod(api: Api, pod: Entry) -> None:
    """Delete a pod gracefully unless it is being deleted or gone."""
    if "deletionTimestamp" in pod.body["metadata"] or api.store.find(PODS, pod.key) is None:
        return
    api.delete(PODS, pod.key)


def is_finished(pod: Entry) -> bool:
    """Return whether it has Succeeded or Failed."""
    return pod.body["status"].get("phase") in {"Succeeded", "Failed"}


def is_going(entry: Entry) -> bool:
    """Return whether it is being deleted."""
    return "deletionTimestamp" in entry.body["metadata"]


def is_active(pod: Entry) -> bool:
    """Return whether it is neither finished nor being deleted."""
    return not is_finished(pod) and not is_going(pod)


def is_ready(pod: Entry) -> bool:
    """Return whether the Ready condition is True."""
    condition = get_condition(pod.body, "Ready")
    return condition is not None and condition["status"] == "True"


def available_in(api: Api, pod: Entry, min_ready_seconds: int) -> float | None:
    """Return seconds until a pod has been Ready long enough; None when it is not Ready."""
    condition = get_condition(pod.body, "Ready")
    if condition is None or condition["status"] != "True":
        return None
    since = parse_time(condition["lastTransitionTime"]) + timedelta(seconds=min_ready_seconds)
    return max(0.0, (since - api.now()).total_seconds()) if min_ready_seconds else 0.0


def deletion_order(pods: Iterable[Entry]) -> list[Entry]:
    """Return a ReplicaSet's deletion order: unbound, pending, unready, cheap, young.

    Source: pkg/controller ActivePodsWithRanks, without the spreading rank.
    """

    def rank(pod: Entry) -> tuple[bool, bool, bool, int, int]:
        bound = bool(pod.body["spec"].get("nodeName"))
        cost = (pod.body["metadata"].get("annotations") or {}).get(
            "controller.kubernetes.io/pod-deletion-cost", "0"
        )
        running = pod.body["status"].get("phase") == "Running"
        return bound, running, is_ready(pod), int(cost), -pod.version

    return sorted(pods, key=rank)
