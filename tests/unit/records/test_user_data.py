"""What is read from user data, and that nothing else is."""

import base64
import json

import pytest

from reconciler.records.user_data import FirstBoot, read_boot


def al2023(**kubelet: object) -> str:
    """User data as the module writes it for AL2023, with the cluster's facts."""
    config = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": "analytics",
                "apiServerEndpoint": "https://api.example",
                "certificateAuthority": "Q0E=",
                "cidr": "10.100.0.0/16",
            },
            "kubelet": kubelet,
        },
    }
    return f"MIME-Version: 1.0\n\n--BOUNDARY\n\n{json.dumps(config)}\n--BOUNDARY--\n"


BOTTLEROCKET = """\
[settings.kubernetes]
"api-server" = "https://api.example"
"cluster-certificate" = "Q0E="
"max-pods" = 30
[settings.kubernetes.node-labels]
"sector" = "primary"
"team" = "data"
[settings.kubernetes.node-taints]
"dedicated" = ["batch:NoSchedule", "batch:NoExecute"]
[settings.kubernetes.kube-reserved]
"cpu" = "100m"
"""
AL2 = """\
#!/bin/bash
export SECRET=hunter2
/etc/eks/bootstrap.sh analytics --kubelet-extra-args \
'--node-labels=sector=primary,team=data --register-with-taints=dedicated=batch:NoSchedule' \
--max-pods 29
"""


def test_al2023_says_labels_taints_and_facts() -> None:
    """Adopted nodes must come back with the labels that pods select on."""
    boot = read_boot(
        al2023(
            config={
                "maxPods": 58,
                "registerWithTaints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
            },
            flags=["--node-labels=sector=primary,team=data"],
        )
    )
    assert boot.ami_type == "AL2023"
    assert boot.labels == {"sector": "primary", "team": "data"}
    assert boot.taints == ({"key": "a", "value": "b", "effect": "NoSchedule"},)
    assert boot.variables == {
        "max_pods": 58,
        "cluster_endpoint": "https://api.example",
        "cluster_ca": "Q0E=",
        "service_cidr": "10.100.0.0/16",
    }


def test_bottlerocket_says_labels_taints_and_facts() -> None:
    """The other image that the module knows."""
    boot = read_boot(BOTTLEROCKET)
    assert (boot.ami_type, boot.labels["team"]) == ("BOTTLEROCKET", "data")
    assert [taint["effect"] for taint in boot.taints] == ["NoSchedule", "NoExecute"]
    assert boot.variables["kube_reserved"] == {"cpu": "100m"}


def test_al2_script_is_searched_for_labels_and_taints_only() -> None:
    """Kluster Fleet Manager's nodes boot like this; a secret in the script must stay there."""
    boot = read_boot(AL2)
    assert boot.ami_type == "AL2"
    assert boot.labels == {"sector": "primary", "team": "data"}
    assert boot.taints == ({"key": "dedicated", "value": "batch", "effect": "NoSchedule"},)
    assert boot.variables == {"max_pods": 29}
    assert "hunter2" not in repr(boot)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "\0",
        '{"node.eks.aws/": []}',
        '{"kind": "NodeConfig", "apiVersion": "node.eks.aws/v1alpha1", "spec": []}',
        "[settings]\nkubernetes = 3",
        "settings = 3",
        "x = [[[[",
    ],
)
def test_foreign_user_data_says_nothing(text: str) -> None:
    """Whatever people boot with, adopting goes on."""
    assert read_boot(text) in (FirstBoot(), FirstBoot(ami_type="AL2023"))


WRITTEN_BY_OTHERS = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo before
--//
Content-Type: application/node.eks.aws

---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: analytics
    apiServerEndpoint: https://api.example
    certificateAuthority: Q0E=
    cidr: 10.100.0.0/16
  kubelet:
    config:
      maxPods: 58
      kubeReserved: {cpu: 100m}
      registerWithTaints:
      - {key: dedicated, value: batch, effect: NoSchedule}
    flags:
    - --node-labels=team=data,sector=primary
