"""Snapshot files: API answers as they were, without secrets, readable by `reconciler plan`.

What planning does not read and may hold secrets is left out, rather than searched for them: env
values, commands and arguments, foreign annotations, messages, user data, parameters of storage.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from reconciler.model.ids import Region
from reconciler.records.aws import ASKED, Answer
from reconciler.records.times import rfc3339_exact

Json = dict[str, Any]

CLUSTER_FILE = "cluster.json"

ANNOTATION_PREFIXES = (
    "fleet-reconciler.io/",
    "cluster-autoscaler.kubernetes.io/",
    "karpenter.sh/",
    "kubernetes.io/config.mirror",
    "pv.kubernetes.io/bind-completed",
    "volume.kubernetes.io/selected-node",
    "volume.beta.kubernetes.io/storage-class",
    "storageclass.kubernetes.io/",
    "storageclass.beta.kubernetes.io/",
)
"""Annotations that a decision reads; others (last-applied-configuration) hold whole manifests."""

CONTAINER_FIELDS = frozenset({"name", "image", "resources", "ports", "restartPolicy"})
STORAGE_FIELDS = frozenset({"mountOptions", "parameters", "volumeAttributes"})
"""What storage drivers read of classes and volumes: some take a password there."""
USER_DATA = frozenset({"UserData", "userData", "ResponseMetadata"})


def encode_cluster_snapshot(objects: Iterable[Mapping[str, Any]]) -> bytes:
    """Return a v1 List of stripped objects, in order of kind, namespace and name."""
    items = sorted((strip_object(each) for each in objects), key=_order)
    return _dump({"apiVersion": "v1", "kind": "List", "items": items})


def cloud_snapshot_files(region: Region, answers: Iterable[Answer]) -> dict[str, bytes]:
    """Return a region's answers as files of the AWS CLI's form, by file name.

    What belongs to one fleet (its history, its instances) names the fleet at the top and so
    cannot share a file with another fleet's. That AWS was asked for instances is written down:
    an empty list in a file that people put together is no answer.
    """
    together: Json = {"Region": region, ASKED: True}
    files: dict[str, bytes] = {}
    for answer in answers:
        stripped = strip_answer(answer)
        fleet_id = stripped.get("FleetId")
        if fleet_id is None:
            for key, value in stripped.items():
                known = together.get(key)
                together[key] = [*known, *value] if isinstance(known, list) else value
            continue
        name = f"aws-{region}-{fleet_id}-{'history' if 'HistoryRecords' in stripped else 'active'}"
        files[f"{name}.json"] = _dump({**stripped, "Region": region})
    files[f"aws-{region}.json"] = _dump(together)
    return dict(sorted(files.items()))


def strip_object(found: Mapping[str, Any]) -> Json:
    """Return a Kubernetes object without secrets; it decodes to the same value as before."""
    result = {key: value for key, value in found.items() if key not in STORAGE_FIELDS}
    result["metadata"] = _metadata(found.get("metadata"))
    spec, status = found.get("spec"), found.get("status")
    if isinstance(status, Mapping):
        result["status"] = _without(status, frozenset({"message"}))
    if isinstance(spec, Mapping):
        result["spec"] = _spec(spec)
    return result


def strip_answer(answer: Answer) -> Json:
    """Return an answer of AWS without user data; times as text."""
    stripped = _plain(answer)
    return stripped if isinstance(stripped, dict) else {}


def _metadata(metadata: Any) -> Any:
    if not isinstance(metadata, Mapping):
        return metadata
    result = {key: value for key, value in metadata.items() if key != "managedFields"}
    annotations = metadata.get("annotations")
    if isinstance(annotations, Mapping):
        result["annotations"] = {
            key: value
            for key, value in annotations.items()
            if isinstance(key, str) and key.startswith(ANNOTATION_PREFIXES)
        }
    return result


def _spec(spec: Mapping[str, Any]) -> Json:
    """Return a pod's spec, or one that holds a pod template, or any other."""
    result = dict(spec)
    for key in ("containers", "initContainers", "ephemeralContainers"):
        if isinstance(spec.get(key), list):
            result[key] = [_container(each) for each in spec[key]]
    if isinstance(spec.get("volumes"), list):
        result["volumes"] = [
            _volume(volume) if isinstance(volume, Mapping) else volume for volume in spec["volumes"]
        ]
    result = _volume(result)
    template = spec.get("template")
    if isinstance(template, Mapping):
        result["template"] = strip_object(template)
    return result


def _volume(volume: Mapping[str, Any]) -> Json:
    """Return a pod's volume, or the spec of a PersistentVolume, without what its driver reads."""
    result = {key: value for key, value in volume.items() if key not in STORAGE_FIELDS}
    for source, fields in (("csi", STORAGE_FIELDS), ("flexVolume", frozenset({"options"}))):
        if isinstance(volume.get(source), Mapping):
            result[source] = _without(volume[source], fields)
    return result


def _container(container: Any) -> Any:
    """Return what scheduling reads of a container, and the names of its environment variables."""
    if not isinstance(container, Mapping):
        return container
    result = {key: value for key, value in container.items() if key in CONTAINER_FIELDS}
    env = container.get("env")
    if isinstance(env, list):
        result["env"] = [{"name": e.get("name")} for e in env if isinstance(e, Mapping)]
    return result


def _without(value: Any, keys: frozenset[str]) -> Any:
    """Return the value without these keys at any depth."""
    if isinstance(value, Mapping):
        return {key: _without(each, keys) for key, each in value.items() if key not in keys}
    if isinstance(value, list | tuple):
        return [_without(each, keys) for each in value]
    return value


def _plain(value: Any) -> Any:
    """Return plain JSON of what boto3 returns, without user data."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items() if key not in USER_DATA}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return rfc3339_exact(value) if isinstance(value, datetime) else value


def _order(found: Json) -> tuple[str, str, str]:
    metadata = found.get("metadata")
    names: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    return (
        str(found.get("kind", "")),
        str(names.get("namespace", "")),
        str(names.get("name", "")),
    )


def _dump(value: Json) -> bytes:
    """Encode with the standard library: a server's data may exceed 64 bits or strict Unicode."""
    return (json.dumps(value, sort_keys=True, indent=1) + "\n").encode()
