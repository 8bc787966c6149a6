"""What the chart installs is what `reconciler manifest` prints, object for object."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler import __version__
from reconciler.config.loader import parse_config
from reconciler.config.terraform import Taint
from reconciler.install.manifest import ALWAYS_THERE, render_manifest
from reconciler.install.settings import TOKEN_FILE, Gitops, Identity, InstallSettings, check
from reconciler.model.frozen import FrozenMap
from reconciler.planner.rules import Verdict
from tests.project import go_tools
from tests.unit.install.command import CONFIG, ROLE
from tests.unit.install.rendered import ruled, settings

CHART = Path(__file__).parents[2] / "charts/fleet-reconciler"
KUBERNETES = "1.31.0"
NAMESPACE = "fleet-reconciler"
IMAGE = "registry.example/fleet-reconciler:1"
DIGEST = f"sha256:{'a' * 64}"
VALUES: dict[str, Any] = {
    "cluster": "analytics",
    "config": CONFIG,
    "image": {"repository": "registry.example/fleet-reconciler", "tag": "1"},
}
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def helm() -> str:
    """The program."""
    return go_tools.helm()


def template(helm: str, folder: Path, values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """`helm template` with these values."""
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    command = [helm, "template", "any-name", str(CHART), "--namespace", NAMESPACE]
    command += ["--kube-version", KUBERNETES, "--values", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def objects(text: str) -> dict[tuple[str, str], Any]:
    """The objects of a YAML stream, by kind and name."""
    found = [each for each in yaml.safe_load_all(text) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


@pytest.mark.parametrize(
    ("values", "settings"),
    [
        ({}, {}),
        (
            {
                "identity": {"kind": "irsa", "roleArn": ROLE},
                "sector": "coordinate",
                "tolerations": [
                    {"key": "dedicated", "value": "coordinate", "effect": "NoSchedule"}
                ],
                "replicas": 3,
                "priorityClassName": "",
                "image": {"repository": "registry.example/r", "digest": DIGEST},
            },
            {
                "identity": Identity(kind="irsa", role_arn=ROLE),
                "sector": "coordinate",
                "tolerations": (Taint(key="dedicated", value="coordinate", effect="NoSchedule"),),
                "replicas": 3,
                "priority_class": "",
                "image": f"registry.example/r@{DIGEST}",
            },
        ),
        (
            {"identity": {"kind": "pod-identity"}, "nodeWatch": {"enabled": True}},
            {"identity": Identity(kind="pod-identity"), "node_watch": True},
        ),
        (
            {
                "gitops": {
                    "repository": "https://git.example/fleets.git",
                    "branch": "trunk",
                    "mode": "pull-request",
                    "configs": ["clusters/*/sectors.yaml", "more/sectors.yaml"],
                    "out": "infrastructure/fleets",
                },
                "extraFiles": {"policies/descheduler.yaml": "a: {b}\n", "z.json": "<&>"},
            },
            {
                "gitops": Gitops(
                    repository="https://git.example/fleets.git",
                    branch="trunk",
                    mode="pull-request",
                    configs=("clusters/*/sectors.yaml", "more/sectors.yaml"),
                    output="infrastructure/fleets",
                ),
                "extra_files": FrozenMap(
                    {"policies/descheduler.yaml": "a: {b}\n", "z.json": "<&>"}
                ),
            },
        ),
    ],
    ids=["plain", "irsa and sector", "node watch", "second loop and files"],
)
def test_chart_installs_what_the_manifest_does(
    helm: str, tmp_path: Path, values: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Two ways to install that differ would be tested once and run twice."""
    plain: dict[str, Any] = {"cluster": "analytics", "config": CONFIG, "image": IMAGE}
    expected = objects(render_manifest(InstallSettings(**(plain | settings)), __version__))
    del expected["Namespace", NAMESPACE]  # Helm's --create-namespace makes it
    for (kind, _), each in expected.items():
        if kind == "Namespace":
            each["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    done = template(helm, tmp_path, VALUES | values)
    assert done.returncode == 0, done.stderr
    assert objects(done.stdout) == expected


def test_nodes_of_the_own_pods_can_be_emptied(helm: str, tmp_path: Path) -> None:
    """No rolling update would ever end: its last nodes are those that the reconciler runs on."""
    found = objects(template(helm, tmp_path, VALUES).stdout)
    ruling = ruled(found["Deployment", "fleet-reconciler"]["spec"]["template"])
    assert ruling.verdict is Verdict.OK, ruling


def test_pods_get_what_the_values_say_of_them(helm: str, tmp_path: Path) -> None:
    """Without them a private registry, a proxy or a cluster of mixed nodes needs a fork."""
    zones = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-west-2a"]}
    terms = [{"matchExpressions": [zones]}]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }
    secret = {"secretKeyRef": {"name": "proxy", "key": "url"}}
    values = {
        "sector": "coordinate",
        "nodeSelector": {"kubernetes.io/arch": "arm64", "spot": "true"},
        "affinity": affinity,
        "tolerations": [{"operator": "Exists"}, {"key": "a", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "registry"}],
        "resources": {"requests": {"cpu": 1, "memory": "2Gi"}},
        "extraEnv": [
            {"name": "NO_PROXY", "value": "a: {b}"},
            {"name": "HTTPS_PROXY", "valueFrom": secret},
        ],
        "nodeWatch": {"enabled": True},
    }
    done = template(helm, tmp_path, VALUES | values)
    assert done.returncode == 0, done.stderr
    found = objects(done.stdout)
    pod = found["Deployment", "fleet-reconciler"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {
        "sector": "coordinate",
        "kubernetes.io/arch": "arm64",
        "spot": "true",
    }
    assert (pod["affinity"], pod["tolerations"]) == (affinity, values["tolerations"])
    assert pod["containers"][0]["resources"] == values["resources"]
    assert pod["containers"][0]["env"][-2:] == values["extraEnv"]
    watch = found["DaemonSet", "fleet-reconciler-node-watch"]["spec"]["template"]["spec"]
    for each in (pod, watch):
        assert each["imagePullSecrets"] == [{"name": "registry"}]


def test_objects_for_prometheus_and_grafana_come_when_asked_for(helm: str, tmp_path: Path) -> None:
    """A cluster without the operator's CRDs refuses the whole release."""
    asked = {"enabled": True}
    more = {"serviceMonitor": asked, "prometheusRule": asked, "dashboards": asked}
    found = objects(template(helm, tmp_path, VALUES | more).stdout)
    plain = objects(template(helm, tmp_path, VALUES).stdout)
    added = sorted(f"{kind} {name}" for kind, name in found.keys() - plain.keys())
    assert added == [
        "ConfigMap fleet-reconciler-dashboard-cost",
        "ConfigMap fleet-reconciler-dashboard-overview",
        "ConfigMap fleet-reconciler-dashboard-pending",
        "ConfigMap fleet-reconciler-dashboard-second-loop",
        "PrometheusRule fleet-reconciler",
        "ServiceMonitor fleet-reconciler",
    ]
    rules = found["PrometheusRule", "fleet-reconciler"]["spec"]
    assert rules == yaml.safe_load((CHART / "files/alerts.yaml").read_text())
    shown = found["ConfigMap", "fleet-reconciler-dashboard-cost"]["data"]["cost.json"]
    assert json.loads(shown) == json.loads((CHART / "files/dashboards/cost.json").read_text())


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"cluster": ""}, "cluster"),
        ({"config": ""}, "config"),
        ({"image": {"repository": ""}}, "repository"),
        ({"identity": {"kind": "irsa"}}, "roleArn"),
        ({"identity": {"kind": "irsa", "roleArn": "admin"}}, "roleArn"),
        ({"gitops": {"repository": "https://user:secret@git.example/x"}}, "repository"),
        ({"gitops": {"repository": "ssh://git:secret@git.example/x"}}, "repository"),
        ({"gitops": {"repository": "https://git.example/x?private_token=abc1"}}, "repository"),
        ({"gitops": {"repository": "http://git.example/x"}}, "repository"),
        ({"gitops": {"repository": "git@git.example:x", "branch": "a..b"}}, "branch"),
        ({"image": {"repository": "r/x", "tag": "1:2"}}, "tag"),
        ({"replica": 3}, "replica"),
        ({"replicas": 0}, "replicas"),
        ({"gitops": None}, "gitops"),
        ({"gitops": {"branch": None}}, "branch"),
        ({"gitops": {"configs": ["../sectors.yaml"]}}, "configs"),
        ({"gitops": {"out": "/terraform"}}, "out"),
        ({"serviceMonitor": None}, "serviceMonitor"),
        ({"dashboards": None}, "dashboards"),
        ({"extraFiles": None}, "extraFiles"),
        ({"extraFiles": {"../x": ""}}, "'../x'"),
        ({"extraFiles": {"a..b": "", "a/b": ""}}, "'a..b'"),
        ({"extraFiles": {"sectors.yaml": ""}}, "'sectors.yaml'"),
        ({"resources": {"limits": {"memory": "1 GB"}}}, "resources"),
        ({"resources": {"limit": {"memory": "1Gi"}}}, "'limit'"),
        ({"tolerations": [{"effect": "NoSchedule"}]}, "key"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "value"),
        ({"nodeSelector": {"sector": "a"}}, "sector"),
        ({"affinity": {"nodes": {}}}, "nodes"),
        ({"extraEnv": [{"name": "HOME", "value": "/"}]}, "extraEnv"),
        ({"imagePullSecrets": ["registry"]}, "imagePullSecrets"),
    ],
)
def test_values_that_would_not_run_are_refused(
    helm: str, tmp_path: Path, values: dict[str, Any], named: str
) -> None:
    """A release that installs and never acts is found at 3 a.m."""
    done = template(helm, tmp_path, VALUES | values)
    assert done.returncode != 0
    assert named in done.stderr
    assert "secret@" not in done.stdout


