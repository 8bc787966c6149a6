"""User data and instances on their way to becoming nodes."""

import base64

import pytest

from reconciler.config.catalogue import load_catalogue
from reconciler.model.errors import InputError
from reconciler.model.quantity import milli, whole
from reconciler.sandbox.joiner.node_object import InstanceFacts, node_object
from reconciler.sandbox.joiner.user_data import BootConfig, read_user_data
from tests.sandbox.cluster.user_data import MIME, NODE_CONFIG

SCRIPT = """#!/bin/bash
set -euo pipefail
cat >/run/node-config.yaml <<'NODECONFIG'
{config}
NODECONFIG
nodeadm init --config-source file:///run/node-config.yaml
"""
BOTTLEROCKET = """[settings.kubernetes]
"cluster-name" = "analytics"
"max-pods" = 30
[settings.kubernetes.node-labels]
"sector" = "primary"
"fleet" = "primary-small"
[settings.kubernetes.node-taints]
"lifecycle" = ["OnDemand:PreferNoSchedule"]
[settings.kubernetes.kube-reserved]
"cpu" = "100m"
"memory" = "1Gi"
"""
AL2 = """#!/bin/bash
set -eu
/etc/eks/bootstrap.sh 'analytics' \\
  --dns-cluster-ip '10.100.0.10' \\
  --use-max-pods false \\
  --kubelet-extra-args '--node-labels=sector=primary,fleet=primary-small\
 --register-with-taints=lifecycle=OnDemand:PreferNoSchedule --max-pods=30\
 --kube-reserved=cpu=100m,memory=1Gi'
"""
FACTS = InstanceFacts.of(
    {
        "instance_id": "i-0123456789abcdef0",
        "state": "running",
        "instance_type": "r5.xlarge",
        "region": "us-west-2",
        "zone": "us-west-2a",
        "private_ip": "10.0.0.7",
        "private_dns_name": "ip-10-0-0-7.us-west-2.compute.internal",
        "user_data": None,
    }
)


@pytest.mark.parametrize(
    "text",
    [
        MIME.format(kind="application/node.eks.aws", text=NODE_CONFIG),
        MIME.format(kind="text/x-shellscript", text=SCRIPT.format(config=NODE_CONFIG)),
        SCRIPT.format(config=NODE_CONFIG),
        BOTTLEROCKET,
        AL2,
        MIME.format(kind="text/x-shellscript", text=AL2),
    ],
    ids=["nodeadm", "script in MIME", "script", "bottlerocket", "al2", "al2 in MIME"],
)
@pytest.mark.parametrize("encoded", [False, True])
def test_every_form_of_user_data_says_the_same(text: str, *, encoded: bool) -> None:
    """Fleets of one image family would never join in the sandbox."""
    given = base64.b64encode(text.encode()).decode() if encoded else text
    config = read_user_data(given)
    assert config.cluster == "analytics"
    assert config.labels == {"sector": "primary", "fleet": "primary-small"}
    assert [dict(t) for t in config.taints] == [
        {"key": "lifecycle", "value": "OnDemand", "effect": "PreferNoSchedule"}
    ]
    assert config.max_pods == 30
    assert config.kube_reserved == {"cpu": "100m", "memory": "1Gi"}


@pytest.mark.parametrize("text", ["", "#!/bin/bash\necho hello\n", "[settings.motd]\na = 'b'\n"])
def test_user_data_without_a_cluster_is_refused(text: str) -> None:
    """Such an instance never joins; the stuck-instance logic is tested with it."""
    with pytest.raises(InputError):
        read_user_data(text)


@pytest.mark.parametrize("text", [NODE_CONFIG, BOTTLEROCKET, AL2])
def test_user_data_for_another_cluster_is_refused(text: str) -> None:
    """On EC2 such an instance joins the cluster that it names, whatever its tags say."""
    assert read_user_data(text, cluster="analytics").cluster == "analytics"
    assert read_user_data(text).cluster == "analytics"
    with pytest.raises(InputError, match="analytics"):
        read_user_data(text, cluster="other")


def test_user_data_that_names_no_cluster_in_words_is_taken() -> None:
    """What a script finds out at boot is not known here: its nodes would be missing."""
    script = AL2.replace("'analytics'", '"${CLUSTER}"')
    assert read_user_data(script, cluster="other").cluster == ""


@pytest.mark.parametrize(("said", "pods"), [("false", "110"), ("true", "58")])
def test_pods_without_a_maximum_are_those_of_kubelet_or_type(said: str, pods: str) -> None:
    """Fleets without the VPC CNI's limit would have half as many pods on a node."""
    script = f"#!/bin/bash\n/etc/eks/bootstrap.sh analytics --use-max-pods {said}\n"
    node = node_object(FACTS, read_user_data(script), load_catalogue(), 50 * 2**30)
    assert node["status"]["allocatable"]["pods"] == pods


def test_amount_that_is_no_quantity_never_joins() -> None:
    """The kubelet refuses it and does not start; here it ended the joining of all instances."""
    config = read_user_data(BOTTLEROCKET.replace("100m", "plenty"))
    with pytest.raises(InputError):
        node_object(FACTS, config, load_catalogue(), 50 * 2**30)


def test_node_offers_what_eks_leaves_of_its_type() -> None:
    """Pods would fit here that do not fit on a real node."""
    node = node_object(FACTS, BootConfig(), load_catalogue(), 50 * 2**30)
    offered = node["status"]["allocatable"]
    assert milli(offered["cpu"]) == 3920  # 4 cores less 60 + 10 + 5 + 5
    reserved = (255 + 11 * 58 + 100) * 2**20
    assert whole(offered["memory"]) == 32 * 2**30 - reserved
    assert offered["pods"] == "58"


def test_reservations_of_user_data_replace_the_formula() -> None:
    """A config's kube_reserved would have no effect in the sandbox."""
    config = read_user_data(BOTTLEROCKET)
    offered = node_object(FACTS, config, load_catalogue(), 50 * 2**30)["status"]["allocatable"]
    assert milli(offered["cpu"]) == 3900
    assert whole(offered["memory"]) == (31 * 1024 - 100) * 2**20
    assert offered["pods"] == "30"


def test_node_carries_well_known_labels_and_its_provider_id() -> None:
    """Zonal volumes and the match of nodes to instances rest on them."""
    node = node_object(FACTS, read_user_data(BOTTLEROCKET), load_catalogue(), 50 * 2**30)
    assert node["spec"]["providerID"] == "aws:///us-west-2a/i-0123456789abcdef0"
    labels = node["metadata"]["labels"]
    assert labels["topology.kubernetes.io/zone"] == "us-west-2a"
    assert labels["node.kubernetes.io/instance-type"] == "r5.xlarge"
    assert labels["kubernetes.io/arch"] == "amd64"
    assert labels["kubernetes.io/hostname"] == node["metadata"]["name"] == FACTS.private_dns_name
    assert labels["fleet"] == "primary-small"


def test_unknown_instance_type_never_joins() -> None:
    """A node without resources would be worse than none."""
    with pytest.raises(InputError):
        node_object(FACTS, BootConfig(), {}, 50 * 2**30)
