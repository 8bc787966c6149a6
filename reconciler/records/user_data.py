"""Reads from user data what an instance is given at its first boot, as its image reads it.

AL2023 (nodeadm's NodeConfig), Bottlerocket (TOML) and AL2 (bootstrap.sh) are known. Scripts are not
run: what one of them finds out at boot is left out.
"""

import email
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from functools import reduce
from typing import Any, Final

from reconciler.config.document import read_document
from reconciler.config.terraform import AmiType
from reconciler.model.errors import ConfigError
from reconciler.records.untrusted_json import mapping

_PLACEHOLDER = "@ENDPOINT@"
"""What the module writes where a node asks EKS for the cluster's data at boot."""
_NODEADM: Final = "node.eks.aws/"
"""The API group of a NodeConfig."""
_NODE_LABELS = re.compile(r"--node-labels[= ]['\"]?([^\s'\"]+)")
_TAINTS = re.compile(r"--register-with-taints[= ]['\"]?([^\s'\"]+)")
_MAX_PODS = re.compile(r"--max-pods[= ]['\"]?(\d+)")
_NO_PODS_OF_TYPE = re.compile(r"--use-max-pods[= ]['\"]?false")
_KUBELET_PODS_MAX: Final = 110
"""The kubelet's own maximum, where neither bootstrap.sh nor a flag gives it another."""
_AMOUNTS = re.compile(r"--(kube-reserved|system-reserved|eviction-hard)[= ]['\"]?([^\s'\"]+)")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)\n\s*\1\s*(?:\n|$)", re.DOTALL)
_BOOTSTRAP: Final = "/etc/eks/bootstrap.sh"
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_END_OF_COMMAND: Final = "\n;&|<>()"
_ENDS: Final = (*_END_OF_COMMAND, "#")
_CLUSTER_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]*", re.ASCII)
_KNOWN_AT_BOOT_ONLY = re.compile(r"[$`]")


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBoot:
    """Says what user data settles of a node's first boot."""

    ami_type: AmiType | None = None
    """None: not of a kind that the module writes."""
    cluster: str = ""
    """Empty: it names none, or finds its name out at boot."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    """Module variables of the kubelet and the cluster's data, where they are stated."""


def read_boot(user_data: str) -> FirstBoot:
    """Return what user data says; what is not understood is left out and is never an error."""
    user_data = user_data.encode(errors="replace").decode().lstrip()
    parts = _parts(user_data)
    # The header of MIME has the form of YAML, so a NodeConfig alone is taken for a header.
    specs = [spec for part in parts for spec in _specs_in(part)] or _specs_in(user_data)
    if specs:
        return _al2023(specs)
    settings = _bottlerocket_settings(user_data)
    if settings is not None:
        return _bottlerocket(settings)
    scripts = "\n".join(parts)
    return _al2(scripts if _BOOTSTRAP in scripts else user_data)


def _parts(user_data: str) -> list[str]:
    """Return the texts of MIME parts; one text where it is no MIME."""
    message = email.message_from_string(user_data)
    return [_text_of(part) for part in message.walk() if not part.is_multipart()]


def _text_of(part: Message) -> str:
    encoding = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
    if encoding in {"base64", "quoted-printable"}:
        content = part.get_payload(decode=True)
        return content.decode(errors="replace") if isinstance(content, bytes) else ""
    return str(part.get_payload())


def _specs_in(text: str) -> list[Mapping[str, Any]]:
    """Return the spec of a text that is one NodeConfig, else those of what scripts write."""
    if _NODEADM not in text:
        return []
    here_documents = [found.group(2) for found in _HEREDOC.finditer(text)]
    for texts in ([text], here_documents, text.splitlines()):
        found = [spec for each in texts for spec in _spec_of(each)]
        if found:
            return found
    return []


