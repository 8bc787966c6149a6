"""Garbage collection by ownerReferences, and of the contents of deleted namespaces."""

from collections.abc import Hashable, Iterable
from typing import cast

from reconciler.sandbox.cluster.objects.api import FOREGROUND, ORPHAN, Api
from reconciler.sandbox.cluster.objects.resources import (
    CATALOGUE,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    Resource,
)
from reconciler.sandbox.cluster.objects.status import JsonObject
from reconciler.sandbox.cluster.objects.store import Change, Entry, Key
from reconciler.sandbox.cluster.owned import is_going


class GarbageCollector:
    """Deletes objects whose owners are gone; honours background, foreground and orphan."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def observe(self, change: Change) -> Iterable[tuple[Resource, Key]]:
        """Return dependents of what was deleted, owners that wait for them, and new dependents."""
        entry = change.entry
        finalizers = entry.body["metadata"].get("finalizers") or ()
        if change.type == "DELETED":
            found = [(d.resource, d.key) for d in self._api.store.dependents(entry.uid)]
            return found + self._waiting_owners(entry)
        if is_going(entry) and (FOREGROUND in finalizers or ORPHAN in finalizers):
            return [(entry.resource, entry.key)]
        if change.type == "ADDED" and entry.body["metadata"].get("ownerReferences"):
            return [(entry.resource, entry.key)]
        return []

    def _waiting_owners(self, entry: Entry) -> list[tuple[Resource, Key]]:
        found = []
        for reference in entry.body["metadata"].get("ownerReferences") or ():
            owner = self._owner(entry, reference)
            if owner is not None and is_going(owner):
                found.append((owner.resource, owner.key))
        return found

    def _owner(self, entry: Entry, reference: JsonObject) -> Entry | None:
        resource = CATALOGUE.by_kind.get((reference["apiVersion"], reference["kind"]))
        if resource is None:
            return None
        namespace = entry.key[0] if resource.namespaced else ""
        owner = self._api.store.find(resource, (namespace, reference["name"]))
        return owner if owner is not None and owner.uid == reference["uid"] else None

    def reconcile(self, key: Hashable) -> float | None:
        """Settle one object: as a dependent, then as an owner that is being deleted."""
        resource, place = cast("tuple[Resource, Key]", key)
        entry = self._api.store.find(resource, place)
        if entry is None:
            return None
        if self._is_abandoned(entry):
            if not is_going(entry):
                self._api.delete(resource, place, {"propagationPolicy": "Background"})
            return None
        finalizers = entry.body["metadata"].get("finalizers") or ()
        if is_going(entry) and ORPHAN in finalizers:
            self._orphan(entry)
        elif is_going(entry) and FOREGROUND in finalizers:
            self._delete_dependents(entry)
        return None

    def _is_abandoned(self, entry: Entry) -> bool:
        """Return whether it has owners and none exists; kinds not served count as existing."""
        references = entry.body["metadata"].get("ownerReferences") or ()
        return bool(references) and all(
            (reference["apiVersion"], reference["kind"]) in CATALOGUE.by_kind
            and self._owner(entry, reference) is None
            for reference in references
        )

    def _orphan(self, owner: Entry) -> None:
        for dependent in self._api.store.dependents(owner.uid):

            def change(body: JsonObject) -> None:
                references = body["metadata"]["ownerReferences"]
                body["metadata"]["ownerReferences"] = [
                    reference for reference in references if reference["uid"] != owner.uid
                ]

            self._api.mutate(dependent.resource, dependent.key, change)
        self._drop_finalizer(owner, ORPHAN)

    def _delete_dependents(self, owner: Entry) -> None:
        dependents = self._api.store.dependents(owner.uid)
        for dependent in dependents:
            if not is_going(dependent):
                self._api.delete(dependent.resource, dependent.key)
        if not self._api.store.dependents(owner.uid):
            self._drop_finalizer(owner, FOREGROUND)

    def _drop_finalizer(self, entry: Entry, finalizer: str) -> None:
        def change(body: JsonObject) -> None:
            kept = [f for f in body["metadata"].get("finalizers", ()) if f != finalizer]
            body["metadata"]["finalizers"] = kept

        self._api.mutate(entry.resource, entry.key, change)


class NamespaceController:
    """Gives a namespace its default service account, and empties one that is being deleted."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def observe(self, change: Change) -> Iterable[str]:
        """Return the namespace itself, or the one of a deleted object."""
        if change.entry.resource is NAMESPACES:
            return [change.entry.key[1]]
        return [change.entry.key[0]] if change.type == "DELETED" and change.entry.key[0] else []

    def reconcile(self, key: Hashable) -> float | None:
        """Settle one namespace."""
        entry = self._api.store.find(NAMESPACES, ("", str(key)))
        if entry is None:
            return None
        if not is_going(entry):
            if self._api.store.find(SERVICE_ACCOUNTS, (str(key), "default")) is None:
                body: JsonObject = {"metadata": {"name": "default"}}
                self._api.create(SERVICE_ACCOUNTS, str(key), body)
            return None
        for content in self._api.store.namespaced(str(key)):
            if not is_going(content):
                self._api.delete(content.resource, content.key)
        if not self._api.store.namespaced(str(key)):
            self._api.mutate(NAMESPACES, entry.key, _without_finalizers)
        return None


def _without_finalizers(body: JsonObject) -> None:
    body["spec"]["finalizers"] = []
