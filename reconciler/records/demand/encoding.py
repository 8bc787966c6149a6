"""Encodes demand as lines of JSON: keys in a stable order, defaults left out."""

from collections.abc import Mapping
from typing import Any, assert_never

import orjson

from reconciler.model.cluster import Owner
from reconciler.model.demand import (
    BudgetDemand,
    ControllerDemand,
    CronDemand,
    DemandLine,
    FaultDemand,
    FleetFact,
    NodeFact,
    PodDemand,
    PodEnd,
)
from reconciler.records.kubernetes.encoding import (
    encode_pod_spec,
    encode_resources,
    encode_selector,
)
from reconciler.records.times import rfc3339_exact

Json = dict[str, Any]

_USUAL: Mapping[str, object] = {
    "namespace": "default",
    "labels": {},
    "annotations": {},
    "fleet": "",
    "time_zone": "UTC",
    "pods": 1,
    "deleted": False,
}
"""Left out of every line, as decoding assumes these values."""


def encode_line(line: DemandLine) -> bytes:
    """Return one line, with its newline, that decodes to an equal value."""
    fields = {"t": rfc3339_exact(line.at), **_fields(line)}
    said = {
        key: value
        for key, value in fields.items()
        if value is not None and _USUAL.get(key, _USUAL) != value
    }
    return orjson.dumps(said) + b"\n"


def _fields(line: DemandLine) -> Json:  # noqa: PLR0911 - one for each kind
    match line:
        case PodDemand():
            return _pod(line)
        case PodEnd():
            return {"kind": "end", "id": line.id, "ran_seconds": line.ran_seconds,
                    "kept_seconds": line.kept_seconds}  # fmt: skip
        case ControllerDemand():
            return _controller(line)
        case BudgetDemand():
            return _budget(line)
        case CronDemand():
            return _cron(line)
        case FaultDemand():
            return _fault(line)
        case FleetFact():
            return {"kind": "fleet", "fleet": line.fleet, "target": line.target,
                    "joined": line.joined}  # fmt: skip
        case NodeFact():
            return {"kind": "node", "fleet": line.fleet, "instance_type": line.instance_type,
                    "allocatable": encode_resources(line.allocatable)}  # fmt: skip
        case _:
            assert_never(line)


def _pod(pod: PodDemand) -> Json:
    return {
        "kind": "pod",
        "id": pod.id,
        "namespace": pod.namespace,
        "controller": _owner(pod.controller),
        "labels": dict(pod.labels),
        "annotations": dict(pod.annotations),
        "spec": encode_pod_spec(pod.spec),
        "ran_seconds": pod.ran_seconds,
        "kept_seconds": pod.kept_seconds,
        "until": rfc3339_exact(pod.until) if pod.until is not None else None,
    }


def _controller(change: ControllerDemand) -> Json:
    return {
        "kind": "controller",
        "controller": _owner(change.controller),
        "namespace": change.namespace,
        "replicas": change.replicas,
        "labels": dict(change.labels),
        "annotations": dict(change.annotations),
        "spec": encode_pod_spec(change.spec) if change.spec is not None else None,
        "deleted": change.deleted,
    }


def _budget(budget: BudgetDemand) -> Json:
    return {
        "kind": "pdb",
        "id": budget.id,
        "namespace": budget.namespace,
        "selector": encode_selector(budget.selector),
        "min_available": budget.min_available,
        "max_unavailable": budget.max_unavailable,
        "deleted": budget.deleted,
    }


def _cron(cron: CronDemand) -> Json:
    return {
        "kind": "cron",
        "id": cron.id,
        "namespace": cron.namespace,
        "schedule": cron.schedule,
        "time_zone": cron.time_zone,
        "labels": dict(cron.labels),
        "annotations": dict(cron.annotations),
        "spec": encode_pod_spec(cron.spec),
        "pods": cron.pods,
        "ran_seconds": cron.ran_seconds,
        "until": rfc3339_exact(cron.until) if cron.until is not None else None,
    }


def _fault(fault: FaultDemand) -> Json:
    return {
        "kind": "fault",
        "fault": fault.fault,
        "fleet": fault.fleet,
        "instance_type": fault.instance_type,
        "zone": fault.zone,
        "code": fault.code,
        "instances": fault.instances,
        "seconds": fault.seconds,
        "until": rfc3339_exact(fault.until) if fault.until is not None else None,
    }


def _owner(owner: Owner | None) -> Json | None:
    return None if owner is None else {"kind": owner.kind, "name": owner.name}
