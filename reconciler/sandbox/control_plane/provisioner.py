"""Makes volumes for claims on a real control plane, as the EBS CSI driver's provisioner does."""

import logging
import threading
from pathlib import Path
from typing import Any

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from reconciler.sandbox.cluster.scheduling.volumes import EBS_ZONE, SELECTED_NODE, STATIC, ZONE

_LOG = logging.getLogger(__name__)
_WATCH_SECONDS = 30
_RETRY_SECONDS = 0.5


class Provisioner:
    """A thread that makes the volumes of claims, in the zone of their pod's node.

    The PersistentVolume controller binds the two.

    Args:
        kubeconfig: Of an administrator.
    """

    def __init__(self, kubeconfig: Path) -> None:
        make_client: Any = config.new_client_from_config
        self._api: Any = make_client(config_file=str(kubeconfig))
        self._core: Any = client.CoreV1Api(self._api)
        self._storage: Any = client.StorageV1Api(self._api)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="provisioner")

    def create_class(self, storage_class: dict[str, Any]) -> None:
        """Create a class of claims."""
        self._storage.create_storage_class(storage_class)

    def start(self) -> None:
        """Follow claims."""
        self._thread.start()

    def stop_soon(self) -> None:
        """End with the next event, or with the API server's connections."""
        self._stopping.set()

    def join(self) -> None:
        """Wait until the thread has ended, after the API server has."""
        if self._thread.is_alive():
            self._thread.join()
        self._api.rest_client.pool_manager.clear()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except (ApiException, HTTPError, OSError) as error:
                _LOG.info("provisioner_retries error=%s", error)
                self._stopping.wait(_RETRY_SECONDS)

    def _follow(self) -> None:
        make_watch: Any = watch.Watch
        claims = make_watch().stream(
            self._core.list_persistent_volume_claim_for_all_namespaces,
            timeout_seconds=_WATCH_SECONDS,
        )
        for event in claims:
            if self._stopping.is_set():
                return
            claim: dict[str, Any] = event["raw_object"]
            if event["type"] == "DELETED":
                self._remove(_volume_name(claim))
            elif not claim["spec"].get("volumeName"):
                self._serve(claim)

    def _serve(self, claim: dict[str, Any]) -> None:
        name = claim["spec"].get("storageClassName")
        if not name:
            return
        found = self._storage.read_storage_class(name)
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE, "")
        waits = found.volume_binding_mode == "WaitForFirstConsumer"
        if found.provisioner == STATIC or (waits and not node):
            return
        volume = _volume(claim, found.provisioner, self._zone(node))
        try:
            self._core.create_persistent_volume(volume)
        except ApiException as error:
            if error.status != 409:  # it was made at an earlier event of the claim
                raise

    def _zone(self, node: str) -> str:
        if not node:
            return ""
        labels = self._core.read_node(node).metadata.labels or {}
        return str(labels.get(EBS_ZONE) or labels.get(ZONE) or "")

    def _remove(self, name: str) -> None:
        try:
            self._core.delete_persistent_volume(name)
        except ApiException as error:
            if error.status != 404:
                raise


def _volume_name(claim: dict[str, Any]) -> str:
    return f"pvc-{claim['metadata']['uid']}"


def _volume(claim: dict[str, Any], driver: str, zone: str) -> dict[str, Any]:
    """Return a PersistentVolume that is reserved for the claim."""
    metadata, spec = claim["metadata"], claim["spec"]
    reference = {key: metadata[key] for key in ("namespace", "name", "uid")}
    volume: dict[str, Any] = {
        "capacity": dict(spec["resources"]["requests"]),
        "accessModes": list(spec.get("accessModes") or ["ReadWriteOnce"]),
        "storageClassName": spec["storageClassName"],
        "persistentVolumeReclaimPolicy": "Retain",  # this thread removes it with its claim
        "csi": {"driver": driver, "volumeHandle": f"vol-{metadata['uid'].replace('-', '')[:17]}"},
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
    }
    if zone:
        expression = {"key": EBS_ZONE, "operator": "In", "values": [zone]}
        volume["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        }
    return {"metadata": {"name": _volume_name(claim)}, "spec": volume}
