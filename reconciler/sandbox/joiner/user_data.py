"""User data as the image reads it at first boot: nodeadm's NodeConfig, or Bottlerocket's TOML.

Sources: awslabs/amazon-eks-ami nodeadm (node.eks.aws/v1alpha1); Bottlerocket settings.kubernetes.
"""

import base64
import binascii
import email
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from reconciler.model.errors import InputError

_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)\n\s*\1\s*(?:\n|$)", re.DOTALL)
_LABELS_FLAG = "--node-labels="
_TAINTS_FLAG = "--register-with-taints="


@dataclass(frozen=True, slots=True, kw_only=True)
class BootConfig:
    """The settings of a node in its user data."""

    cluster: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    max_pods: int | None = None
    """None: the instance type's own figure."""
    kube_reserved: Mapping[str, str] | None = None
    """None: what EKS's formula says."""
    system_reserved: Mapping[str, str] = field(default_factory=dict)
    eviction_hard: Mapping[str, str] = field(default_factory=dict)


def read_user_data(text: str) -> BootConfig:
    """Read user data, base64 or plain.

    Raises:
        InputError: Nothing in it tells a node how to join: such an instance never does.
    """
    plain = _decoded(text)
    try:
        if plain.lstrip().startswith("[") or "[settings.kubernetes" in plain:
            return _bottlerocket(tomllib.loads(plain))
        for document in _documents(plain):
            config = _node_config(document)
            if config is not None:
                return config
    except (ValueError, TypeError, AttributeError, KeyError, yaml.YAMLError) as error:
        raise InputError("user data", f"cannot be read: {error}") from error
    raise InputError("user data", "has neither a NodeConfig nor Bottlerocket settings")


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return text


def _documents(text: str) -> Iterator[str]:
    """Yield the MIME parts, and what shell scripts among them write with here-documents."""
    if "multipart/" not in text:
        yield from _with_heredocs(text)
        return
    for part in email.message_from_string(text.lstrip()).walk():
        payload = part.get_payload(decode=True)
        if isinstance(payload, bytes):
            yield from _with_heredocs(payload.decode(errors="replace"))


def _with_heredocs(text: str) -> Iterator[str]:
    if text.lstrip().startswith("#!"):
        for match in _HEREDOC.finditer(text):
            yield match.group(2)
    else:
        yield text


def _node_config(document: str) -> BootConfig | None:
    body = yaml.safe_load(document)
    if not isinstance(body, dict) or body.get("kind") != "NodeConfig":
        return None
    spec = body.get("spec") or {}
    kubelet = spec.get("kubelet") or {}
    config = kubelet.get("config") or {}
    flags = [str(flag) for flag in kubelet.get("flags") or ()]
    return BootConfig(
        cluster=str((spec.get("cluster") or {}).get("name", "")),
        labels=_flag_labels(flags),
        taints=(*_taints(config.get("registerWithTaints") or ()), *_flag_taints(flags)),
        max_pods=config.get("maxPods"),
        kube_reserved=_texts(config["kubeReserved"]) if "kubeReserved" in config else None,
        system_reserved=_texts(config.get("systemReserved") or {}),
        eviction_hard=_texts(config.get("evictionHard") or {}),
    )


def _texts(body: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in body.items()}


def _taints(items: Any) -> list[Mapping[str, str]]:
    return [_texts({k: v for k, v in item.items() if v not in {None, ""}}) for item in items]


def _flag_labels(flags: list[str]) -> dict[str, str]:
    """Return the labels of `--node-labels=a=b,c=d`."""
    pairs = [
        pair.partition("=")
        for flag in flags
        if flag.startswith(_LABELS_FLAG)
        for pair in flag.removeprefix(_LABELS_FLAG).split(",")
        if pair
    ]
    return {key: value for key, _, value in pairs}


def _flag_taints(flags: list[str]) -> list[Mapping[str, str]]:
    """Return the taints of `--register-with-taints=key=value:Effect,…`."""
    found: list[Mapping[str, str]] = []
    for flag in flags:
        if flag.startswith(_TAINTS_FLAG):
            for text in flag.removeprefix(_TAINTS_FLAG).split(","):
                left, _, effect = text.rpartition(":")
                key, _, value = left.partition("=")
                found.append(
                    _texts({"key": key, "effect": effect} | ({"value": value} if value else {}))
                )
    return found


def _bottlerocket(body: Mapping[str, Any]) -> BootConfig:
    settings: Mapping[str, Any] = body.get("settings", {}).get("kubernetes", {})
    if not settings:
        raise InputError("user data", "has no settings.kubernetes")
    taints = []
    for key, values in (settings.get("node-taints") or {}).items():
        for text in [values] if isinstance(values, str) else values:
            value, _, effect = str(text).rpartition(":")
            taints.append(
                _texts({"key": key, "effect": effect} | ({"value": value} if value else {}))
            )
    reserved = settings.get("kube-reserved")
    return BootConfig(
        cluster=str(settings.get("cluster-name", "")),
        labels=_texts(settings.get("node-labels") or {}),
        taints=tuple(taints),
        max_pods=settings.get("max-pods"),
        kube_reserved=_texts(reserved) if reserved else None,
        system_reserved=_texts(settings.get("system-reserved") or {}),
        eviction_hard=_texts(settings.get("eviction-hard") or {}),
    )
