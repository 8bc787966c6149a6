"""A cluster goes from the real Cluster Autoscaler to the reconciler, and back.

Cluster Autoscaler is built apart, as it is no part of this project: in its source tree
`CGO_ENABLED=0 go build -tags aws -o cluster-autoscaler .` (tried with 1.36.1).
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import boto3
import pytest

from reconciler.adapters.kubernetes import Transport
from reconciler.model.actions import DRAINING_TAINT, UNNEEDED_SINCE, UNNEEDED_TAINT
from reconciler.sandbox.control_plane.plane import ControlPlane
from tests.e2e.sandbox import OnRealCluster
from tests.sandbox.capacity.fleets import REGION, create_group
from tests.sandbox.capacity.world import Program
from tests.waiting import until

VARIABLE = "RECONCILER_CLUSTER_AUTOSCALER"
PROGRAM = os.environ.get(VARIABLE, "")  # noqa: TID251 - where the other program is
SPACE = "handover"
ITS_TAINTS = frozenset({"ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler"})
OUR_TAINTS = frozenset({DRAINING_TAINT, UNNEEDED_TAINT})
TAGS = {
    "k8s.io/cluster-autoscaler/enabled": "true",
    "k8s.io/cluster-autoscaler/analytics": "owned",
}
CONFIG = """\
cluster: analytics
regions: [us-west-2]
sleep_interval: 1
listen: 127.0.0.1:0
scale_in: {idle_threshold: 5s, unneeded_time: 5s, settle_time: 5s}
"""
PAGE = Path(__file__).parents[2] / "docs" / "migrating-from-cluster-autoscaler.md"
_MERGE = "application/merge-patch+json"


def printed_commands() -> list[tuple[str, str]]:
    """The commands of the page that clean nodes up: `taint` or `annotate`, and the keys."""
    return re.findall(r"`kubectl (taint|annotate) nodes --all ([^`]+)`", PAGE.read_text())


class Handover:
    """One group, one Deployment of two pods to a node, and whoever scales the group."""

    def __init__(self, sandbox: OnRealCluster, api: Transport, folder: Path) -> None:
        self.sandbox, self.api, self.folder = sandbox, api, folder
        session: Any = boto3.Session("sandbox", "sandbox", region_name=REGION)
        self._groups = session.client("autoscaling", endpoint_url=sandbox.aws_url)
        self._group = create_group(sandbox.aws_url, "small", tags=TAGS)
        self._other: subprocess.Popen[bytes] | None = None
        self._log = folder / "cluster-autoscaler.log"
        api.expect("POST", "/api/v1/namespaces", body={"metadata": {"name": SPACE}})
        account = f"/api/v1/namespaces/{SPACE}/serviceaccounts/default"
        until("pods can be made", lambda: api.request("GET", account).status == 200)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_cluster_autoscaler()
        self.api.request("DELETE", f"/api/v1/namespaces/{SPACE}")
        self.api.request(
            "DELETE", f"/api/v1/namespaces/{SPACE}/pods", query={"gracePeriodSeconds": 0}
        )
        self._groups.delete_auto_scaling_group(AutoScalingGroupName=self._group, ForceDelete=True)
        until("its nodes are gone", lambda: not self.nodes())
        self._groups.close()

    def start_cluster_autoscaler(self) -> None:
        """It runs on the group, found by its tags."""
        names = ("autoscaling", "ec2", "eks", "sts")
        override = "\n".join(
            f'[ServiceOverride "{number}"]\nService = {name}\nRegion = {REGION}\n'
            f"URL = {self.sandbox.aws_url}\nSigningRegion = {REGION}\n"
            for number, name in enumerate(names)
        )
        (self.folder / "cloud.conf").write_text(override)
        flags = {
            "cloud-provider": "aws",
            "cloud-config": str(self.folder / "cloud.conf"),
            "kubeconfig": str(self.sandbox.kubeconfig),
            "namespace": SPACE,
            "leader-elect": "false",
            "address": "127.0.0.1:0",
            "node-group-auto-discovery": "asg:tag=" + ",".join(TAGS),
            "aws-use-static-instance-list": "true",
            "scan-interval": "1s",
            "scale-down-unneeded-time": "5s",
            "scale-down-delay-after-add": "1s",
            "skip-nodes-with-system-pods": "false",
            "v": "2",
        }
        with self._log.open("ab") as log:
            self._other = subprocess.Popen(
                [PROGRAM, *(f"--{name}={value}" for name, value in flags.items())],
                env={**os.environ, **self.sandbox.environment()},  # noqa: TID251 - a child's
                stdout=log,
                stderr=log,
            )

    def stop_cluster_autoscaler(self) -> None:
        """Killed in the middle of what it does."""
        if self._other is not None:
            self._other.kill()
            self._other.wait()
            self._other = None

    def run(self, *arguments: str) -> Program:
        """The reconciler as a process, with no more than the cluster's name."""
        file = self.folder / "sectors.yaml"
        file.write_text(CONFIG)
        return Program(self.sandbox, file, *arguments, "--pod-namespace", SPACE)

    # ---- the workload -----------------------------------------------------------------------

    def scale(self, replicas: int) -> None:
        """The Deployment is to have so many pods."""
        path = f"/apis/apps/v1/namespaces/{SPACE}/deployments"
        spec: dict[str, Any] = {"replicas": replicas}
        if self.api.request("GET", f"{path}/web").status == 200:
            body = {"spec": spec}
            self.api.expect("PATCH", f"{path}/web", body=body, content_type=_MERGE)
            return
        requests = {"requests": {"cpu": "1500m", "memory": "1Gi"}}
        container = {"name": "c", "image": "registry/app:1", "resources": requests}
        spec["selector"] = {"matchLabels": {"app": "web"}}
        spec["template"] = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [container]},
        }
        self.api.expect("POST", path, body={"metadata": {"name": "web"}, "spec": spec})

    def until_running(self, replicas: int) -> None:
        """Wait until so many pods run, and no others are there."""

        def phases() -> list[str]:
            found = self.api.expect("GET", f"/api/v1/namespaces/{SPACE}/pods").json()["items"]
            return [p["status"]["phase"] for p in found if "deletionTimestamp" not in p["metadata"]]

        until(
            lambda: f"{replicas} pods run, not {phases()}\n{self.told()}",
            lambda: phases() == ["Running"] * replicas,
        )

    # ---- the nodes --------------------------------------------------------------------------

    def nodes(self) -> list[Mapping[str, Any]]:
        """All nodes."""
        found: list[Mapping[str, Any]] = self.api.expect("GET", "/api/v1/nodes").json()["items"]
        return found

    def taints(self) -> set[str]:
        """The keys of all nodes' taints."""
        return {t["key"] for node in self.nodes() for t in node["spec"].get("taints", ())}

    def sizes(self) -> tuple[int, int, int]:
        """What the group is to hold, what it holds, and the nodes."""
        (group,) = self._groups.describe_auto_scaling_groups()["AutoScalingGroups"]
        return group["DesiredCapacity"], len(group["Instances"]), len(self.nodes())

    def until_nodes(self, count: int) -> None:
        """Wait until the group wants and has so many nodes."""
        until(
            lambda: f"{count} nodes, not {self.sizes()}\n{self.told()}",
            lambda: self.sizes() == (count, count, count),
        )

    def clean(self, key: str) -> None:
        """Run the printed commands that take this key off all nodes, as kubectl does."""
        commands = [
            printed_command
            for printed_command in printed_commands()
            if f"{key}-" in printed_command[1].split()
        ]
        assert commands, f"the page has no command that takes {key} off"
        for verb, arguments in commands:
            keys = {word.removesuffix("-") for word in arguments.split()}
            take_off = self._untaint if verb == "taint" else self._unannotate
            for node in self.nodes():
                take_off(node, keys)

    def _untaint(self, node: Mapping[str, Any], keys: set[str]) -> None:
        """A node that lacks one of the keys is not changed at all, as kubectl does it."""
        taints = node["spec"].get("taints", ())
        if keys <= {taint["key"] for taint in taints}:
            kept = [taint for taint in taints if taint["key"] not in keys]
            self._patch(node, {"spec": {"taints": kept}})

    def _unannotate(self, node: Mapping[str, Any], keys: set[str]) -> None:
        """A node without them stays as it is, without an error."""
        self._patch(node, {"metadata": {"annotations": dict.fromkeys(keys)}})

    def _patch(self, node: Mapping[str, Any], body: dict[str, Any]) -> None:
        path = f"/api/v1/nodes/{node['metadata']['name']}"
        self.api.request("PATCH", path, body=body, content_type=_MERGE)

    def told(self) -> str:
        """The end of Cluster Autoscaler's log."""
        return self._log.read_text()[-3000:] if self._log.exists() else ""


