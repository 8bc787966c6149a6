"""What a node of the sandbox registers with, by its user data as EC2 has it."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.errors import InputError
from reconciler.records.untrusted_json import mapping
from reconciler.records.user_data import read_boot

_WHAT = "user data"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootConfig:
    """The settings of a node in its user data."""

    cluster: str = ""
    """Empty: not known before it boots."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    max_pods: int | None = None
    """None: the instance type's own figure."""
    kube_reserved: Mapping[str, str] | None = None
    """None: what EKS's formula says."""
    system_reserved: Mapping[str, str] = field(default_factory=dict)
    eviction_hard: Mapping[str, str] = field(default_factory=dict)


def read_user_data(text: str, *, cluster: str = "") -> BootConfig:
    """Read user data, base64 or plain.

    Args:
        text: The user data.
        cluster: The only cluster that may be joined; empty: any.

    Raises:
        InputError: Nothing in it tells a node how to join, or it names another cluster: such an
            instance never joins.
    """
    plain = _decoded(text)
    boot = read_boot(plain)
    if boot.ami_type is None:
        lacks = "has no NodeConfig, no Bottlerocket settings, and no call of /etc/eks/bootstrap.sh"
        raise InputError(_WHAT, lacks if plain.strip() else "is empty")
    if cluster and boot.cluster not in {"", cluster}:
        raise InputError(_WHAT, f"names the cluster {boot.cluster}, not {cluster}")
    variables = boot.variables
    reserved = variables.get("kube_reserved")
    return BootConfig(
        cluster=boot.cluster,
        labels=_texts(boot.labels),
        taints=tuple(_texts({k: v for k, v in taint.items() if v}) for taint in boot.taints),
        max_pods=variables.get("max_pods"),
        kube_reserved=None if reserved is None else _texts(reserved),
        system_reserved=_texts(variables.get("system_reserved")),
        eviction_hard=_texts(variables.get("eviction_hard")),
    )


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return text


def _texts(body: object) -> dict[str, str]:
    return {str(key): str(value) for key, value in mapping(body).items()}