@pytest.mark.parametrize(
    ("config", "values", "named"),
    [
        ("leader_election: {enabled: false}", {}, "both act"),
        ("leader_election: {enabled: no}", {}, "both act"),
        ("leader_election: {namespace: kube-system}", {}, "write Leases in"),
        ("notifications: {slack_hook: https://hooks.example/hunter2}", {}, "a secret"),
        ("kubeconfig: /home/me/.kube/config", {}, "a pod has no such file"),
        ("kube_context: prod", {}, "no kubeconfig with contexts"),
        ("listen_token_file: /var/run/token", {}, "the pods have no such file"),
        ("recording: {path: /data}", {}, "recording.path"),
        ("recording: {", {}, "is not valid YAML"),
        ("", {"extraEnv": [{"name": "RECONCILER_LEADER_ELECT", "value": "false"}]}, "extraEnv"),
    ],
)
def test_config_that_the_manifest_refuses_is_refused_by_the_chart(
    helm: str, tmp_path: Path, config: str, values: dict[str, Any], named: str
) -> None:
    """Two replicas that both act, or a webhook in a ConfigMap that anybody may read."""
    done = template(helm, tmp_path, {**VALUES, **values, "config": f"{CONFIG}{config}\n"})
    assert done.returncode != 0
    assert named in done.stderr
    assert "hunter2" not in done.stdout + done.stderr


