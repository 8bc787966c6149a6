"""Binds claims to volumes: existing ones that fit, or new ones in the node's zone.

What the PersistentVolume controller and a CSI provisioner do, as far as placement depends on it.
"""

from collections.abc import Hashable, Iterable
from typing import cast

from reconciler.model.quantity import parse_quantity
from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from reconciler.sandbox.cluster.objects.status import JsonObject
from reconciler.sandbox.cluster.objects.store import Change, Entry, Key
from reconciler.sandbox.cluster.owned import is_going

ZONE = "topology.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
STATIC = "kubernetes.io/no-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


class VolumeBinder:
    """Binds claims, at once or when the scheduler has chosen a node."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def observe(self, change: Change) -> Iterable[Key]:
        """Return claims that change, and every unbound one when a volume is added."""
        entry = change.entry
        if entry.resource is PERSISTENT_VOLUME_CLAIMS and change.type != "DELETED":
            return [entry.key]
        if entry.resource is PERSISTENT_VOLUMES and change.type == "ADDED":
            claims, _ = self._api.store.objects(PERSISTENT_VOLUME_CLAIMS)
            return [c.key for c in claims if not _is_bound(c)]
        return []

    def reconcile(self, key: Hashable) -> float | None:
        """Bind one claim: to the volume it names or that is reserved for it, or to a new one."""
        claim = self._api.store.find(PERSISTENT_VOLUME_CLAIMS, cast("Key", key))
        if claim is None or is_going(claim) or _is_bound(claim):
            return None
        annotations = claim.body["metadata"].get("annotations") or {}
        self._serve(claim, annotations.get(SELECTED_NODE, ""))
        return None

    def bind(self, pod: Entry, node: str) -> None:
        """Bind the claims of a pod that is about to be placed on a node."""
        for volume in pod.body["spec"].get("volumes") or ():
            name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if name is None and "ephemeral" in volume:
                name = f"{pod.key[1]}-{volume['name']}"
            claim = self._api.store.find(PERSISTENT_VOLUME_CLAIMS, (pod.key[0], str(name)))
            if claim is None or _is_bound(claim):
                continue

            def select(body: JsonObject) -> None:
                body["metadata"].setdefault("annotations", {})[SELECTED_NODE] = node

            self._api.mutate(PERSISTENT_VOLUME_CLAIMS, claim.key, select)
            self._serve(self._api.store.get(PERSISTENT_VOLUME_CLAIMS, claim.key), node)

    def _serve(self, claim: Entry, node: str) -> None:
        class_name = claim.body["spec"].get("storageClassName") or ""
        storage_class = self._api.store.find(STORAGE_CLASSES, ("", class_name))
        waits = (
            storage_class is not None
            and storage_class.body["volumeBindingMode"] == "WaitForFirstConsumer"
        )
        volume = self._existing(claim)
        named = claim.body["spec"].get("volumeName")
        if volume is not None and (named or node or not waits or _reserved(volume) == claim.key):
            self._join(claim, volume)
        elif storage_class is None or named or (waits and not node):
            return
        elif storage_class.body["provisioner"] != STATIC:
            self._join(claim, self._provision(claim, storage_class, node))

    def _existing(self, claim: Entry) -> Entry | None:
        """Return the volume that a claim names, one reserved for it, or the smallest that fits.

        None if there is none, or if the volume that it names does not exist or does not fit.
        """
        named = claim.body["spec"].get("volumeName")
        if named:
            volume = self._api.store.find(PERSISTENT_VOLUMES, ("", named))
            return volume if volume is not None and _fits(claim, volume) else None
        volumes, _ = self._api.store.objects(PERSISTENT_VOLUMES)
        fitting = [v for v in volumes if _fits(claim, v)]
        return min(fitting, key=lambda v: (_reserved(v) is None, _size(v.body)), default=None)

    def _provision(self, claim: Entry, storage_class: Entry, node: str) -> Entry:
        zone = self._zone(node)
        spec: JsonObject = {
            "capacity": dict(claim.body["spec"]["resources"]["requests"]),
            "accessModes": list(claim.body["spec"].get("accessModes") or ["ReadWriteOnce"]),
            "storageClassName": storage_class.key[1],
            "persistentVolumeReclaimPolicy": storage_class.body["reclaimPolicy"],
            "csi": {
                "driver": storage_class.body["provisioner"],
                "volumeHandle": f"vol-{claim.uid.replace('-', '')[:17]}",
            },
        }
        if zone:
            expression = {"key": EBS_ZONE, "operator": "In", "values": [zone]}
            spec["nodeAffinity"] = {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            }
        body: JsonObject = {"metadata": {"name": f"pvc-{claim.uid}"}, "spec": spec}
        return self._api.create(PERSISTENT_VOLUMES, "", body)

    def _zone(self, node: str) -> str:
        entry = self._api.store.find(NODES, ("", node))
        labels = (entry.body["metadata"].get("labels") or {}) if entry else {}
        return str(labels.get(EBS_ZONE) or labels.get(ZONE) or "")

    def _join(self, claim: Entry, volume: Entry) -> None:
        reference = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": claim.key[0],
            "name": claim.key[1],
            "uid": claim.uid,
        }

        def reserve(body: JsonObject) -> None:
            body["spec"]["claimRef"] = reference

        def name(body: JsonObject) -> None:
            body["spec"]["volumeName"] = volume.key[1]

        def report_volume(body: JsonObject) -> None:
            body["status"]["phase"] = "Bound"

        def report_claim(body: JsonObject) -> None:
            body["status"] = {
                "phase": "Bound",
                "accessModes": volume.body["spec"].get("accessModes") or [],
                "capacity": volume.body["spec"].get("capacity") or {},
            }

        self._api.mutate(PERSISTENT_VOLUMES, volume.key, reserve)
        self._api.mutate(PERSISTENT_VOLUMES, volume.key, report_volume, subresource="status")
        self._api.mutate(PERSISTENT_VOLUME_CLAIMS, claim.key, name)
        self._api.mutate(PERSISTENT_VOLUME_CLAIMS, claim.key, report_claim, subresource="status")


def _is_bound(claim: Entry) -> bool:
    return bool((claim.body.get("status") or {}).get("phase") == "Bound")


def _reserved(volume: Entry) -> Key | None:
    reference = volume.body["spec"].get("claimRef")
    return (reference["namespace"], reference["name"]) if reference else None


def _size(body: JsonObject) -> float:
    amount = (body["spec"].get("capacity") or {}).get("storage", "0")
    return float(parse_quantity(str(amount)))


def _fits(claim: Entry, volume: Entry) -> bool:
    reserved = _reserved(volume)
    if reserved is not None:
        return reserved == claim.key
    spec = claim.body["spec"]
    wanted = parse_quantity(str(spec["resources"]["requests"].get("storage", "0")))
    return bool(
        (volume.body["spec"].get("storageClassName") or "") == (spec.get("storageClassName") or "")
        and set(spec.get("accessModes") or ()) <= set(volume.body["spec"].get("accessModes") or ())
        and _size(volume.body) >= wanted
    )
