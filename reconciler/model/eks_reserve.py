"""What EKS's images keep of a machine for the system.

Source: awslabs/amazon-eks-ami, nodeadm kubelet config (2024): CPU 6 % of the first core, 1 % of the
second, 0.5 % of the next two, 0.25 % of the rest; memory 255 MiB + 11 MiB per pod, and 100 MiB
below which the kubelet evicts pods.

A kernel takes some percent of the memory that EC2 states as well. That differs by type and image,
and is left out: a node that offers less shows it when it joins, whereas a group that is thought to
offer less than it does never gets a node for the pods that would fit.
"""

from typing import Final

_MIB = 2**20
EKS_EVICTION_MEMORY_BYTES: Final = 100 * _MIB
"""Memory that the kubelet keeps free by evicting pods; not allocatable either."""


def eks_cpu_reserved_milli(cores: int) -> int:
    """Return the milli-CPU that EKS reserves for the system."""
    shares = [60, 10, 5, 5]
    return int(sum(shares[:cores]) + max(0, cores - 4) * 2.5)


def eks_memory_reserved_bytes(pods_max: int) -> int:
    """Return the bytes of memory that EKS reserves for the system."""
    return (255 + 11 * pods_max) * _MIB
