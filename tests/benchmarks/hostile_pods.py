"""What the objects of a tenant who slows planning down are made of."""

from collections.abc import Mapping
from typing import Any

from tests.builders import HOSTNAME

Json = dict[str, Any]
NODES = 200
HOSTILE, PEACEFUL = "hostile", "peaceful"


def pod(name: str, spec: Json | None = None, *, namespace: str = HOSTILE, **labels: str) -> Json:
    """A small pending pod; `spec` is laid over it."""
    container = {"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    return {
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "uid": name, "labels": labels},
        "spec": {"containers": [container], **(spec or {})},
        "status": {"phase": "Pending"},
    }


def bound(made: Json, number: int) -> Json:
    """The pod, running on one of the nodes."""
    made["spec"]["nodeName"] = f"node-{number % NODES:05}"
    made["status"]["phase"] = "Running"
    return made


def spread(key: str, **labels: str) -> Json:
    """A hard spread constraint."""
    return {
        "topologyKey": key,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }


def term(key: str, operator: str = "In", *values: str, topology: str = HOSTNAME) -> Json:
    """A term about pods by one line of their labels."""
    line: Json = {"key": key, "operator": operator}
    if values:
        line["values"] = values
    return {"topologyKey": topology, "labelSelector": {"matchExpressions": [line]}}


def anti(*terms: Json) -> Json:
    """Required anti-affinity to other pods."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"podAntiAffinity": {required: terms}}}


def near(*terms: Json) -> Json:
    """Required affinity to other pods."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"podAffinity": {required: terms}}}


def preferring(*terms: Json) -> Json:
    """Preferred affinity to other pods."""
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    return {"affinity": {"podAffinity": {preferred: weighted}}}


def node_affinity(*lines: Json, fields: bool = False) -> Json:
    """Required node affinity: one term of these lines."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    part = "matchFields" if fields else "matchExpressions"
    return {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": [{part: lines}]}}}}


def requests_of(extra: Mapping[str, str]) -> Json:
    """A container that asks for more than CPU and memory."""
    requests = {"cpu": "100m", "memory": "64Mi", **extra}
    return {"containers": [{"name": "c", "resources": {"requests": requests}}]}


def ports_of(*numbers: int) -> Json:
    """A container with host ports."""
    ports = [{"containerPort": 80, "hostPort": number} for number in numbers]
    requests = {"cpu": "100m", "memory": "64Mi"}
    return {"containers": [{"name": "c", "resources": {"requests": requests}, "ports": ports}]}


def volume_of(claim: str) -> Json:
    """A volume that a claim names."""
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}