--//--
"""


ALONE = WRITTEN_BY_OTHERS.partition("---\n")[2].partition("--//")[0]


@pytest.mark.parametrize("text", [WRITTEN_BY_OTHERS, ALONE])
def test_node_config_in_yaml_is_understood(text: str) -> None:
    """Other modules write it so, and their nodes would lose their labels at the next launch."""
    boot = read_boot(text)
    assert (boot.ami_type, dict(boot.labels)) == ("AL2023", {"team": "data", "sector": "primary"})
    assert boot.taints == ({"key": "dedicated", "value": "batch", "effect": "NoSchedule"},)
    assert boot.variables["max_pods"] == 58
    assert boot.variables["kube_reserved"] == {"cpu": "100m"}
    assert boot.variables["service_cidr"] == "10.100.0.0/16"


@pytest.mark.parametrize(
    "text",
    [
        "node.eks.aws/ \x00\ud800",
        "node.eks.aws/: [",
        "kind: NodeConfig\napiVersion: node.eks.aws/v1\nspec: [1]\n",
        "kind: NodeConfig\napiVersion: node.eks.aws/v1\nspec: {kubelet: {config: {maxPods: many}}}",
        "a: &a [node.eks.aws/]\nb: &b [*a, *a]\nc: &c [*b, *b]\n",
        "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nnode.eks.aws/",
    ],
)
def test_odd_user_data_says_nothing_and_raises_nothing(text: str) -> None:
    """One template that somebody wrote by hand must not end an import of fifty fleets."""
    assert read_boot(text).variables == {}


def test_taints_of_kubelet_flags_are_read() -> None:
    """Those of eksctl are there: without them nodes are bought for pods they refuse."""
    boot = read_boot(
        al2023(
            config={"registerWithTaints": [{"key": "x", "value": "y", "effect": "NoExecute"}]},
            flags=[
                "--node-labels=team=ml",
                "--node-labels=zone=a,team=data",
                "--register-with-taints=special=true:NoSchedule,alone:NoExecute",
            ],
        )
    )
    assert boot.labels == {"team": "data", "zone": "a"}
    assert boot.taints == (
        {"key": "special", "value": "true", "effect": "NoSchedule"},
        {"key": "alone", "value": "", "effect": "NoExecute"},
    )


def several(*specs: str) -> str:
    """User data with a NodeConfig in YAML for each of these specs."""
    head = "Content-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\n"
    parts = "".join(f"--//\n{head}kind: NodeConfig\nspec:\n{spec}" for spec in specs)
    return f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n{parts}--//--\n'


OF_CLUSTER = """\
  cluster: {name: analytics, apiServerEndpoint: "https://api.example", cidr: 10.100.0.0/16}
  kubelet:
    config: {maxPods: 29, kubeReserved: {cpu: 100m, memory: 1Gi}}
    flags: [--node-labels=team=data]
"""
OF_USER = """\
  instance: {localStorage: {strategy: RAID0}}
  kubelet:
    config: {maxPods: 58, kubeReserved: {cpu: 200m}}
    flags: ["--node-labels=disk=fast", "--register-with-taints=dedicated=ml:NoSchedule"]
"""


def test_several_node_configs_are_merged_as_at_boot() -> None:
    """The first alone says nothing of the labels and taints in the others."""
    boot = read_boot(several(OF_CLUSTER, OF_USER))
    assert boot.labels == {"team": "data", "disk": "fast"}
    assert boot.taints == ({"key": "dedicated", "value": "ml", "effect": "NoSchedule"},)
    assert boot.variables["max_pods"] == 58
    assert boot.variables["kube_reserved"] == {"cpu": "200m", "memory": "1Gi"}
    assert boot.variables["service_cidr"] == "10.100.0.0/16"
    assert read_boot(several(OF_USER, OF_CLUSTER)).variables["max_pods"] == 29


def test_node_config_is_read_once_however_it_is_written() -> None:
    """A document on one line of a MIME part is that line and that part."""
    boot = read_boot(al2023(flags=["--register-with-taints=a=b:NoSchedule"]))
    assert len(boot.taints) == 1


def test_empty_keys_of_a_later_node_config_take_nothing_back() -> None:
    """A part with `kubelet:` and comments alone would hide the taints of the parts before it."""
    boot = read_boot(several(OF_USER, OF_CLUSTER, "  kubelet:\n    config:\n", "  kubelet:\n"))
    assert boot.labels == {"team": "data", "disk": "fast"}
    assert boot.variables["max_pods"] == 29


def test_other_branches_of_a_script_add_no_labels() -> None:
    """Nodes of one branch have none of the other's: pods that select it would never bind there."""
    boot = read_boot(
        "#!/bin/bash\n"
        "if test -e /spot; then\n"
        "  /etc/eks/bootstrap.sh a --kubelet-extra-args '--node-labels=team=a --node-labels=b=c'\n"
        "else\n"
        "  /etc/eks/bootstrap.sh a --kubelet-extra-args '--node-labels=team=x,other=y"
        " --register-with-taints=k=v:NoSchedule'\n"
        "fi\n"
    )
    assert boot.labels == {"team": "a", "b": "c"}


