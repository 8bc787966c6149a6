"""The Node object that an instance registers: labels, taints, capacity, allocatable.

Reservations are those of EKS's images; hard eviction at 100 MiB of memory and 10 % of the disk
(awslabs/amazon-eks-ami, nodeadm kubelet config, 2024).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.eks_reserve import (
    EKS_EVICTION_MEMORY_BYTES,
    eks_cpu_reserved_milli,
    eks_memory_reserved_bytes,
)
from reconciler.model.errors import InputError
from reconciler.model.fleet import InstanceType
from reconciler.model.quantity import milli, whole
from reconciler.sandbox.joiner.user_data import BootConfig

_GIB = 2**30
_DISK_RESERVED_BYTES = _GIB
_DISK_EVICTION_PERCENT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFacts:
    """Facts about an instance, as its metadata service states them."""

    instance_id: str
    state: str
    instance_type: str
    lifecycle: str
    region: str
    zone: str
    private_ip: str
    private_dns_name: str
    image_id: str
    user_data: str
    tags: Mapping[str, str]
    joins: bool = True
    """False: a fault of the script; it runs and never becomes a node."""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "InstanceFacts":
        """Return the facts of one instance of the control API; absent texts are empty."""
        texts = {
            name: str(body.get(name) or "")
            for name in cls.__dataclass_fields__
            if name not in {"tags", "joins"}
        }
        joins = bool(body.get("joins", True))
        return cls(**texts, tags=dict(body.get("tags") or {}), joins=joins)


def _disk_reserved(disk_bytes: int) -> int:
    return disk_bytes * _DISK_EVICTION_PERCENT // 100 + _DISK_RESERVED_BYTES


def _reserved(config: BootConfig, name: str, formula: int) -> int:
    """Return the milli-CPU or bytes that are reserved, not for pods."""
    read = milli if name == "cpu" else whole
    kube = config.kube_reserved
    own = formula if kube is None else read(kube.get(name, "0"))
    return own + read(config.system_reserved.get(name, "0"))


def resources(
    kind: InstanceType, config: BootConfig, disk_bytes: int
) -> tuple[dict[str, str], dict[str, str]]:
    """Return capacity and allocatable, as the kubelet reports them."""
    pods = config.max_pods or kind.pods_max
    cores = kind.cpu_milli // 1000
    cpu = kind.cpu_milli - _reserved(config, "cpu", eks_cpu_reserved_milli(cores))
    eviction = config.eviction_hard.get("memory.available", str(EKS_EVICTION_MEMORY_BYTES))
    if eviction.endswith("%"):
        threshold = kind.memory_bytes * int(eviction[:-1]) // 100
    else:
        threshold = whole(eviction)
    memory = kind.memory_bytes - threshold
    memory -= _reserved(config, "memory", eks_memory_reserved_bytes(pods))
    capacity = {
        "cpu": str(cores),
        "memory": f"{kind.memory_bytes // 1024}Ki",
        "ephemeral-storage": str(disk_bytes),
        "pods": str(pods),
    }
    allocatable = {
        "cpu": f"{cpu}m",
        "memory": f"{memory // 1024}Ki",
        "ephemeral-storage": str(disk_bytes - _disk_reserved(disk_bytes)),
        "pods": str(pods),
    }
    if kind.gpus:
        capacity["nvidia.com/gpu"] = allocatable["nvidia.com/gpu"] = str(kind.gpus)
    return capacity, allocatable


def _labels(facts: InstanceFacts, kind: InstanceType, config: BootConfig) -> dict[str, str]:
    """Return the user data's labels and the well-known ones of kubelet and cloud controller."""
    return {
        **config.labels,
        "kubernetes.io/hostname": facts.private_dns_name,
        "kubernetes.io/arch": kind.arch,
        "kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": kind.arch,
        "beta.kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": facts.instance_type,
        "beta.kubernetes.io/instance-type": facts.instance_type,
        "topology.kubernetes.io/region": facts.region,
        "failure-domain.beta.kubernetes.io/region": facts.region,
        "topology.kubernetes.io/zone": facts.zone,
        "failure-domain.beta.kubernetes.io/zone": facts.zone,
        "topology.ebs.csi.aws.com/zone": facts.zone,
    }


def node_object(
    facts: InstanceFacts, config: BootConfig, types: Mapping[str, InstanceType], disk_bytes: int
) -> dict[str, Any]:
    """Return a v1 Node without conditions: the kubelet adds them.

    Raises:
        InputError: The instance type is in no catalogue, or an amount is no quantity.
    """
    kind = types.get(facts.instance_type)
    if kind is None:
        raise InputError(facts.instance_id, f"unknown instance type {facts.instance_type}")
    try:
        capacity, allocatable = resources(kind, config, disk_bytes)
    except ValueError as error:
        raise InputError("user data", f"what it keeps from pods: {error}") from error
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": facts.private_dns_name, "labels": _labels(facts, kind, config)},
        "spec": {
            "providerID": f"aws:///{facts.zone}/{facts.instance_id}",
            "taints": [dict(taint) for taint in config.taints],
        },
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "addresses": [
                {"type": "InternalIP", "address": facts.private_ip},
                {"type": "InternalDNS", "address": facts.private_dns_name},
                {"type": "Hostname", "address": facts.private_dns_name},
            ],
        },
    }
