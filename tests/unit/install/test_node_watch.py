"""`reconciler manifest --node-watch`: where the node watch runs, and what it may do."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.config.loader import parse_config
from reconciler.install.manifest import render_manifest
from reconciler.install.settings import check
from reconciler.install.spot_nodes import SPOT_LABELS, without_node_watch
from reconciler.model.errors import UsageError
from tests.unit.install.command import CONFIG, run
from tests.unit.install.rendered import settings


def node_watch_objects(**overrides: Any) -> dict[str, Any]:
    """What `--node-watch` adds, by kind."""
    text = render_manifest(settings(node_watch=True, **overrides), "1.2.3")
    found = [each for each in yaml.safe_load_all(text) if "node-watch" in each["metadata"]["name"]]
    return {each["kind"]: each for each in found}


def test_node_watch_is_added_when_it_is_asked_for() -> None:
    """A privileged namespace and a pod on every node are nobody's default."""
    assert "node-watch" not in render_manifest(settings(), "1")
    assert list(node_watch_objects()) == [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "DaemonSet",
    ]


def test_node_watch_reaches_instance_metadata_and_nothing_else() -> None:
    """It runs on every spot node, on the host's network: what it lacks cannot be misused."""
    pod = node_watch_objects()["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == ["node-watch"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert (pod["hostNetwork"], "ports" in container, "volumes" in pod) == (True, False, False)
    assert not {"hostPID", "hostIPC"} & set(pod)
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["priorityClassName"] == "system-node-critical"
    assert {"memory"} == set(container["resources"]["limits"])
    assert container["env"][0]["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"


@pytest.mark.parametrize(
    ("labels", "runs"),
    [
        ({"lifecycle": "Ec2Spot"}, True),
        ({"eks.amazonaws.com/capacityType": "SPOT"}, True),
        ({"karpenter.sh/capacity-type": "spot"}, True),
        ({"lifecycle": "OnDemand"}, False),
        ({"eks.amazonaws.com/capacityType": "ON_DEMAND"}, False),
        ({}, False),
    ],
)
def test_node_watch_runs_on_spot_nodes_by_the_usual_labels(
    labels: dict[str, str], runs: bool
) -> None:
    """On managed node groups it ran nowhere, and without a queue no interruption was noticed."""
    pod = node_watch_objects()["DaemonSet"]["spec"]["template"]["spec"]
    affinity = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert (
        any(
            all(
                labels.get(match_expression["key"]) in match_expression["values"]
                for match_expression in term["matchExpressions"]
            )
            for term in affinity["nodeSelectorTerms"]
        )
        is runs
    )


def test_labels_of_the_warning_are_those_of_the_daemon_set() -> None:
    """A label that only one of both knows is warned of for nothing, or not at all."""
    pod = node_watch_objects()["DaemonSet"]["spec"]["template"]["spec"]
    affinity = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    found = [
        (match_expression["key"], value)
        for term in affinity["nodeSelectorTerms"]
        for match_expression in term["matchExpressions"]
        for value in match_expression["values"]
    ]
    assert tuple(found) == SPOT_LABELS


@pytest.mark.parametrize(
    ("entry", "unseen"),
    [
        ("{size: small}", False),
        ("{size: small, spot: false, managed: false}", False),
        ("{size: small, managed: false}", True),
        ("{size: small, provider: asg, auto_scaling_group: g, managed: false}", True),
        ("{size: small, managed: false, labels: {eks.amazonaws.com/capacityType: SPOT}}", False),
        ("{size: small, managed: false, labels: {karpenter.sh/capacity-type: on-demand}}", True),
        ("{size: small, terraform: {user_data: '/opt/join'}}", True),
        ("{size: small, terraform: {user_data: 'join --node-labels=lifecycle=Ec2Spot'}}", False),
    ],
)
def test_spot_nodes_that_may_get_no_node_watch_are_found(entry: str, *, unseen: bool) -> None:
    """Interruptions of a group without the labels were noticed by nobody, and nothing said so."""
    config = f"cluster: analytics\nsectors: {{web: {{kind: memory, fleets: [{entry}]}}}}\n"
    assert without_node_watch(parse_config(config)) == (("web-small",) if unseen else ())


def test_spot_nodes_that_may_get_no_node_watch_are_warned_of(tmp_path: Path) -> None:
    """The warning names them, and is there only with the node watch."""
    config = CONFIG.replace("{size: small}", "{size: small, managed: false}")
    done = run(tmp_path, "--identity", "none", "--node-watch", config=config)
    assert done.returncode == 0
    assert "warning: --node-watch: the config does not show that nodes of primary-small" in (
        done.stderr
    )
    assert run(tmp_path, "--identity", "none", config=config).stderr == ""


def test_node_watch_has_a_policy_for_its_own_account() -> None:
    """For a policy of another name in the condition every request would be let through."""
    found = node_watch_objects(namespace="scaling")
    account = found["ServiceAccount"]["metadata"]
    user = f"system:serviceaccount:{account['namespace']}:{account['name']}"
    policy = found["ValidatingAdmissionPolicy"]["spec"]
    (condition,) = policy["matchConditions"]
    assert condition["expression"] == f"request.userInfo.username == '{user}'"
    assert policy["failurePolicy"] == "Fail"
    assert found["ValidatingAdmissionPolicyBinding"]["spec"]["validationActions"] == ["Deny"]
    assert found["ClusterRole"]["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}
    ]
    (subject,) = found["ClusterRoleBinding"]["subjects"]
    assert (subject["namespace"], subject["name"]) == (account["namespace"], account["name"])


def test_node_watch_goes_into_a_namespace_of_its_own_or_one_that_is_there() -> None:
    """Pod Security `restricted` refuses the host network."""
    space = node_watch_objects()["Namespace"]["metadata"]
    assert space["name"] == "fleet-reconciler-node-watch"
    assert space["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    there = node_watch_objects(namespace="kube-system")
    assert "Namespace" not in there
    assert there["DaemonSet"]["metadata"]["namespace"] == "kube-system"
    with pytest.raises(UsageError, match="too long"):
        check(settings(node_watch=True, namespace="n" * 53), parse_config(CONFIG))
