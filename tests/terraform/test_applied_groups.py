"""Auto Scaling groups of a sector config, rendered and applied to the emulated AWS."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from reconciler.config.loader import Purpose, parse_config
from reconciler.gitops.render import render
from reconciler.gitops.root_module import root_module_of
from reconciler.gitops.write import write_rendered
from reconciler.sandbox.aws.bootstrap import bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays
from tests.terraform.program import find_terraform
from tests.terraform.workspaces import Workspace

pytestmark = [pytest.mark.terraform, pytest.mark.sandbox]

CONFIG = """\
cluster: analytics
regions: [us-west-2]
terraform:
  ami: {ami}
  security_group_id: {group}
  private_subnet_ids: {{us-west-2a: {subnet_a}, us-west-2b: {subnet_b}}}
  tags: {{environment: production}}
sectors:
  web:
    kind: cpu
    taints: [{{key: dedicated, value: web, effect: NoSchedule}}]
    fleets:
    - size: small
      provider: asg
      auto_scaling_group: analytics-web-small
      initial_node_count: 1
      max_capacity: {most}
      terraform: {{on_demand_base_capacity: 1}}
    - {{size: large, provider: asg, auto_scaling_group: analytics-web-large, spot: false}}
    - {{size: medium}}
"""
_NODE_TEMPLATE = "k8s.io/cluster-autoscaler/node-template"


@pytest.fixture
def server() -> Iterator[AwsServer]:
    """The emulated AWS, quick."""
    delays = Delays(launch_seconds=0.1, terminate_seconds=0.1, modify_seconds=0.1)
    with AwsServer(delays=delays) as running:
        yield running


@pytest.fixture
def clients(server: AwsServer) -> Iterator[dict[str, Any]]:
    """EC2 and Auto Scaling as the capacity loop sees them."""
    session: Any = boto3.Session("test", "test", region_name="us-west-2")
    found = {name: session.client(name, endpoint_url=server.url) for name in ("ec2", "autoscaling")}
    yield found
    for client in found.values():
        client.close()


def config(server: AwsServer, most: int = 20, ami: str = "") -> str:
    """The sector config with what the account has."""
    ids = bootstrap_account(server.url)
    subnets = sorted(ids.subnet_ids.items())
    return CONFIG.format(
        ami=ami or ids.ami,
        group=ids.security_group_id,
        subnet_a=subnets[0][1],
        subnet_b=subnets[1][1],
        most=most,
    )


def rendered(text: str, folder: Path) -> Any:
    """The config's root module, rendered into a folder."""
    root = root_module_of(parse_config(text, purpose=Purpose.RENDER))
    write_rendered(render(root), folder)
    return root


def groups(auto_scaling: Any) -> dict[str, dict[str, Any]]:
    """The groups that Auto Scaling has, by name, with their tags by key."""
    found = auto_scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    return {
        each["AutoScalingGroupName"]: {
            **each,
            "Tags": {tag["Key"]: tag["Value"] for tag in each["Tags"]},
        }
        for each in found
    }


def test_groups_are_made_and_scaling_them_leaves_the_plan_empty(
    server: AwsServer, clients: dict[str, Any], tmp_path: Path
) -> None:
    """A plan that is never empty hides the change that matters, or rolls capacity back."""
    auto_scaling = clients["autoscaling"]
    text = config(server)
    terraform = find_terraform()
    workspace = Workspace(
        terraform=terraform,
        folder=tmp_path,
        server=server,
        ec2=clients["ec2"],
        root=rendered(text, tmp_path),
    )
    terraform.init(tmp_path)
    workspace.apply()
    workspace.assert_no_changes()
    made = groups(auto_scaling)
    assert sorted(made) == ["analytics-web-large", "analytics-web-small"]
    assert sorted(workspace.fleets()) == ["web-medium"]
    small = made["analytics-web-small"]
    assert (small["MinSize"], small["MaxSize"], small["DesiredCapacity"]) == (0, 20, 1)
    assert made["analytics-web-large"]["MaxSize"] == 1000
    assert {each["ProcessName"] for each in small["SuspendedProcesses"]} == {"AZRebalance"}
    assert small["Tags"]["fleet"] == "web-small"
    assert small["Tags"]["environment"] == "production"
    assert small["Tags"][f"{_NODE_TEMPLATE}/label/lifecycle"] == "Ec2Spot"
    assert small["Tags"][f"{_NODE_TEMPLATE}/taint/dedicated"] == "web:NoSchedule"

    auto_scaling.set_desired_capacity(AutoScalingGroupName="analytics-web-small", DesiredCapacity=5)
    auto_scaling.suspend_processes(
        AutoScalingGroupName="analytics-web-small", ScalingProcesses=["Launch"]
    )
    workspace.assert_no_changes()

    rendered(config(server, most=30, ami="ami-0123456789abcdef0"), tmp_path)
    assert workspace.planned_actions() == {
        "aws_autoscaling_group web-small": ["update"],
        "aws_launch_template web-large": ["update"],
        "aws_launch_template web-medium": ["update"],
        "aws_launch_template web-small": ["update"],
    }
    server.calls.clear()
    workspace.apply()
    sent = [call.parameters for call in server.calls.calls(action="UpdateAutoScalingGroup")]
    assert [(each.get("MaxSize"), each.get("DesiredCapacity")) for each in sent] == [("30", None)]
    small = groups(auto_scaling)["analytics-web-small"]
    assert (small["MaxSize"], small["DesiredCapacity"]) == (30, 5)
    assert len(small["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]) == 4
    workspace.assert_no_changes()