def _spec_of(text: str) -> Iterator[Mapping[str, Any]]:
    found = _document(text) if _NODEADM in text else {}
    if found.get("kind") == "NodeConfig":
        yield mapping(found.get("spec"))


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
    text = " ".join(
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
    in_config = tuple(_taint(taint) for taint in taints) if isinstance(taints, list) else ()
    return FirstBoot(
        ami_type="AL2023",
        cluster=_cluster_name(cluster.get("name")),
        labels=_labels(text),
        taints=_flag_taints(text) or in_config,
        variables={key: value for key, value in variables.items() if value},
    )


def _bottlerocket_settings(user_data: str) -> Mapping[str, Any] | None:
    try:
        document = tomllib.loads(user_data)
    except (ValueError, RecursionError):
        return None
    settings = mapping(document.get("settings")).get("kubernetes")
    return settings if isinstance(settings, dict) and settings else None


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
    stated = {**settings, "max-pods": _count(settings.get("max-pods"))}
    variables = {new: stated[old] for old, new in names.items() if stated.get(old)}
    return FirstBoot(
        ami_type="BOTTLEROCKET",
        cluster=_cluster_name(settings.get("cluster-name")),
        labels=mapping(settings.get("node-labels")),
        taints=tuple(taints),
        variables=variables,
    )


def _al2(script: str) -> FirstBoot:
    """Return what the call of bootstrap.sh says.

    Source: awslabs/amazon-eks-ami, files/bootstrap.sh of the AL2 images, read 2026-11.
    """
    script = _COMMENT.sub("", script)
    pods = _MAX_PODS.search(script)
    pods_max = int(pods.group(1)) if pods else 0
    if not pods_max and _NO_PODS_OF_TYPE.search(script):
        pods_max = _KUBELET_PODS_MAX
    amounts = {
        flag.replace("-", "_"): _pairs(text, "<" if flag == "eviction-hard" else "=")
        for flag, text in reversed(_AMOUNTS.findall(script))
    }
    variables = {"max_pods": pods_max, **amounts}
    return FirstBoot(
        ami_type="AL2" if _BOOTSTRAP in script else None,
        cluster=_bootstrapped_cluster(script),
        labels=_labels(_first_line(_NODE_LABELS, script)),
        taints=_flag_taints(_first_line(_TAINTS, script)),
        variables={key: value for key, value in variables.items() if value},
    )


def _bootstrapped_cluster(script: str) -> str:
    """Return the name that bootstrap.sh is given: its one word that is no option and no value."""
    for after in script.replace("\\\n", " ").split(_BOOTSTRAP)[1:]:
        words = _words(after)
        name = next((word for word in words if not _takes_a_value(word, words)), "")
        if _CLUSTER_NAME.fullmatch(name) or _KNOWN_AT_BOOT_ONLY.search(name):
            return _cluster_name(name)
    return ""


def _takes_a_value(word: str, words: Iterator[str]) -> bool:
    """Return whether a word is an option, and step over its value: each of bootstrap.sh has one."""
    is_option = word.startswith("--")
    if is_option and "=" not in word:
        next(words, "")
    return is_option


def _words(command: str) -> Iterator[str]:
    """Yield the words of a shell command up to its end; what follows may be anything."""
    words = shlex.shlex(command, posix=True, punctuation_chars=_END_OF_COMMAND)
    words.whitespace = " \t\r"
    words.whitespace_split = True
    words.commenters = ""  # shlex would go on in the line after a comment
    try:
        for word in words:
            if word.startswith(_ENDS):
                return
            yield word
    except ValueError:  # quotes that do not end
        return


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


def _cluster_name(value: object) -> str:
    return str(value) if isinstance(value, str) and _CLUSTER_NAME.fullmatch(value) else ""


def _labels(text: str) -> dict[str, str]:
    """Return the labels of kubelet flags: those of several flags add up, as in the kubelet."""
    return _pairs(",".join(_NODE_LABELS.findall(text)), "=")


def _pairs(text: str, sign: str) -> dict[str, str]:
    """Return the pairs of a flag's value, without those that a script completes at boot."""
    pairs = (
        each.partition(sign) for each in text.split(",") if not _KNOWN_AT_BOOT_ONLY.search(each)
    )
    return {key: value for key, found, value in pairs if found}


def _flag_taints(text: str) -> tuple[Mapping[str, str], ...]:
    """Return the taints of kubelet flags: of several flags the last counts, as in the kubelet."""
    written = [each.split(",") for each in _TAINTS.findall(text)]
    split = (
        each.rpartition(":")
        for each in (written[-1] if written else ())
        if ":" in each and not _KNOWN_AT_BOOT_ONLY.search(each)
    )
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