def test_service_monitor_without_the_token_that_it_needs_is_refused(
    helm: str, tmp_path: Path
) -> None:
    """Each scrape would get 401, and the alert of a program that is not scraped would fire."""
    config = f"{CONFIG}listen_token_file: {TOKEN_FILE}\n"
    monitored = {"serviceMonitor": {"enabled": True}}
    done = template(helm, tmp_path, {**VALUES, **monitored, "config": config})
    assert done.returncode != 0
    assert "listen_token_file" in done.stderr


@pytest.mark.parametrize(
    "config",
    [
        "leader_election: {namespace: fleet-reconciler, enabled: yes}",
        "leader_election:\nnotifications: {slack_hook: ''}",
        "recording: {path: s3://bucket/prefix}",
        "listen_token_file: /etc/fleet-reconciler-token/listen-token",
        "# no more",
    ],
)
def test_config_that_the_manifest_takes_is_taken_by_the_chart(
    helm: str, tmp_path: Path, config: str
) -> None:
    """Who cannot install writes a chart of their own."""
    done = template(helm, tmp_path, {**VALUES, "config": f"{CONFIG}{config}\n"})
    assert done.returncode == 0, done.stderr
    check(settings(), parse_config(f"{CONFIG}{config}\n"))


def test_one_replica_without_an_election_is_replaced_after_it_has_ended(
    helm: str, tmp_path: Path
) -> None:
    """In a rolling update the old one and the new one would both act."""
    config = CONFIG + "leader_election: {enabled: false}\n"
    done = template(helm, tmp_path, {**VALUES, "replicas": 1, "config": config})
    assert done.returncode == 0, done.stderr
    made = render_manifest(
        settings(image=IMAGE, config=config, replicas=1, elects=False), __version__
    )
    found = objects(done.stdout)["Deployment", "fleet-reconciler"]
    assert found["spec"]["strategy"] == {"type": "Recreate"}
    assert found == objects(made)["Deployment", "fleet-reconciler"]


