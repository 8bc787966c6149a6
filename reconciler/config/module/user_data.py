"""Computes how many bytes of user data the eks_fleet module makes for a fleet's nodes.

The same text as `terraform/eks_fleet/user_data.tf` writes; a test compares the two.
"""

import ipaddress
import json
from collections.abc import Mapping
from typing import Any, Final

from reconciler.config.resolve import ResolvedFleet

_MIME: Final = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="BOUNDARY"

--BOUNDARY
Content-Type: {content_type}

{body}
--BOUNDARY--
"""
_LOOKUP: Final = """\
#!/bin/bash
set -euo pipefail
imds=http://169.254.169.254/latest
token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$imds/api/token")
export AWS_DEFAULT_REGION=$(curl -sf -H "X-aws-ec2-metadata-token: $token"\
 "$imds/meta-data/placement/region")
export AWS_RETRY_MODE=adaptive AWS_MAX_ATTEMPTS=20
facts=$(aws eks describe-cluster --name '{cluster}' --output text --query \\
  'cluster.[endpoint,certificateAuthority.data,kubernetesNetworkConfig.serviceIpv6Cidr\
||kubernetesNetworkConfig.serviceIpv4Cidr]')
read -r endpoint ca cidr <<<"$facts"
cat >/run/node-config.yaml <<'NODECONFIG'
{node_config}
NODECONFIG
sed -i -e "s|@ENDPOINT@|$endpoint|" -e "s|@CA@|$ca|" -e "s|@CIDR@|$cidr|" /run/node-config.yaml
nodeadm init --config-source file:///run/node-config.yaml
"""
_ESCAPED_BY_TERRAFORM: Final = "<>&\u2028\u2029"
"""jsonencode writes these as a backslash, u and four hexadecimal digits."""


def user_data_bytes(fleet: ResolvedFleet) -> int:
    """Return the size of the user data of a fleet's nodes, before base64."""
    return len(_user_data(fleet).encode())


def _user_data(fleet: ResolvedFleet) -> str:
    given = fleet.terraform.get("user_data")
    if given is not None:
        return str(given)
    made = {"BOTTLEROCKET": _bottlerocket, "AL2": _bootstrap_script}
    return made.get(fleet.terraform.get("ami_type", ""), _nodeadm)(fleet)


def _bootstrap_script(fleet: ResolvedFleet) -> str:
    variables = fleet.terraform
    endpoint, cidr = variables.get("cluster_endpoint", ""), variables.get("service_cidr", "")
    words = [f"/etc/eks/bootstrap.sh '{fleet.config.cluster or ''}'"]
    if endpoint:
        ca = variables.get("cluster_ca", "")
        words += [f"--apiserver-endpoint '{endpoint}'", f"--b64-cluster-ca '{ca}'"]
    if endpoint and cidr:
        network = ipaddress.ip_network(cidr, strict=False)
        words.append(f"--dns-cluster-ip '{network.network_address + 10}'")
    if ":" in cidr:
        words += ["--ip-family ipv6", f"--service-ipv6-cidr '{cidr}'"]
    if variables.get("max_pods"):
        words.append("--use-max-pods false")
    if variables.get("bootstrap_arguments"):
        words.append(variables["bootstrap_arguments"])
    words.append(f"--kubelet-extra-args '{' '.join(_kubelet_flags(fleet))}'")
    return "#!/bin/bash\nset -eu\n" + " \\\n  ".join(words) + "\n"


def _kubelet_flags(fleet: ResolvedFleet) -> list[str]:
    variables = fleet.terraform
    flags = [f"--node-labels={_pairs(fleet.labels, '=')}"]
    if fleet.taints:
        taints = ",".join(f"{taint.key}={taint.value}:{taint.effect}" for taint in fleet.taints)
        flags.append(f"--register-with-taints={taints}")
    if variables.get("max_pods"):
        flags.append(f"--max-pods={variables['max_pods']}")
    for flag, key, sign in (
        ("kube-reserved", "kube_reserved", "="),
        ("system-reserved", "system_reserved", "="),
        ("eviction-hard", "eviction_hard", "<"),
    ):
        if variables.get(key):
            flags.append(f"--{flag}={_pairs(variables[key], sign)}")
    return flags


def _pairs(settings: Mapping[str, str], sign: str) -> str:
    return ",".join(f"{key}{sign}{value}" for key, value in sorted(settings.items()))


def _nodeadm(fleet: ResolvedFleet) -> str:
    variables, cluster = fleet.terraform, fleet.config.cluster or ""
    given = bool(variables.get("cluster_endpoint"))
    labels = ",".join(f"{key}={value}" for key, value in sorted(fleet.labels.items()))
    node_config = _json(
        {
            "apiVersion": "node.eks.aws/v1alpha1",
            "kind": "NodeConfig",
            "spec": {
                "cluster": {
                    "name": cluster,
                    "apiServerEndpoint": variables["cluster_endpoint"] if given else "@ENDPOINT@",
                    "certificateAuthority": variables.get("cluster_ca", "") if given else "@CA@",
                    "cidr": variables.get("service_cidr", "") if given else "@CIDR@",
                },
                "kubelet": {
                    "config": _kubelet_config(fleet),
                    "flags": [f"--node-labels={labels}"],
                },
            },
        }
    )
    if given:
        return _MIME.format(content_type="application/node.eks.aws", body=node_config)
    body = _LOOKUP.format(cluster=cluster, node_config=node_config)
    return _MIME.format(content_type='text/x-shellscript-per-boot; charset="us-ascii"', body=body)


def _kubelet_config(fleet: ResolvedFleet) -> dict[str, Any]:
    variables = fleet.terraform
    stated = {
        "maxPods": variables.get("max_pods") or 0,
        "kubeReserved": variables.get("kube_reserved"),
        "systemReserved": variables.get("system_reserved"),
        "evictionHard": variables.get("eviction_hard"),
        "registerWithTaints": [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in fleet.taints
        ],
    }
    return {key: value for key, value in stated.items() if value}


def _bottlerocket(fleet: ResolvedFleet) -> str:
    variables = fleet.terraform
    taints: dict[str, list[str]] = {}
    for taint in fleet.taints:
        taints.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect}")
    kubernetes: dict[str, Any] = {
        "api-server": variables.get("cluster_endpoint", ""),
        "cluster-certificate": variables.get("cluster_ca", ""),
        "cluster-name": fleet.config.cluster or "",
    }
    if variables.get("max_pods"):
        kubernetes["max-pods"] = variables["max_pods"]
    tables: dict[str, Mapping[str, Any]] = {
        "settings.kubernetes": kubernetes,
        "settings.kubernetes.eviction-hard": variables.get("eviction_hard") or {},
        "settings.kubernetes.kube-reserved": variables.get("kube_reserved") or {},
        "settings.kubernetes.node-labels": fleet.labels,
        "settings.kubernetes.node-taints": taints,
        "settings.kubernetes.system-reserved": variables.get("system_reserved") or {},
    }
    return "\n".join(_table(name, settings) for name, settings in tables.items() if settings)


def _table(name: str, settings: Mapping[str, Any]) -> str:
    lines = [f"{_json(key)} = {_json(settings[key])}\n" for key in sorted(settings)]
    return f"[{name}]\n" + "".join(lines)


def _json(value: Any) -> str:
    """Return JSON as Terraform's jsonencode writes it."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    for character in _ESCAPED_BY_TERRAFORM:
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