CALL = "/etc/eks/bootstrap.sh"


@pytest.mark.parametrize(
    ("script", "cluster"),
    [
        (f"{CALL} analytics", "analytics"),
        (f"{CALL} 'analytics' --use-max-pods true", "analytics"),
        (f"exec {CALL} --use-max-pods true \\\n  --kubelet-extra-args '' analytics", "analytics"),
        (f"{CALL} analytics; echo 'the end", "analytics"),
        (f"{CALL} analytics\necho other's", "analytics"),
        (f"# {CALL} starts the kubelet\n{CALL} analytics", "analytics"),
        (f"sed -i s/a/b/ {CALL}\n{CALL} analytics", "analytics"),
        (f"sed -i s/a/b/ {CALL} && {CALL} analytics", "analytics"),
        (f"test -x {CALL} || exit 1\n{CALL} analytics", "analytics"),
        (f'{CALL} "${{CLUSTER}}"', ""),
        (f"{CALL} $(cat /etc/cluster)\n{CALL} other", ""),
        (f"{CALL} # sets the kubelet up\n{CALL} analytics", "analytics"),
        (f"{CALL} --use-max-pods", ""),
        (f"{CALL} 'analytics", ""),
        (f"{CALL}", ""),
    ],
)
def test_cluster_is_the_word_that_bootstrap_is_given(script: str, cluster: str) -> None:
    """By another word of the script nodes would be taken for those of another cluster."""
    boot = read_boot(f"#!/bin/bash\n{script}\n")
    assert (boot.ami_type, boot.cluster) == ("AL2", cluster)


def test_every_image_says_its_cluster() -> None:
    """A node joins the cluster that its user data names."""
    assert read_boot(al2023()).cluster == "analytics"
    assert read_boot(f'{BOTTLEROCKET}[settings.kubernetes]\n"x" = 1\n').cluster == ""
    named = BOTTLEROCKET.replace('"max-pods"', '"cluster-name" = "analytics"\n"max-pods"')
    assert read_boot(named).cluster == "analytics"
    assert read_boot(al2023().replace('"analytics"', "7")).cluster == ""


def test_al2_script_says_what_is_kept_from_pods() -> None:
    """A fleet of the module that is imported would come back without its reservations."""
    flags = "--kube-reserved=cpu=100m,memory=1Gi --eviction-hard=memory.available<5%"
    call = f"{CALL} a --use-max-pods false --kubelet-extra-args '{flags}'\n"
    others = "#" + call.replace("100m", "200m")
    assert read_boot(f"#!/bin/bash\n{call}{others}").variables == {
        "max_pods": 110,
        "kube_reserved": {"cpu": "100m", "memory": "1Gi"},
        "eviction_hard": {"memory.available": "5%"},
    }
    assert read_boot(f"{CALL} a --use-max-pods true\n").variables == {}
    assert read_boot(f"# max-pods as in {CALL} --use-max-pods false\n") == FirstBoot()


def test_what_a_script_finds_out_at_boot_is_left_out() -> None:
    """`${ZONE}` is no label of any node."""
    flags = "--node-labels=team=data,zone=${ZONE},id=`id` --register-with-taints=a=$B:NoSchedule"
    boot = read_boot(f'{CALL} a --kubelet-extra-args "{flags}"\n')
    assert (boot.labels, boot.taints) == ({"team": "data"}, ())


def test_node_config_that_a_script_writes_is_read() -> None:
    """Its nodes would have no labels, and pods that select them would start none."""
    script = f"#!/bin/bash\ncat >/run/n.yaml <<'END'\n{ALONE}\nEND\nnodeadm init -c file:///run/n\n"
    assert read_boot(script).labels == {"team": "data", "sector": "primary"}


@pytest.mark.parametrize("text", [ALONE, AL2], ids=["NodeConfig", "bootstrap.sh"])
def test_encoded_mime_parts_are_read(text: str) -> None:
    """Terraform's cloudinit provider encodes them where it is asked to."""
    part = base64.encodebytes(text.encode()).decode()
    head = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n--//\n'
    coded = f"{head}Content-Transfer-Encoding: base64\n\n{part}\n--//--\n"
    assert read_boot(coded) == read_boot(text)