@pytest.mark.parametrize(
    ("watch", "named"),
    [
        *(({"namespace": name}, f"every cluster has {name}") for name in sorted(ALWAYS_THERE)),
        ({"namespace": "kube-system", "createNamespace": False}, None),
        ({"namespace": "monitoring", "createNamespace": False}, None),
        ({"namespace": NAMESPACE}, None),
    ],
)
def test_namespace_of_others_is_not_made_privileged(
    helm: str, tmp_path: Path, watch: dict[str, Any], named: str | None
) -> None:
    """Any pod of a privileged namespace may take over its node."""
    done = template(helm, tmp_path, {**VALUES, "nodeWatch": {"enabled": True, **watch}})
    assert (done.returncode == 0) is (named is None), done.stderr
    assert (named or "") in done.stderr
    assert "kind: Namespace" not in done.stdout


def test_values_of_an_older_chart_keep_the_node_watchs_namespace(helm: str, tmp_path: Path) -> None:
    """`--reuse-values` brings no new key, and Helm deletes what the chart has no more."""
    watch = {"enabled": True, "createNamespace": None}
    done = template(helm, tmp_path, {**VALUES, "nodeWatch": watch})
    assert done.returncode == 0, done.stderr
    assert ("Namespace", "fleet-reconciler-node-watch") in objects(done.stdout)


def test_chart_passes_helm_lint(helm: str, tmp_path: Path) -> None:
    """Registries refuse charts that do not."""
    file = tmp_path / "values.json"
    file.write_text(json.dumps(VALUES))
    command = [helm, "lint", "--strict", str(CHART), "--values", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_chart_is_of_the_programs_version() -> None:
    """Its default image would be another program's."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_every_value_is_in_the_schema() -> None:
    """A value that the schema does not know is refused, a property without a default is hidden."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert _keys_of_schema(schema) - {"global"} == _keys(values)


def _keys(values: dict[str, Any], prefix: str = "") -> set[str]:
    found: set[str] = set()
    for key, value in values.items():
        found.add(prefix + key)
        if isinstance(value, dict):
            found |= _keys(value, f"{prefix}{key}.")
    return found


def _keys_of_schema(schema: dict[str, Any], prefix: str = "") -> set[str]:
    found: set[str] = set()
    for key, value in schema.get("properties", {}).items():
        found |= {prefix + key} | _keys_of_schema(value, f"{prefix}{key}.")
    return found