@pytest.fixture
def cluster(plane: ControlPlane, api: Transport, tmp_path: Path) -> Iterator[Handover]:
    """A cluster with an empty group."""
    with OnRealCluster(plane) as sandbox, Handover(sandbox, api, tmp_path) as made:
        yield made


@pytest.mark.skipif(not PROGRAM, reason=f"the real Cluster Autoscaler: set {VARIABLE} to its path")
def test_cluster_goes_from_cluster_autoscaler_to_the_reconciler_and_back(
    cluster: Handover, closing_lines: list[str]
) -> None:
    """Who cannot go back does not try; the steps are those of the page."""
    cluster.start_cluster_autoscaler()
    cluster.scale(6)
    cluster.until_running(6)
    cluster.until_nodes(3)
    with cluster.run("--dry-run") as looking:
        looking.until_ready()
        assert looking.events("action_applied") == []
        looking.end()
    assert not cluster.taints() & OUR_TAINTS

    cluster.scale(2)
    until(lambda: f"its taints\n{cluster.told()}", lambda: cluster.taints() & ITS_TAINTS)
    cluster.stop_cluster_autoscaler()
    with cluster.run() as ours:
        ours.until_ready()
        cluster.until_nodes(1)
        cluster.until_running(2)
        cluster.scale(8)
        cluster.until_running(8)
        cluster.until_nodes(4)
        for taint in ITS_TAINTS:
            cluster.clean(taint)
        cluster.scale(2)
        until("our taints", lambda: cluster.taints() & OUR_TAINTS)
        ours.end()
        applied = [event["action"] for event in ours.events("action_applied")]

    for key in (*OUR_TAINTS, UNNEEDED_SINCE):
        cluster.clean(key)
    assert not cluster.taints() & (ITS_TAINTS | OUR_TAINTS)
    cluster.start_cluster_autoscaler()
    cluster.until_nodes(1)
    cluster.until_running(2)
    cluster.scale(4)
    cluster.until_running(4)
    cluster.until_nodes(2)
    cluster.scale(0)
    cluster.until_nodes(0)
    assert {"set-capacity", "terminate-instance"} <= set(applied)
    closing_lines.append(
        f"handed over from Cluster Autoscaler and back: {applied.count('set-capacity')} desired "
        f"capacities set, {applied.count('terminate-instance')} instances ended meanwhile"
    )
