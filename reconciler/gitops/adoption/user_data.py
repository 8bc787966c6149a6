"""Reads from user data what the eks_fleet module has variables for; pure.

AL2023 (nodeadm's NodeConfig in a MIME part), Bottlerocket (TOML) and AL2 (bootstrap.sh) are known.
"""

import email
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.config.document import read_document
from reconciler.config.terraform import AmiType
from reconciler.gitops.untrusted_json import mapping
from reconciler.model.errors import ConfigError

_PLACEHOLDER = "@ENDPOINT@"
"""What the module writes where a node asks EKS for the cluster's data at boot."""
_NODE_LABELS = re.compile(r"--node-labels[= ]['\"]?([^\s'\"]+)")
_TAINTS = re.compile(r"--register-with-taints[= ]['\"]?([^\s'\"]+)")
_MAX_PODS = re.compile(r"--max-pods[= ]['\"]?(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBoot:
    """Says what user data settles of a node's first boot."""

    ami_type: AmiType | None = None
    """None: not of a kind that the module writes."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    """Module variables of the kubelet and the cluster's data, where they are stated."""


def read_boot(user_data: str) -> FirstBoot:
    """Return what user data says; what is not understood is left out and is never an error."""
    user_data = user_data.encode(errors="replace").decode()
    config = _node_config(user_data)
    if config is not None:
        return _al2023(config)
    settings = _bottlerocket_settings(user_data)
    return _al2(user_data) if settings is None else _bottlerocket(settings)


def _node_config(user_data: str) -> Mapping[str, Any] | None:
    """Return the spec of the first NodeConfig, on one line as the module has it, or in YAML."""
    for text in (*user_data.splitlines(), *_parts(user_data)):
        if "node.eks.aws/" not in text:
            continue
        found = _document(text)
        if found.get("kind") == "NodeConfig":
            return mapping(found.get("spec"))
    return None


def _parts(user_data: str) -> list[str]:
    """Return the parts of MIME user data; all of it when it is not MIME."""
    parts = [part.get_payload() for part in email.message_from_string(user_data).walk()]
    return [part for part in (*parts, user_data) if isinstance(part, str)]


def _document(text: str) -> Mapping[str, Any]:
    """Return a JSON or YAML mapping with YAML's scalars as texts; empty when it is neither."""
    try:
        return mapping(json.loads(text))
    except (ValueError, RecursionError):
        pass
    try:
        return read_document(text.encode(errors="replace"))
    except ConfigError:
        return {}


def _al2023(spec: Mapping[str, Any]) -> FirstBoot:
    kubelet, cluster = mapping(spec.get("kubelet")), mapping(spec.get("cluster"))
    config, flags = mapping(kubelet.get("config")), kubelet.get("flags")
    said = " ".join(str(flag) for flag in flags) if isinstance(flags, list) else ""
    variables = {
        "max_pods": _count(config.get("maxPods")),
        "kube_reserved": config.get("kubeReserved"),
        "system_reserved": config.get("systemReserved"),
        "eviction_hard": config.get("evictionHard"),
    }
    if cluster.get("apiServerEndpoint") != _PLACEHOLDER:
        variables |= {
            "cluster_endpoint": cluster.get("apiServerEndpoint"),
            "cluster_ca": cluster.get("certificateAuthority"),
            "service_cidr": cluster.get("cidr"),
        }
    taints = config.get("registerWithTaints")
    return FirstBoot(
        ami_type="AL2023",
        labels=_labels(said),
        taints=tuple(_taint(each) for each in taints) if isinstance(taints, list) else (),
        variables={key: value for key, value in variables.items() if value},
    )


def _bottlerocket_settings(user_data: str) -> Mapping[str, Any] | None:
    try:
        document = tomllib.loads(user_data)
    except (ValueError, RecursionError):
        return None
    settings = mapping(document.get("settings")).get("kubernetes")
    return settings if isinstance(settings, dict) else None


def _bottlerocket(settings: Mapping[str, Any]) -> FirstBoot:
    names = {
        "max-pods": "max_pods",
        "kube-reserved": "kube_reserved",
        "system-reserved": "system_reserved",
        "eviction-hard": "eviction_hard",
        "api-server": "cluster_endpoint",
        "cluster-certificate": "cluster_ca",
    }
    taints = [
        {"key": key, "value": value, "effect": effect}
        for key, written in mapping(settings.get("node-taints")).items()
        for value, _, effect in (str(each).rpartition(":") for each in _list(written))
    ]
    return FirstBoot(
        ami_type="BOTTLEROCKET",
        labels=mapping(settings.get("node-labels")),
        taints=tuple(taints),
        variables={new: settings[old] for old, new in names.items() if settings.get(old)},
    )


def _al2(user_data: str) -> FirstBoot:
    taints, pods = _TAINTS.search(user_data), _MAX_PODS.search(user_data)
    written = taints.group(1).split(",") if taints else []
    split = (each.rpartition(":") for each in written if ":" in each)
    return FirstBoot(
        ami_type="AL2" if "/etc/eks/bootstrap.sh" in user_data else None,
        labels=_labels(user_data),
        taints=tuple(
            {"key": key, "value": value, "effect": effect}
            for label, _, effect in split
            for key, _, value in [label.partition("=")]
        ),
        variables={"max_pods": int(pods.group(1))} if pods else {},
    )


def _labels(said: str) -> dict[str, str]:
    found = _NODE_LABELS.search(said)
    pairs = (each.partition("=") for each in found.group(1).split(",")) if found else ()
    return {key: value for key, equals, value in pairs if equals}


def _taint(written: Any) -> dict[str, str]:
    taint = mapping(written)
    return {key: str(taint.get(key) or "") for key in ("key", "value", "effect")}


def _count(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isdecimal() else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
