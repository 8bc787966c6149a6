"""`reconciler manifest`: what the objects say, and what is refused."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.config.loader import parse_config
from reconciler.install.manifest import render_manifest, to_block
from reconciler.install.settings import (
    TOKEN_FILE,
    Gitops,
    Identity,
    check,
    tolerations_of,
)
from reconciler.model.errors import UsageError
from tests.unit.install.command import CONFIG, ROLE, run
from tests.unit.install.rendered import REPOSITORY, objects, pod_of, settings


def test_kinds_come_in_the_order_in_which_they_can_be_applied() -> None:
    """An object in a namespace that is not there yet is refused."""
    text = render_manifest(settings(), "1")
    kinds = [each["kind"] for each in yaml.safe_load_all(text)]
    assert kinds == [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ConfigMap",
        "Deployment",
        "Service",
        "NetworkPolicy",
        "PodDisruptionBudget",
    ]


@pytest.mark.parametrize("namespace", ["kube-system", "default"])
def test_namespace_that_every_cluster_has_is_left_as_it_is(namespace: str) -> None:
    """Pod Security `restricted` on kube-system keeps the network plugin's pods from starting."""
    found = objects(settings(namespace=namespace))
    assert "Namespace" not in found
    assert found["Deployment"]["metadata"]["namespace"] == namespace


def test_pods_may_do_without_a_priority_class() -> None:
    """An empty name is none that a cluster has."""
    check(settings(priority_class=""), parse_config(CONFIG))
    assert "priorityClassName" not in pod_of(settings(priority_class=""))["spec"]


def test_repository_that_needs_a_user_name_of_its_protocol_is_taken() -> None:
    """The `git` of an ssh address is no secret."""
    ssh = settings(gitops=Gitops(repository="ssh://git@git.example/fleets.git"))
    check(ssh, parse_config(CONFIG))


def test_same_settings_give_the_same_bytes() -> None:
    """A diff in git that nobody made is a review that nobody needs."""
    assert render_manifest(settings(), "1") == render_manifest(settings(), "1")


