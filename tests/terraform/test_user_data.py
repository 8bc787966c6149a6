"""What instances are told at boot, read as nodeadm, bash and Bottlerocket would."""

import base64
import email
import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.offline_root import make_fleet, make_offline_root

pytestmark = pytest.mark.terraform

FACTS = {
    "cluster_endpoint": "https://0123.gr7.us-west-2.eks.amazonaws.com",
    "cluster_ca": "Q0EvKz0=",
    "service_cidr": "10.100.0.0/16",
}
NODE = {
    "max_pods": 58,
    "kube_reserved": {"cpu": "100m"},
    "node_labels": {"team": "data"},
    "node_taints": [{"key": "example.com/gpu", "value": "a", "effect": "NoSchedule"}],
}
FLEETS = {
    "primary-small": make_fleet(**FACTS, **NODE),
    "primary-medium": make_fleet(node_pool_size="medium", **NODE),
    "primary-large": make_fleet(node_pool_size="large", ami_type="BOTTLEROCKET", **FACTS, **NODE),
    "primary-xsmall": make_fleet(
        node_pool_size="xsmall",
        ami_type="AL2",
        bootstrap_arguments="--aws-api-retry-attempts 5",
        eviction_hard={"memory.available": "5%"},
        **FACTS,
        **NODE,
    ),
    "primary-xlarge": make_fleet(
        node_pool_size="xlarge", user_data="#!/bin/sh\necho '${literal}' %{ if }\n"
    ),
}
LABELS = "kind=memory,lifecycle=Ec2Spot,pool_size={0},sector=primary,size={0},team=data"
FAKE_PROGRAMS = {
    "curl": """case "$*" in *PUT*) echo token;; *token*) echo us-west-2;; *) exit 1;; esac""",
    "aws": """[ "$AWS_DEFAULT_REGION" = us-west-2 ] && [ "$4" = analytics ] && """
    """printf 'https://api.example\\tQ0EvKz0=\\t10.100.0.0/16\\n'""",
    "nodeadm": """echo "$*" >"$NODEADM_CALL" """,
}


@pytest.fixture(scope="module")
def user_data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Planned user data by fleet: it is known before anything is made."""
    planned = make_offline_root(tmp_path_factory.mktemp("root")).planned(FLEETS)
    return {
        name: base64.b64decode(made["aws_launch_template"]["user_data"]).decode()
        for name, made in planned.items()
    }


def only_part(user_data: str) -> tuple[str, str]:
    """Content type and content of the one part of MIME user data."""
    message = email.message_from_string(user_data)
    assert message.get_content_type() == "multipart/mixed"
    assert message.defects == []
    (part,) = message.walk() if not message.is_multipart() else list(message.walk())[1:]
    return part.get_content_type(), str(part.get_payload())


def node_config(size: str, cluster: dict[str, str]) -> dict[str, Any]:
    """The NodeConfig of a fleet."""
    return {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {"name": "analytics", **cluster},
            "kubelet": {
                "config": {
                    "maxPods": 58,
                    "kubeReserved": {"cpu": "100m"},
                    "registerWithTaints": NODE["node_taints"],
                },
                "flags": [f"--node-labels=fleet=primary-{size},{LABELS.format(size)}"],
            },
        },
    }


def test_al2023_user_data_is_one_node_config(user_data: dict[str, str]) -> None:
    """Nodeadm ignores user data that it cannot parse, and the node never joins."""
    content_type, content = only_part(user_data["primary-small"])
    assert content_type == "application/node.eks.aws"
    assert json.loads(content) == node_config(
        "small",
        {
            "apiServerEndpoint": FACTS["cluster_endpoint"],
            "certificateAuthority": FACTS["cluster_ca"],
            "cidr": FACTS["service_cidr"],
        },
    )


def test_al2023_script_asks_eks_and_starts_nodeadm(
    user_data: dict[str, str], tmp_path: Path
) -> None:
    """A script that fails at boot leaves an instance that costs money and never joins.

    It runs at every boot: nodeadm does not enable the kubelet, and a rebooted node would stay
    NotReady.
    """
    content_type, script = only_part(user_data["primary-medium"])
    assert content_type == "text/x-shellscript-per-boot"
    assert script.startswith("#!/bin/bash\n")
    for name, body in FAKE_PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", script.replace("/run/", f"{tmp_path}/")],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "NODEADM_CALL": str(tmp_path / "call")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    written = tmp_path / "node-config.yaml"
    assert (tmp_path / "call").read_text() == f"init --config-source file://{written}\n"
    assert json.loads(written.read_text()) == node_config(
        "medium",
        {
            "apiServerEndpoint": "https://api.example",
            "certificateAuthority": "Q0EvKz0=",
            "cidr": "10.100.0.0/16",
        },
    )


def test_bottlerocket_user_data_is_settings(user_data: dict[str, str]) -> None:
    """Bottlerocket refuses to boot with settings that are no TOML."""
    assert tomllib.loads(user_data["primary-large"]) == {
        "settings": {
            "kubernetes": {
                "cluster-name": "analytics",
                "api-server": FACTS["cluster_endpoint"],
                "cluster-certificate": FACTS["cluster_ca"],
                "max-pods": 58,
                "kube-reserved": {"cpu": "100m"},
                "node-labels": {
                    "fleet": "primary-large",
                    **dict(pair.split("=") for pair in LABELS.format("large").split(",")),
                },
                "node-taints": {"example.com/gpu": ["a:NoSchedule"]},
            }
        }
    }


def test_al2_user_data_calls_the_images_script(user_data: dict[str, str], tmp_path: Path) -> None:
    """An AL2 image has no nodeadm: with its NodeConfig no new node would join."""
    script = user_data["primary-xsmall"]
    assert script.startswith("#!/bin/bash\n")
    called = tmp_path / "bootstrap.sh"
    called.write_text(f"#!/bin/bash\nprintf '%s\\n' \"$@\" >{tmp_path}/words\n")
    called.chmod(0o755)
    subprocess.run(
        ["bash", "-c", script.replace("/etc/eks/bootstrap.sh", str(called))],
        env={"PATH": "/usr/bin:/bin"},
        check=True,
        timeout=60,
    )
    assert (tmp_path / "words").read_text().splitlines() == [
        "analytics",
        *("--apiserver-endpoint", FACTS["cluster_endpoint"]),
        *("--b64-cluster-ca", FACTS["cluster_ca"]),
        *("--dns-cluster-ip", "10.100.0.10"),
        *("--use-max-pods", "false"),
        *("--aws-api-retry-attempts", "5"),
        "--kubelet-extra-args",
        (
            f"--node-labels=fleet=primary-xsmall,{LABELS.format('xsmall')}"
            " --register-with-taints=example.com/gpu=a:NoSchedule --max-pods=58"
            " --kube-reserved=cpu=100m --eviction-hard=memory.available<5%"
        ),
    ]


def test_user_data_that_is_given_is_taken_literally(user_data: dict[str, str]) -> None:
    """One other byte is another version of the launch template."""
    assert user_data["primary-xlarge"] == FLEETS["primary-xlarge"]["user_data"]
