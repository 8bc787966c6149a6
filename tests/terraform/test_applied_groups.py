"""Auto Scaling groups of a sector config, rendered and applied to the emulated AWS."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from reconciler.adapters.aws.left_behind import read_left_behind
from reconciler.config.loader import Purpose, load_config, parse_config
from reconciler.config.resolve import resolve_fleets
from reconciler.gitops.rendering.render import render
from reconciler.gitops.rendering.root_module import root_module_of
from reconciler.gitops.rendering.write import write_rendered
from reconciler.gitops.terraform_plan.root_files import foreign_files
from reconciler.model.fleet import NODE_TEMPLATE
from reconciler.model.ids import Region
from reconciler.sandbox.aws.bootstrap import AccountIds, bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays
from tests import command
from tests.terraform.program import find_terraform
from tests.terraform.workspaces import Workspace

pytestmark = [pytest.mark.terraform, pytest.mark.sandbox, pytest.mark.timeout(1800)]

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
_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - the process needs PATH and HOME


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


@pytest.fixture
def applied(server: AwsServer, clients: dict[str, Any], tmp_path: Path) -> Workspace:
    """The config's groups and fleet, applied."""
    terraform = find_terraform()
    folder = tmp_path / "applied"
    workspace = Workspace(
        terraform=terraform,
        folder=folder,
        server=server,
        ec2=clients["ec2"],
        root=rendered(config(server), folder),
    )
    terraform.init(folder)
    workspace.apply()
    return workspace


