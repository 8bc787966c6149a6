"""metav1.Table: the columns that `kubectl get` prints.

Source: pkg/printers/internalversion; the columns that people look at, for the types they list.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import orjson

from reconciler.sandbox.cluster.clock import Now, parse_time
from reconciler.sandbox.cluster.objects.conditions import is_true
from reconciler.sandbox.cluster.objects.resources import (
    BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from reconciler.sandbox.cluster.objects.status import JsonObject
from reconciler.sandbox.cluster.objects.store import Entry

Cell = Callable[[JsonObject], Any]


def _path(*parts: str, default: Any = "") -> Cell:
    def cell(body: JsonObject) -> Any:
        value: Any = body
        for part in parts:
            value = value.get(part) if isinstance(value, dict) else None
        return default if value is None else value

    return cell


def _pod_ready(body: JsonObject) -> str:
    statuses = body["status"].get("containerStatuses") or []
    return f"{sum(s['ready'] for s in statuses)}/{len(body['spec']['containers'])}"


def _pod_status(body: JsonObject) -> str:
    if "deletionTimestamp" in body["metadata"]:
        return "Terminating"
    phase = str(body["status"]["phase"])
    return {"Succeeded": "Completed", "Failed": "Error"}.get(phase, phase)


def _pod_restarts(body: JsonObject) -> int:
    return sum(s["restartCount"] for s in body["status"].get("containerStatuses") or [])


def _node_status(body: JsonObject) -> str:
    text = "Ready" if is_true(body, "Ready") else "NotReady"
    return text + (",SchedulingDisabled" if body["spec"].get("unschedulable") else "")


def _ready_of(replicas: Cell) -> Cell:
    ready = _path("status", "readyReplicas", default=0)
    return lambda body: f"{ready(body)}/{replicas(body)}"


def _node_roles(body: JsonObject) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = body["metadata"].get("labels") or {}
    roles = sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))
    return ",".join(roles) or "<none>"


def _node_address(body: JsonObject) -> str:
    addresses = (body.get("status") or {}).get("addresses") or []
    return next((str(a["address"]) for a in addresses if a["type"] == "InternalIP"), "<none>")


def _job_status(body: JsonObject) -> str:
    for kind in ("Complete", "Failed", "Suspended"):
        if is_true(body, kind):
            return kind
    return "Running"


def _job_completions(body: JsonObject) -> str:
    succeeded = (body.get("status") or {}).get("succeeded", 0)
    wanted = body["spec"].get("completions")
    return f"{succeeded}/{wanted if wanted is not None else 1}"


_NO = "<none>"
_AGE = "Age"
_REPLICAS = _path("spec", "replicas", default=1)
_COLUMNS: dict[Resource, dict[str, Cell | None]] = {
    PODS: {
        "Ready": _pod_ready,
        "Status": _pod_status,
        "Restarts": _pod_restarts,
        _AGE: None,
        "IP": _path("status", "podIP", default=_NO),
        "Node": _path("spec", "nodeName", default=_NO),
        "Nominated Node": _path("status", "nominatedNodeName", default=_NO),
    },
    NODES: {
        "Status": _node_status,
        "Roles": _node_roles,
        _AGE: None,
        "Version": _path("status", "nodeInfo", "kubeletVersion"),
        "Internal-IP": _node_address,
    },
    NAMESPACES: {"Status": _path("status", "phase"), _AGE: None},
    DEPLOYMENTS: {
        "Ready": _ready_of(_REPLICAS),
        "Up-to-date": _path("status", "updatedReplicas", default=0),
        "Available": _path("status", "availableReplicas", default=0),
        _AGE: None,
    },
    STATEFUL_SETS: {"Ready": _ready_of(_REPLICAS), _AGE: None},
    REPLICA_SETS: {
        "Desired": _REPLICAS,
        "Current": _path("status", "replicas", default=0),
        "Ready": _path("status", "readyReplicas", default=0),
        _AGE: None,
    },
    DAEMON_SETS: {
        "Desired": _path("status", "desiredNumberScheduled", default=0),
        "Current": _path("status", "currentNumberScheduled", default=0),
        "Ready": _path("status", "numberReady", default=0),
        "Up-to-date": _path("status", "updatedNumberScheduled", default=0),
        "Available": _path("status", "numberAvailable", default=0),
        _AGE: None,
    },
    JOBS: {"Status": _job_status, "Completions": _job_completions, _AGE: None},
    BUDGETS: {
        "Min Available": _path("spec", "minAvailable", default="N/A"),
        "Max Unavailable": _path("spec", "maxUnavailable", default="N/A"),
        "Allowed Disruptions": _path("status", "disruptionsAllowed", default=0),
        _AGE: None,
    },
    LEASES: {"Holder": _path("spec", "holderIdentity"), _AGE: None},
}
"""Columns after the name, in kubectl's order; None is the age."""
_WIDE = {"IP", "Node", "Nominated Node", "Internal-IP"}
"""Columns that only `-o wide` shows."""
_ONLY_AGE: dict[str, Cell | None] = {_AGE: None}


def _age(body: JsonObject, now: datetime) -> str:
    """Return a duration as kubectl writes it: in the largest sufficient unit."""
    seconds = int((now - parse_time(body["metadata"]["creationTimestamp"])).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{max(0, seconds)}s"


def _row(resource: Resource, body: JsonObject, now: datetime) -> JsonObject:
    columns = _COLUMNS.get(resource, _ONLY_AGE).values()
    cells = [_age(body, now) if cell is None else cell(body) for cell in columns]
    partial = {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": body["metadata"],
    }
    return {"cells": [body["metadata"]["name"], *cells], "object": partial}


def _definitions(resource: Resource) -> list[JsonObject]:
    names = ["Name", *_COLUMNS.get(resource, _ONLY_AGE)]
    return [
        {
            "name": name,
            "type": "string",
            "format": "name" if name == "Name" else "",
            "description": "",
            "priority": int(name in _WIDE),
        }
        for name in names
    ]


def table(
    resource: Resource, entries: list[Entry], metadata: JsonObject, now: datetime
) -> JsonObject:
    """Return objects of one type as a Table."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": _definitions(resource),
        "rows": [_row(resource, entry.body, now) for entry in entries],
    }


def table_lines(resource: Resource, lines: Iterator[bytes], now: Now) -> Iterator[bytes]:
    """Yield a watch stream whose objects are Tables of one row, for `kubectl get --watch`."""
    for chunk in lines:
        yield b"".join(_table_line(resource, line, now()) for line in chunk.splitlines())


def _table_line(resource: Resource, line: bytes, now: datetime) -> bytes:
    event = orjson.loads(line)
    if event["type"] in {"BOOKMARK", "ERROR"}:
        return line + b"\n"
    entry = Entry(resource, event["object"], 0)
    version = {"resourceVersion": entry.body["metadata"]["resourceVersion"]}
    return orjson.dumps({**event, "object": table(resource, [entry], version, now)}) + b"\n"
