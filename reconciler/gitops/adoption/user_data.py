"""Reads from user data what the eks_fleet module has variables for; pure.

AL2023 (nodeadm's NodeConfig in a MIME part), Bottlerocket (TOML) and AL2 (bootstrap.sh) are known.
"""

import email
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
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
    specs = _node_config_specs(user_data)
    if specs:
        return _al2023(specs)
    settings = _bottlerocket_settings(user_data)
    return _al2(user_data) if settings is None else _bottlerocket(settings)


def _node_config_specs(user_data: str) -> Sequence[Mapping[str, Any]]:
    """Return the specs of all NodeConfigs in their order: in MIME parts, or alone without MIME."""
    message = email.message_from_string(user_data)
    parts = [part.get_payload() for part in message.walk() if not part.is_multipart()]
    in_parts = [spec for part in parts for spec in _specs_in(str(part))]
    # The header of MIME has the form of YAML, so a NodeConfig alone is taken for a header.
    return in_parts or list(_specs_in(user_data))


def _specs_in(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the spec of a text that is one NodeConfig, else those of its lines that are one."""
    for each in (text, *text.splitlines()):
        found = _document(each) if "node.eks.aws/" in each else {}
        if found.get("kind") == "NodeConfig":
            yield mapping(found.get("spec"))
            if each is text:
                return


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


def _al2023(specs: Sequence[Mapping[str, Any]]) -> FirstBoot:
    """Return what NodeConfigs say together: nodeadm merges them, and later ones override.

    Source: awslabs/amazon-eks-ami nodeadm/doc/examples.md, read 2026-11. Flags are added up, and
    the kubelet takes a flag before its config file.
    """
    spec = reduce(_merged, specs)
    kubelet, cluster = mapping(spec.get("kubelet")), mapping(spec.get("cluster"))
    config = mapping(kubelet.get("config"))
    said = " ".join(
        str(flag) for each in specs for flag in _list(mapping(each.get("kubelet")).get("flags"))
    )
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
    in_config = tuple(_taint(each) for each in taints) if isinstance(taints, list) else ()
    return FirstBoot(
        ami_type="AL2023",
        labels=_labels(said),
        taints=_flag_taints(said) or in_config,
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
    pods = _MAX_PODS.search(user_data)
    return FirstBoot(
        ami_type="AL2" if "/etc/eks/bootstrap.sh" in user_data else None,
        labels=_labels(_first_line(_NODE_LABELS, user_data)),
        taints=_flag_taints(_first_line(_TAINTS, user_data)),
        variables={"max_pods": int(pods.group(1))} if pods else {},
    )


def _first_line(flag: re.Pattern[str], script: str) -> str:
    """Return the first line of a script that has a flag: further ones are often other branches."""
    return next(filter(flag.search, script.splitlines()), "")


def _merged(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return both; mappings are merged as well, and a later key without a value changes none."""
    both = {
        key: _merged(mapping(earlier[key]), mapping(later[key]))
        for key in earlier.keys() & later.keys()
        if isinstance(earlier[key], Mapping)
    }
    return {**earlier, **later, **both}


def _labels(said: str) -> dict[str, str]:
    """Return the labels of kubelet flags: those of several flags add up, as in the kubelet."""
    pairs = (
        each.partition("=") for labels in _NODE_LABELS.findall(said) for each in labels.split(",")
    )
    return {key: value for key, equals, value in pairs if equals}


def _flag_taints(said: str) -> tuple[Mapping[str, str], ...]:
    """Return the taints of kubelet flags: of several flags the last counts, as in the kubelet."""
    written = [each.split(",") for each in _TAINTS.findall(said)]
    split = (each.rpartition(":") for each in (written[-1] if written else ()) if ":" in each)
    return tuple(
        {"key": key, "value": value, "effect": effect}
        for label, _, effect in split
        for key, _, value in [label.partition("=")]
    )


def _taint(written: Any) -> dict[str, str]:
    taint = mapping(written)
    return {key: str(taint.get(key) or "") for key in ("key", "value", "effect")}


def _count(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isdecimal() else None


def _list(value: Any) -> list[Any]:
    """Return a list as it is, one value as a list of it, and nothing for no value."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