def test_groups_are_made_and_scaling_them_leaves_the_plan_empty(
    applied: Workspace, clients: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that is never empty hides the change that matters, or rolls capacity back."""
    auto_scaling, server, workspace = clients["autoscaling"], applied.server, applied
    workspace.assert_no_changes()
    made = groups(auto_scaling)
    assert sorted(made) == ["analytics-web-large", "analytics-web-small"]
    assert sorted(workspace.fleets()) == ["web-medium"]
    small = made["analytics-web-small"]
    assert (small["MinSize"], small["MaxSize"], small["DesiredCapacity"]) == (0, 20, 1)
    assert made["analytics-web-large"]["MaxSize"] == 1000
    assert {
        suspended_process["ProcessName"] for suspended_process in small["SuspendedProcesses"]
    } == {"AZRebalance"}
    assert small["Tags"]["fleet"] == "web-small"
    assert small["Tags"]["environment"] == "production"
    assert small["Tags"][f"{NODE_TEMPLATE}/label/lifecycle"] == "Ec2Spot"
    assert small["Tags"][f"{NODE_TEMPLATE}/taint/dedicated"] == "web:NoSchedule"

    auto_scaling.set_desired_capacity(AutoScalingGroupName="analytics-web-small", DesiredCapacity=5)
    auto_scaling.suspend_processes(
        AutoScalingGroupName="analytics-web-small", ScalingProcesses=["Launch"]
    )
    workspace.assert_no_changes()

    rendered(config(server, most=30, ami="ami-0123456789abcdef0"), applied.folder)
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
    for name, value in applied.surroundings.items():
        monkeypatch.setenv(name, value)
    made_by_name = read_left_behind(
        "analytics",
        Region("us-west-2"),
        {"web-medium": "analytics-web-medium"},
        {"web-small": "analytics-web-small-group", "web-none": "analytics-web-none-group"},
    )
    assert {name: sorted(kinds) for name, kinds in made_by_name.items()} == {
        "web-medium": ["aws_ec2_fleet", "aws_launch_template"],
        "web-small": ["aws_autoscaling_group", "aws_launch_template"],
    }
    assert made_by_name["web-small"]["aws_autoscaling_group"] == "analytics-web-small"


@pytest.mark.nightly
def test_lost_state_and_groups_of_others_are_imported_without_a_change(
    applied: Workspace, clients: dict[str, Any], tmp_path: Path
) -> None:
    """A group that is changed by being taken over launches other nodes, or ends some."""
    auto_scaling, ec2 = clients["autoscaling"], clients["ec2"]
    ids = bootstrap_account(applied.server.url)
    subnets = ",".join(list(ids.subnet_ids.values())[:2])
    by_hand(auto_scaling, ec2, ids, subnets)
    auto_scaling.set_desired_capacity(AutoScalingGroupName="analytics-web-small", DesiredCapacity=4)
    before = [without_instances(group) for group in groups(auto_scaling).values()]
    out = tmp_path / "adopted"
    done = command.reconciler(
        *("import", "--cluster-name", "analytics", "--out", str(out), "--output", "json"),
        env=_ENVIRONMENT | applied.surroundings | {"AWS_REGION": "us-west-2"},
        timeout_seconds=120,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert list(answer["left_out"]) == ["hand old/nodes"]
    adopted = load_config(out / "sectors.yaml")
    entries = {f.name: f for f in resolve_fleets(adopted)}
    assert all(entry.is_rendered for entry in entries.values())
    assert entries["web-small"].terraform["on_demand_base_capacity"] == 1
    assert entries["hand-mixed"].entry.max_capacity == 9
    assert entries["hand-plain"].terraform["mixed_instances_policy"] is False
    assert entries["hand-plain"].labels["team"] == "ml"
    assert [taint.value for taint in entries["hand-mixed"].taints] == ["ml"]
    assert [taint.value for taint in entries["web-small"].taints] == ["web"]
    assert "group_tags" not in entries["web-small"].terraform

    root = root_module_of(adopted)
    write_rendered(render(root), out / "terraform")
    taken = replace(applied, folder=out / "terraform", root=root)
    taken.terraform.init(taken.folder)
    assert foreign_files(taken.folder, allowed={}) == ()
    code, printed = taken.call("plan", "-out=saved")
    assert code == 0, printed
    assert "10 to import, 0 to add, 0 to change, 0 to destroy" in printed, printed
    assert taken.call("apply", "saved")[0] == 0
    (taken.folder / "imports.tf").unlink()
    taken.assert_no_changes()
    assert [without_instances(group) for group in groups(auto_scaling).values()] == before


def without_instances(group: dict[str, Any]) -> dict[str, Any]:
    """What a group is, without the instances that come and go."""
    return {key: value for key, value in group.items() if key != "Instances"}


def by_hand(auto_scaling: Any, ec2: Any, ids: AccountIds, subnets: str) -> None:
    """Groups of others: from a template alone, mixed with odd tags, from a configuration."""
    data = {"ImageId": ids.ami, "InstanceType": "m5.large", "SecurityGroupIds": ["sg-0aa"]}
    plain, mixed = (
        {
            "LaunchTemplateId": ec2.create_launch_template(
                LaunchTemplateName=name, LaunchTemplateData=data
            )["LaunchTemplate"]["LaunchTemplateId"]
        }
        for name in ("hand-plain", "hand-mixed")
    )
    policy = {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": {**mixed, "Version": "1"},
            "Overrides": [{"InstanceType": "c5.large"}, {"InstanceType": "c5a.large"}],
        },
        "InstancesDistribution": {
            "OnDemandBaseCapacity": 2,
            "OnDemandPercentageAboveBaseCapacity": 40,
            "SpotAllocationStrategy": "lowest-price",
        },
    }
    auto_scaling.create_launch_configuration(
        LaunchConfigurationName="old", ImageId=ids.ami, InstanceType="m5.large"
    )
    kinds: dict[str, dict[str, Any]] = {
        "plain": {"LaunchTemplate": {**plain, "Version": "$Latest"}},
        "mixed": {"MixedInstancesPolicy": policy},
        "old": {"LaunchConfigurationName": "old"},
    }
    for size, launches in kinds.items():
        tags = {
            "k8s.io/cluster-autoscaler/enabled": "true",
            "k8s.io/cluster-autoscaler/analytics": "owned",
            f"{NODE_TEMPLATE}/label/sector": "hand",
            f"{NODE_TEMPLATE}/label/size": size,
            f"{NODE_TEMPLATE}/label/team": "ml",
            f"{NODE_TEMPLATE}/taint/dedicated": "ml:NoSchedule",
        }
        auto_scaling.create_auto_scaling_group(
            AutoScalingGroupName=f"hand {size}/nodes",
            MinSize=1,
            MaxSize=9,
            VPCZoneIdentifier=subnets,
            HealthCheckGracePeriod=17,
            TerminationPolicies=["OldestInstance"],
            Tags=[
                {"Key": key, "Value": value, "PropagateAtLaunch": "enabled" in key}
                for key, value in tags.items()
            ],
            **launches,
        )
