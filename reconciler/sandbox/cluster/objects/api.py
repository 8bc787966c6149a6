"""The verbs of the API server on objects: create, update, patch, delete, bind.

`http` does HTTP and `store` does storage. Controllers, kubelets and the scheduler of the sandbox
call the same verbs, so that they can do only what a client can.
"""

import hashlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from reconciler.sandbox.cluster.clock import Now, format_time
from reconciler.sandbox.cluster.objects.admission import admit
from reconciler.sandbox.cluster.objects.conditions import set_condition
from reconciler.sandbox.cluster.objects.defaults import apply_defaults, initial_status
from reconciler.sandbox.cluster.objects.resources import NAMESPACES, PODS, Resource
from reconciler.sandbox.cluster.objects.shapes import check_shape
from reconciler.sandbox.cluster.objects.status import (
    STALE,
    ApiError,
    JsonObject,
    bad_request,
    conflict,
    invalid,
)
from reconciler.sandbox.cluster.objects.store import Entry, Key, Store
from reconciler.sandbox.cluster.objects.validation import validate, validate_update

_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Alphabet of generated names: no vowels, no look-alikes (apimachinery util/rand)."""
_SERVER_FIELDS = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "namespace",
    "name",
)
_DROPPED_FIELDS = ("managedFields", "selfLink")
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"

Change = Callable[[JsonObject], JsonObject | None]
"""Changes a body in place, or returns a new one."""


class Api:
    """The verbs; every method is thread-safe.

    Args:
        store: The store of the objects.
        now: The clock behind every timestamp.
    """

    def __init__(self, store: Store, now: Now) -> None:
        self.store = store
        self.now = now

    # Create

    def create(
        self, resource: Resource, namespace: str, body: JsonObject, *, dry_run: bool = False
    ) -> Entry:
        """Add an object after defaults, admission and validation.

        `namespace` is that of the URL, empty for cluster-scoped types. `body` may have kind and
        apiVersion; it is stored itself, not a copy.

        Raises:
            ApiError: 400, 403, 404 (namespace), 409, 422.
        """
        with self.store.transaction():
            check_shape(resource, body)
            self._identify(resource, namespace, body)
            try:
                apply_defaults(resource, body)
            except (AttributeError, KeyError, TypeError) as error:
                message = f"{resource.kind} cannot be handled: {type(error).__name__}: {error}"
                raise bad_request(message) from error
            initial_status(resource, body)
            validate(resource, body)
            admit(self.store, resource, body)
            if dry_run:
                return self._preview(resource, body)
            return self.store.create(resource, body)

    def _identify(self, resource: Resource, namespace: str, body: JsonObject) -> None:
        check_type(resource, body)
        metadata = body.setdefault("metadata", {})
        if not isinstance(metadata, dict):
            raise bad_request("metadata must be an object")
        if metadata.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        _settle_namespace(resource, namespace, metadata)
        uid = self.store.next_uid()
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName'][:58]}{_suffix(uid)}"
        if not metadata.get("name"):
            message = "Required value: name or generateName is required"
            raise invalid(resource, "", "metadata.name", message)
        for field in (*_SERVER_FIELDS[:5], *_DROPPED_FIELDS):
            metadata.pop(field, None)
        metadata["uid"] = uid
        metadata["creationTimestamp"] = format_time(self.now())
        if resource.has_generation:
            metadata["generation"] = 1

    def _preview(self, resource: Resource, body: JsonObject) -> Entry:
        """Return what would have been stored."""
        metadata = body["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        if self.store.find(resource, key) is not None and "resourceVersion" not in metadata:
            raise ApiError(409, "AlreadyExists", f'{resource.qualified} "{key[1]}" already exists')
        return Entry(resource, body, self.store.version)

    # Update

    def update(
        self,
        resource: Resource,
        key: Key,
        body: JsonObject,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Entry:
        """Replace an object, or its status.

        Raises:
            ApiError: 400, 404, 409 (stale resourceVersion or another uid), 422.
        """
        with self.store.transaction():
            check_type(resource, body)
            return self._write(
                self.store.get(resource, key), body, subresource=subresource, dry_run=dry_run
            )

    def patch(
        self,
        resource: Resource,
        key: Key,
        change: Change,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Entry:
        """Change the current version; `change` gets a copy with kind and apiVersion.

        Raises:
            ApiError: 404, 409 (a resourceVersion or uid in the patch), 422.
        """
        with self.store.transaction():
            old = self.store.get(resource, key)
            copy = old.copy()
            copy["kind"], copy["apiVersion"] = resource.kind, resource.group_version
            changed = change(copy)
            body = copy if changed is None else changed
            check_type(resource, body)
            return self._write(old, body, subresource=subresource, dry_run=dry_run)

    def mutate(
        self, resource: Resource, key: Key, change: Change, *, subresource: str = ""
    ) -> Entry | None:
        """Change like `patch`, for controllers: a missing object is not an error."""
        with self.store.transaction():
            if self.store.find(resource, key) is None:
                return None
            return self.patch(resource, key, change, subresource=subresource)

    def _write(self, old: Entry, body: JsonObject, *, subresource: str, dry_run: bool) -> Entry:
        resource = old.resource
        check_shape(resource, body)
        metadata = body.get("metadata")
        if not isinstance(metadata, dict):
            raise bad_request("metadata must be an object")
        self._check_identity(old, metadata)
        for field in _SERVER_FIELDS:
            _restore(metadata, old.body["metadata"], field)
        for field in _DROPPED_FIELDS:
            metadata.pop(field, None)
        if subresource == "status":
            _keep_all_but_status(old.body, body)
        else:
            self._settle_spec(old, body)
        if dry_run:
            return Entry(resource, body, self.store.version)
        return self._settle_finalizers(self.store.replace(old, body))

    @staticmethod
    def _check_identity(old: Entry, metadata: JsonObject) -> None:
        resource, name = old.resource, old.key[1]
        if metadata.get("name", name) != name:
            given = metadata["name"]
            raise bad_request(f"the name of the object ({given}) does not match the URL ({name})")
        if metadata.get("namespace", old.key[0]) not in {"", old.key[0]}:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        uid = metadata.get("uid")
        if uid and uid != old.uid:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.uid}"
            raise conflict(resource, name, why)
        version = metadata.get("resourceVersion")
        if version and version != old.body["metadata"]["resourceVersion"]:
            raise conflict(resource, name, STALE)
        if not version and not resource.unconditional_update:
            message = "Invalid value: 0: must be specified for an update"
            raise invalid(resource, name, "metadata.resourceVersion", message)

    @staticmethod
    def _settle_spec(old: Entry, body: JsonObject) -> None:
        resource = old.resource
        if resource.has_status:
            _restore(body, old.body, "status")
        try:
            apply_defaults(resource, body)
        except (AttributeError, KeyError, TypeError) as error:
            message = f"{resource.kind} cannot be handled: {type(error).__name__}: {error}"
            raise bad_request(message) from error
        validate(resource, body)
        validate_update(resource, old.body, body)
        if resource.has_generation and body.get("spec") != old.body.get("spec"):
            body["metadata"]["generation"] = old.body["metadata"]["generation"] + 1

    def _settle_finalizers(self, entry: Entry) -> Entry:
        """Remove an object that is being deleted when its last finalizer is gone."""
        metadata = entry.body["metadata"]
        if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
            return entry
        if entry.resource is PODS and metadata.get("deletionGracePeriodSeconds"):
            return entry
        if entry.resource is NAMESPACES and entry.body.get("spec", {}).get("finalizers"):
            return entry
        self.store.remove(entry)
        return entry

    def bind(self, key: Key, node: str) -> Entry:
        """Give a pod its node, as the binding subresource does.

        Raises:
            ApiError: 404, 409 when it has one already, is being deleted or is gated.
        """
        with self.store.transaction():
            old = self.store.get(PODS, key)
            spec = old.body["spec"]
            if "deletionTimestamp" in old.body["metadata"]:
                raise conflict(PODS, key[1], f"pod {key[1]} is being deleted, cannot be assigned")
            if spec.get("nodeName"):
                why = f"pod {key[1]} is already assigned to node {spec['nodeName']!r}"
                raise conflict(PODS, key[1], why)
            if spec.get("schedulingGates"):
                why = f"pod {key[1]} has non-empty .spec.schedulingGates"
                raise conflict(PODS, key[1], why)
            body = old.copy()
            body["spec"]["nodeName"] = node
            scheduled = {"type": "PodScheduled", "status": "True"}
            set_condition(body["status"], scheduled, format_time(self.now()))
            body["status"].pop("nominatedNodeName", None)
            return self.store.replace(old, body)

    # Delete

    def delete(
        self,
        resource: Resource,
        key: Key,
        options: Mapping[str, Any] | None = None,
        *,
        dry_run: bool = False,
    ) -> tuple[Entry, bool]:
        """Begin or finish the deletion of an object; `options` are metav1.DeleteOptions.

        Returns:
            The object, and whether it is removed already.

        Raises:
            ApiError: 404, 409 for a precondition that fails.
        """
        with self.store.transaction():
            old = self.store.get(resource, key)
            wanted = options or {}
            _check_preconditions(old, wanted.get("preconditions") or {})
            grace = _grace_seconds(old, wanted.get("gracePeriodSeconds"))
            body = old.copy()
            _add_cascade(body["metadata"], wanted)
            if dry_run:
                return old, grace == 0
            if not grace and not _is_held(resource, body):
                return self.store.remove(old), True
            self._mark_deleted(resource, body, grace)
            return self.store.replace(old, body), False

    def _mark_deleted(self, resource: Resource, body: JsonObject, grace_seconds: int) -> None:
        metadata = body["metadata"]
        present = metadata.get("deletionGracePeriodSeconds")
        if "deletionTimestamp" in metadata and (present or 0) <= grace_seconds:
            return
        end = self.now() + timedelta(seconds=grace_seconds)
        metadata["deletionTimestamp"] = format_time(end)
        metadata["deletionGracePeriodSeconds"] = grace_seconds
        if metadata.get("generation"):
            metadata["generation"] += 1
        if resource is NAMESPACES:
            body["status"]["phase"] = "Terminating"


def check_type(resource: Resource, body: JsonObject) -> None:
    """Remove kind and apiVersion from a body.

    Raises:
        ApiError: 400 when they are those of another type.
    """
    kind, version = body.pop("kind", None), body.pop("apiVersion", None)
    if kind not in {None, resource.kind} or version not in {None, resource.group_version}:
        raise bad_request(
            f"{version}, Kind={kind} in the data does not match the expected "
            f"{resource.group_version}, Kind={resource.kind} of the URL"
        )


def _restore(target: JsonObject, source: JsonObject, field: str) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


def _keep_all_but_status(old: JsonObject, body: JsonObject) -> None:
    """Keep all of the old object but status, annotations and labels, as the subresource does."""
    for field in set(old) | set(body):
        if field not in {"status", "metadata"}:
            _restore(body, old, field)
    _restore(body["metadata"], old["metadata"], "ownerReferences")


def _settle_namespace(resource: Resource, namespace: str, metadata: JsonObject) -> None:
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return
    if metadata.get("namespace", namespace) not in {"", namespace}:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = namespace


def _suffix(uid: str) -> str:
    digest = hashlib.sha256(uid.encode()).digest()
    return "".join(_NAME_LETTERS[byte % len(_NAME_LETTERS)] for byte in digest[:5])


def _check_preconditions(entry: Entry, preconditions: Mapping[str, Any]) -> None:
    for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, actual = preconditions.get(field), entry.body["metadata"][field]
        if wanted and wanted != actual:
            raise conflict(
                entry.resource, entry.key[1],
                f"Precondition failed: {label} in precondition: {wanted}, {label} in object "
                f"meta: {actual}",
            )  # fmt: skip


def _grace_seconds(entry: Entry, asked: int | None) -> int:
    """Return how long a pod may still run; 0 for everything else, unbound and finished pods."""
    if entry.resource is not PODS:
        return 0
    spec, status = entry.body["spec"], entry.body["status"]
    if not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
        return 0
    grace = int(spec["terminationGracePeriodSeconds"] if asked is None else asked)
    return 1 if grace < 0 else grace


def _add_cascade(metadata: JsonObject, options: Mapping[str, Any]) -> None:
    policy = options.get("propagationPolicy")
    wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(str(policy))
    if options.get("orphanDependents") is True:
        wanted = ORPHAN
    if wanted and wanted not in metadata.get("finalizers", ()):
        metadata["finalizers"] = [*metadata.get("finalizers", ()), wanted]


def _is_held(resource: Resource, body: JsonObject) -> bool:
    """Return whether something has to happen before the object may be removed."""
    if body["metadata"].get("finalizers"):
        return True
    return resource is NAMESPACES and bool((body.get("spec") or {}).get("finalizers"))
