"""Encodes demand as lines of JSON: keys in a stable order, defaults left out."""

from collections.abc import Mapping
from typing import Any, assert_never

import orjson

from reconciler.model.cluster import Owner, PodSpec
from reconciler.model.demand import (
    BudgetDemand,
    ClaimDemand,
    ClaimTemplate,
    ControllerDemand,
    CronDemand,
    DemandLine,
    FaultDemand,
    FleetFact,
    NodeFact,
    PodDemand,
    PodEnd,
    PodVolumes,
)
from reconciler.model.volumes import EBS_DRIVER, ONE_NODE
from reconciler.records.kubernetes.encoding import (
    encode_pod_spec,
    encode_resources,
    encode_selector,
    present,
    with_volumes,
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
    "storage_class": "",
    "driver": EBS_DRIVER,
    "immediate": False,
    "access_modes": [ONE_NODE],
    "volume_claim_templates": [],
}
"""Left out of every line, as decoding assumes these values."""


def encode_line(line: DemandLine) -> bytes:
    """Return one line, with its newline, that decodes to an equal value."""
    fields = {"t": rfc3339_exact(line.at), **_fields(line)}
    unusual = {
        key: value
        for key, value in fields.items()
        if value is not None and _USUAL.get(key, _USUAL) != value
    }
    return orjson.dumps(unusual) + b"\n"


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
        case ClaimDemand():
            return _claim(line)
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
        "spec": _spec(pod.spec, pod.volumes),
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
        "spec": _spec(change.spec, change.volumes) if change.spec is not None else None,
        "volume_claim_templates": list(map(_claim_template, change.claim_templates)),
        "pod_management_policy": change.pod_management_policy,
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
        "spec": _spec(cron.spec, cron.volumes),
        "pods": cron.pods,
        "ran_seconds": cron.ran_seconds,
        "until": rfc3339_exact(cron.until) if cron.until is not None else None,
    }


def _claim(claim: ClaimDemand) -> Json:
    return {
        "kind": "claim",
        "id": claim.id,
        "namespace": claim.namespace,
        "zone": claim.zone or None,
        "storage_class": claim.storage_class,
        "driver": claim.driver,
        "immediate": claim.immediate,
        "access_modes": list(claim.access_modes),
        "deleted": claim.deleted,
    }


def _claim_template(template: ClaimTemplate) -> Json:
    """Return a template as in a StatefulSet's manifest."""
    modes = list(template.access_modes)
    spec = {"storageClassName": template.storage_class, "accessModes": modes}
    return {"metadata": {"name": template.name}, "spec": present(spec)}


def _spec(spec: PodSpec, volumes: PodVolumes) -> Json:
    return with_volumes(encode_pod_spec(spec), volumes.claims, volumes.ephemeral)


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