def test_container_can_do_nothing_but_its_work() -> None:
    """Whoever gets into it has the rights over every fleet already, and shall get no more."""
    pod = pod_of(settings())["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)


def test_pods_are_probed_bounded_spread_and_critical() -> None:
    """The last pod that may be evicted is the one that buys nodes."""
    pod = pod_of(settings())["spec"]
    (container,) = pod["containers"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert {"memory"} == set(container["resources"]["limits"])
    assert {"cpu", "memory"} == set(container["resources"]["requests"])
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert len(pod["topologySpreadConstraints"]) == 2
    assert objects(settings())["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1
    assert objects(settings())["Deployment"]["spec"]["replicas"] == 2


def test_pods_listen_on_ipv6_too() -> None:
    """A pod of an IPv6 cluster has no other address: its probes would fail."""
    (container,) = pod_of(settings())["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert variables["RECONCILER_LISTEN"] == "[::]:9235"


def test_only_labelled_namespaces_may_ask_the_pods() -> None:
    """A label of a pod is its tenant's to set; that of a namespace is the administrator's."""
    policy = objects(settings())["NetworkPolicy"]["spec"]
    assert policy["podSelector"] == {"matchLabels": {"app.kubernetes.io/name": "fleet-reconciler"}}
    (rule,) = policy["ingress"]
    labels = {"fleet-reconciler.io/scrape": "true"}
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": labels}}]
    assert rule["ports"] == [{"port": "http", "protocol": "TCP"}]
    assert policy["policyTypes"] == ["Ingress"]


def test_token_of_the_secret_is_a_file_where_the_page_says_it_is() -> None:
    """In the environment or the arguments, others could read it."""
    pod = pod_of(settings())["spec"]
    (volume,) = (each for each in pod["volumes"] if each["name"] == "token")
    assert volume["secret"]["optional"] is True
    (mount,) = (m for m in pod["containers"][0]["volumeMounts"] if m["name"] == "token")
    file = f"{mount['mountPath']}/{volume['secret']['items'][0]['path']}"
    page = (Path(__file__).parents[3] / "docs" / "install.md").read_text()
    assert file == TOKEN_FILE
    assert f"listen_token_file: {file}`" in page


def test_config_map_holds_the_file_as_it_is_written() -> None:
    """Comments are why the values are what they are."""
    made = objects(settings())["ConfigMap"]["data"]
    assert made == {"sectors.yaml": CONFIG}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: 1",
        "a: 1\n\n\n",
        "  a: 1\n",
        "\na: 1\n",
        "a: 1\r\nb: 2\r\n",
        "a: '\u2028\ud7ff\x7f'\n",
        "a: \U0001f600\n",
        "a: \t1 \n",
        "---\na: 1\n...\n",
    ],
)
def test_any_text_survives_the_config_map(text: str) -> None:
    """A config that arrives changed is another config."""
    assert yaml.safe_load(f"k: {to_block(text, 4)}\n") == {"k": text}


def test_changed_config_rolls_the_pods() -> None:
    """Keys that only a restart takes over would otherwise wait for the next node's end."""
    key = "fleet-reconciler.io/config-hash"
    first = pod_of(settings())["metadata"]["annotations"][key]
    second = pod_of(settings(config=CONFIG + "# more\n"))["metadata"]["annotations"][key]
    assert first != second


def test_irsa_role_is_on_the_service_account() -> None:
    """Without it the pods have the node's rights, or none."""
    made = objects(settings(identity=Identity.parsed(f"irsa={ROLE}")))
    assert made["ServiceAccount"]["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": ROLE}


def test_pod_identity_says_how_to_associate_the_role() -> None:
    """EKS keeps the association outside of the cluster: no object can make it."""
    text = render_manifest(settings(identity=Identity.parsed(f"pod-identity={ROLE}")), "1")
    assert "create-pod-identity-association --cluster-name analytics" in text
    assert f"--role-arn {ROLE}" in text


def test_sector_becomes_selector_and_tolerations() -> None:
    """On a tainted sector the pods would stay pending for ever."""
    config = parse_config(CONFIG)
    made = settings(sector="coordinate", tolerations=tolerations_of(config, "coordinate"))
    pod = pod_of(made)["spec"]
    assert pod["nodeSelector"] == {"sector": "coordinate"}
    assert pod["tolerations"] == [
        {
            "key": "dedicated",
            "operator": "Equal",
            "value": "coordinate",
            "effect": "NoSchedule",
        }
    ]


@pytest.mark.parametrize(
    ("sector", "why"), [("primary", "keeps a node"), ("nowhere", "has no sector")]
)
def test_sector_that_may_be_empty_is_refused(sector: str, why: str) -> None:
    """A reconciler on nodes that only it can buy never starts."""
    with pytest.raises(UsageError, match=why):
        tolerations_of(parse_config(CONFIG), sector)


@pytest.mark.parametrize(
    ("config", "overrides", "why"),
    [
        ("notifications: {slack_hook: https://hooks.example/x}\n", {}, "secret"),
        ("kubeconfig: a\n", {}, "a pod has no such file"),
        ("kube_context: prod\n", {}, "no kubeconfig with contexts"),
        ("listen_token_file: /var/run/token\n", {}, "the pods have no such file"),
        ("listen_token_file: token\n", {}, "the pods have no such file"),
        ("leader_election: {enabled: no}\n", {}, "both act"),
        ("leader_election: {namespace: kube-system}\n", {}, "write Leases in"),
        ("recording: {path: /data}\n", {}, "no disk to record on"),
        ("", {"namespace": "Nope"}, "name of a namespace"),
        ("", {"namespace": "a\nb"}, "name of a namespace"),
        ("", {"image": "a b"}, "name of an image"),
        ("", {"image": "https://u:token@registry.example/a"}, "name of an image"),
        ("", {"config": "#" * (1 << 20) + "\n"}, "ConfigMap takes"),
        ("", {"extra_files": {"c.json": "\u20ac" * (1 << 19)}}, "ConfigMap takes"),
        ("", {"cluster": "a\nkind: Secret"}, "is not a valid label value"),
        ("", {"cluster": "a" * 64}, "64 characters"),
        ("", {"priority_class": "High Priority"}, "name of a PriorityClass"),
        ("", {"gitops": Gitops(repository="https://me:token@git.example/c.git")}, "secret"),
        ("", {"gitops": Gitops(repository="https://token@git.example/c.git")}, "secret"),
        ("", {"gitops": Gitops(repository="ssh://git:token@git.example/c.git")}, "secret"),
        ("", {"gitops": Gitops(repository="https://git.example/c?access_token=abc1")}, "secret"),
        ("", {"gitops": Gitops(repository="git://u:token@git.example/c.git")}, "secret"),
        ("", {"gitops": Gitops(repository="http::https://u:token@git.example/c")}, "secret"),
        ("", {"gitops": Gitops(repository="ftp://git.example/c.git")}, "is not a git address"),
        ("", {"gitops": Gitops(repository="https://[git.example/c.git")}, "is not a valid address"),
        ("", {"gitops": Gitops(repository=REPOSITORY, configs=("../a.yaml",))}, "inside the repo"),
        ("", {"gitops": Gitops(repository=REPOSITORY, configs=("a.yaml", "b.yaml"))}, "share"),
        ("", {"gitops": Gitops(repository=REPOSITORY, output="/terraform")}, "inside the repo"),
    ],
)
def test_install_that_would_not_run_is_refused(
    config: str, overrides: dict[str, Any], why: str
) -> None:
    """It would fail in the cluster, where it is seen last."""
    with pytest.raises(UsageError, match=why):
        check(settings(**overrides), parse_config(CONFIG + config))


@pytest.mark.parametrize("text", ["irsa", "irsa=me", "kiam", "none=x", "pod-identity=role\n"])
def test_identity_that_is_none_is_refused(text: str) -> None:
    """A typo in an ARN shows as AccessDenied an hour later."""
    with pytest.raises(UsageError):
        Identity.parsed(text)


def test_command_prints_objects_and_the_files_that_the_config_names(tmp_path: Path) -> None:
    """A policy file that stays on the laptop makes the pods refuse their config."""
    policies = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
"""
    (tmp_path / "policies.yaml").write_text(policies)
    config = CONFIG + "descheduler: {policy_file: policies.yaml}\n"
    done = run(tmp_path, "--sector", "coordinate", "--namespace", "fleets", config=config)
    assert done.returncode == 0, done.stderr
    made = {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}
    assert made["ConfigMap"]["data"] == {"policies.yaml": policies, "sectors.yaml": config}
    assert {each["metadata"].get("namespace", "fleets") for each in made.values()} == {"fleets"}


def test_taints_of_each_region_are_tolerated() -> None:
    """The pods would find no node in the only region that the sector is in."""
    east = "terraform: {by_region: {us-east-1: {node_taints: 'dedicated=east:NoSchedule'}}}\n"
    sector = "regions: [us-west-2, us-east-1]\n" + CONFIG.replace(
        "taints: [{key: dedicated, value: coordinate, effect: NoSchedule}]", "regions: [us-east-1]"
    )
    found = tolerations_of(parse_config(sector + east), "coordinate")
    assert [(taint.key, taint.value, taint.effect) for taint in found] == [
        ("dedicated", "east", "NoSchedule")
    ]


@pytest.mark.timeout(60)
def test_pipe_that_the_config_names_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    """Nobody writes to it, and the command would never end."""
    os.mkfifo(tmp_path / "prices.json")
    done = run(tmp_path, config=CONFIG + "catalogue: prices.json\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not a regular file" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "config"),
    [
        ((), "sectors: {a: {kind: memory, fleets: []}}\n"),
        ((), "cluster: a\nnonsense: 1\n"),
        ((), CONFIG + "descheduler: {policy_file: ../policies.yaml}\n"),
        (("--identity", "kiam"), CONFIG),
        (("--replicas", "0"), CONFIG),
        (("--cluster-name", "a\nkind: Secret"), CONFIG),
        (("--cluster-name", "*", "--iam-policy", "capacity-loop"), CONFIG),
    ],
)
def test_command_refuses_in_one_line_with_exit_code_2(
    tmp_path: Path, arguments: Sequence[str], config: str
) -> None:
    """A pipe into kubectl must get nothing at all."""
    done = run(tmp_path, *arguments, config=config)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "why"),
    [(CONFIG.encode("utf-16"), "not UTF-8"), (b"#" * (1 << 20) + b"\n", "larger than 1 MiB")],
)
def test_config_that_is_no_text_is_a_fault_of_the_config(
    tmp_path: Path, content: bytes, why: str
) -> None:
    """The error was the name of a class, with the advice to look at a traceback."""
    (tmp_path / "other.yaml").write_bytes(content)
    done = run(tmp_path, "--config", "other.yaml")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("error: other.yaml:1:1: config/syntax: ")
    assert why in done.stderr
    assert "traceback" not in done.stderr


def test_keys_of_the_secret_are_where_ssh_and_git_look_for_them() -> None:
    """A repository by ssh needs a key and the host's own; without them no fetch ever succeeds."""
    made = settings(gitops=Gitops(repository="git@git.example:team/fleets.git"))
    pod = pod_of(made)["spec"]
    (container,) = pod["containers"]
    (volume,) = (each for each in pod["volumes"] if each["name"] == "git")
    assert volume["secret"]["optional"] is True
    (mount,) = (m for m in container["volumeMounts"] if m["name"] == "git")
    files = {i["key"]: f"{mount['mountPath']}/{i['path']}" for i in volume["secret"]["items"]}
    assert set(files) == {"git-token", "ssh-key", "known_hosts", "signing-key"}
    (ssh,) = (each["value"] for each in container["env"] if each["name"] == "GIT_SSH_COMMAND")
    words = ssh.split()
    assert words[words.index("-i") + 1] == files["ssh-key"]
    assert f"UserKnownHostsFile={files['known_hosts']}" in words
    assert "BatchMode=yes" in words
    page = (Path(__file__).parents[3] / "docs" / "install.md").read_text()
    assert f"RECONCILER_GIT_SIGNING_KEY_FILE={files['signing-key']}" in page
