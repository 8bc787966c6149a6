"""AWS, cluster and joiner together, as processes."""

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from kubernetes import client, config, watch

from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.joiner import JoinerSettings
from reconciler.sandbox.stack import Sandbox, SandboxSettings
from tests.sandbox.cluster.kube import is_ready
from tests.sandbox.cluster.user_data import MIME, NODE_CONFIG
from tests.waiting import until

pytestmark = pytest.mark.sandbox
DEADLINE_SECONDS = 120
UP = [sys.executable, "-m", "reconciler", "sandbox", "up"]
READ_CLUSTER = (
    "import os, urllib.request as u; "
    "print(sorted(k for k in os.environ if k.startswith(('AWS_', 'KUBECONFIG')))); "
    "raise SystemExit(7)"
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A fast one for all tests of this module."""
    settings = SandboxSettings(
        delays=Delays(launch_seconds=0.1, terminate_seconds=0.1, modify_seconds=0.1),
        joiner=JoinerSettings(cluster="analytics", join_seconds=0.1, remove_seconds=0.5),
    )
    with Sandbox(settings) as running:
        yield running


@pytest.fixture
def core(sandbox: Sandbox) -> Iterator[Any]:
    """The official client on its cluster."""
    make: Any = config.new_client_from_config
    api = make(config_file=str(sandbox.kubeconfig))
    yield client.CoreV1Api(api)
    api.rest_client.pool_manager.clear()


@pytest.fixture
def ec2(sandbox: Sandbox) -> Iterator[Any]:
    """EC2 of its AWS."""
    made: Any = boto3.client(
        "ec2",
        endpoint_url=sandbox.aws_url,
        aws_access_key_id="sandbox",
        aws_secret_access_key="sandbox",
        region_name="us-west-2",
    )
    yield made
    made.close()


AL2 = """#!/bin/bash
/etc/eks/bootstrap.sh {cluster} --use-max-pods false --kubelet-extra-args \\
  '--node-labels=fleet={fleet} --register-with-taints=dedicated=batch:NoSchedule --max-pods=20'
"""


def launch(
    ec2: Any, name: str, cluster: str, user_data: str, instance_type: str = "r5.xlarge"
) -> str:
    """A fleet of one instance; its id."""
    tags = [{"Key": "cluster", "Value": cluster}, {"Key": "fleet", "Value": name}]
    data = {
        "ImageId": "ami-0123456789abcdef0",
        "UserData": base64.b64encode(user_data.encode()).decode(),
        "TagSpecifications": [{"ResourceType": "instance", "Tags": tags}],
    }
    template = ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    fleet = ec2.create_fleet(
        Type="maintain",
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {
                    "LaunchTemplateId": template["LaunchTemplate"]["LaunchTemplateId"],
                    "Version": "$Latest",
                },
                "Overrides": [{"InstanceType": instance_type, "SubnetId": subnet}],
            }
        ],
        TargetCapacitySpecification={
            "TotalTargetCapacity": 1,
            "DefaultTargetCapacityType": "spot",
        },
    )
    return str(fleet["FleetId"])


def test_instance_joins_as_ready_node_and_leaves_with_its_end(
    core: Any, ec2: Any, sandbox: Sandbox
) -> None:
    """Without it no capacity that is launched ever takes a pod."""
    user_data = MIME.format(kind="application/node.eks.aws", text=NODE_CONFIG)
    foreign = launch(ec2, "foreign", "other", user_data)
    fleet = launch(ec2, "primary", "analytics", user_data)
    make: Any = watch.Watch
    stream = make()
    joined = ""
    seen: list[str] = []
    for event in stream.stream(core.list_node, timeout_seconds=DEADLINE_SECONDS):
        node = event["object"]
        seen.append(event["type"])
        if node.metadata.labels["node.kubernetes.io/instance-type"] != "r5.xlarge":
            continue  # of the other test
        if not joined and is_ready(node) and not _is_new(node):
            joined = node.metadata.name
            assert node.metadata.labels["fleet"] == "primary-small"
            instance = node.spec.provider_id.rpartition("/")[2]
            members = ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"]
            assert instance in {member["InstanceId"] for member in members}
            sandbox.control.terminate([instance], "spot-interruption")
        if node.metadata.name == joined and event["type"] == "DELETED":
            stream.stop()
            break
    assert seen[-1] == "DELETED"
    others = ec2.describe_fleet_instances(FleetId=foreign)["ActiveInstances"]
    nodes = {node.spec.provider_id.rpartition("/")[2] for node in core.list_node().items}
    assert others
    assert not nodes & {member["InstanceId"] for member in others}


def _is_new(node: Any) -> bool:
    return any(t.key == "node.kubernetes.io/not-ready" for t in node.spec.taints or [])


def test_instances_of_al2_join_by_what_their_bootstrap_script_is_given(
    core: Any, ec2: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Fleets with ami_type AL2 would never get a node; one bad instance may hold up no other."""
    said = {
        "nothing": ("", "is empty"),
        "elsewhere": (
            AL2.format(cluster="other", fleet="elsewhere"),
            "names the cluster other, not analytics",
        ),
        "refused": (AL2.format(cluster="analytics", fleet="not/a/value"), "metadata.labels"),
    }
    for name, (user_data, _) in said.items():
        launch(ec2, name, "analytics", user_data, "r5.2xlarge")
    user_data = AL2.format(cluster="analytics", fleet="al2")
    fleet = launch(ec2, "al2", "analytics", user_data, "r5.2xlarge")
    make: Any = watch.Watch
    stream = make()
    found: Any = None
    for event in stream.stream(core.list_node, timeout_seconds=DEADLINE_SECONDS):
        labels = event["object"].metadata.labels
        if labels["node.kubernetes.io/instance-type"] == "r5.2xlarge" and is_ready(event["object"]):
            found = event["object"]
            stream.stop()
            break
    members = ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"]
    assert [member["InstanceId"] for member in members] == [found.spec.provider_id.split("/")[-1]]
    assert found.metadata.labels["fleet"] == "al2"
    taints = [(taint.key, taint.value, taint.effect) for taint in found.spec.taints]
    assert ("dedicated", "batch", "NoSchedule") in taints
    assert found.status.allocatable["pods"] == "20"
    for _, reason in said.values():
        until(reason, partial(_lines_with, reason, caplog))


def _lines_with(text: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if text in line]


def test_instance_of_auto_scaling_group_joins(core: Any, sandbox: Sandbox, ec2: Any) -> None:
    """Managed node groups would get capacity that no pod ever runs on."""
    user_data = MIME.format(kind="application/node.eks.aws", text=NODE_CONFIG)
    data = {
        "ImageId": "ami-0123456789abcdef0",
        "InstanceType": "m5.xlarge",
        "UserData": base64.b64encode(user_data.encode()).decode(),
    }
    ec2.create_launch_template(LaunchTemplateName="group", LaunchTemplateData=data)
    groups: Any = boto3.client(
        "autoscaling",
        endpoint_url=sandbox.aws_url,
        aws_access_key_id="sandbox",
        aws_secret_access_key="sandbox",
        region_name="us-west-2",
    )
    groups.create_auto_scaling_group(
        AutoScalingGroupName="group",
        LaunchTemplate={"LaunchTemplateName": "group", "Version": "$Latest"},
        MinSize=0,
        MaxSize=3,
        DesiredCapacity=1,
        AvailabilityZones=["us-west-2a"],
        Tags=[{"Key": "cluster", "Value": "analytics", "PropagateAtLaunch": True}],
    )
    make: Any = watch.Watch
    stream = make()
    found: list[str] = []
    for event in stream.stream(core.list_node, timeout_seconds=DEADLINE_SECONDS):
        labels = event["object"].metadata.labels
        if labels["node.kubernetes.io/instance-type"] == "m5.xlarge" and is_ready(event["object"]):
            found.append(event["object"].spec.provider_id.rpartition("/")[2])
            stream.stop()
            break
    answer = groups.describe_auto_scaling_groups(AutoScalingGroupNames=["group"])
    groups.close()
    assert [i["InstanceId"] for i in answer["AutoScalingGroups"][0]["Instances"]] == found


def test_command_inside_gets_environment_and_gives_its_exit_code() -> None:
    """Scripts could not tell whether what ran in the sandbox succeeded."""
    done = subprocess.run(
        [*UP, "--", sys.executable, "-c", READ_CLUSTER],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    assert "'AWS_ENDPOINT_URL'" in done.stdout
    assert "'KUBECONFIG'" in done.stdout


def test_missing_command_is_one_line_on_stderr() -> None:
    """A traceback tells nobody that a program is not installed."""
    argv = [*UP, "--", "no-such-program-anywhere"]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: no-such-program-anywhere: ")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_sandbox_up_ends_on_sigterm_without_a_trace() -> None:
    """Every run would leave two servers behind; a start without a word looks like a hang."""
    process = subprocess.Popen(
        [*UP, "--output", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stderr.readline().startswith("starting AWS and the cluster")
    environment = json.loads(process.stdout.readline())
    children = _children(process.pid)
    assert len(children) == 2
    kubeconfig = Path(environment["KUBECONFIG"])
    assert kubeconfig.exists()
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE_SECONDS) == 0
    process.stdout.close()
    process.stderr.close()
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]
    assert not kubeconfig.parent.exists()


def test_interrupted_start_is_no_success() -> None:
    """A script would go on with a sandbox that never was."""
    with subprocess.Popen(UP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("starting AWS and the cluster")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, out) == (130, "")


def _children(pid: int) -> list[int]:
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found
