"""Images by alias, subnets and security groups by tags: looked up by each plan of Terraform."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from reconciler.config.loader import parse_config
from reconciler.gitops.rendering.render import render
from reconciler.gitops.rendering.root_module import root_modules_of
from reconciler.gitops.rendering.write import write_rendered
from reconciler.sandbox.aws.bootstrap import AccountIds, bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from tests.terraform.program import TerraformProgram, find_terraform

pytestmark = [pytest.mark.terraform, pytest.mark.sandbox]

CONFIG = """
cluster: looked-up
regions: [us-west-2]
terraform:
  ami: AMI
  subnet_tags: {tier: nodes}
  security_group_tags: {kubernetes.io/cluster/looked-up: owned}
  instance_profile_name: ""
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small}
    - {size: medium, terraform: {subnet_tags: {tier: n*}}}
    - {size: large, provider: asg, auto_scaling_group: looked-up-large, max_capacity: 3}
"""
ASKED = {"DescribeSubnets": 2 + 2, "DescribeSecurityGroups": 1}
"""Requests of one plan: two selectors of subnets, each of the two subnets, and one of groups."""


@pytest.fixture
def server() -> Iterator[AwsServer]:
    """The emulated AWS."""
    with AwsServer() as running:
        yield running


class Account:
    """The account as people prepare it, and a root of Terraform in it."""

    def __init__(self, server: AwsServer, folder: Path) -> None:
        self.ids: AccountIds = bootstrap_account(server.url)
        self._url = server.url
        self._calls = server.control.calls
        self._folder = folder
        self._terraform: TerraformProgram = find_terraform()
        self.ec2 = self._client("ec2")
        self._ready = False

    def _client(self, service: str) -> Any:
        session: Any = boto3.Session("test", "test", region_name="us-west-2")
        return session.client(service, endpoint_url=self._url)

    def prepare(self) -> None:
        """An EKS cluster of 1.34, two tagged subnets and a tagged security group."""
        eks = self._client("eks")
        subnets = list(self.ids.subnet_ids.values())
        eks.create_cluster(
            name="looked-up",
            version="1.34",
            roleArn=f"arn:aws:iam::{self.ids.account_id}:role/cluster",
            resourcesVpcConfig={"subnetIds": subnets[:2]},
        )
        self.tag(subnets[:2], tier="nodes")
        self.tag([self.ids.security_group_id], **{"kubernetes.io/cluster/looked-up": "owned"})

    def tag(self, resources: list[str], **tags: str) -> None:
        """Tag resources of EC2."""
        made = [{"Key": key, "Value": value} for key, value in tags.items()]
        self.ec2.create_tags(Resources=resources, Tags=made)

    def call(self, ami: str, *arguments: str) -> tuple[int, str]:
        """Render the config with an image, and one call of Terraform: exit code and output."""
        config = parse_config(CONFIG.replace("AMI", ami))
        (root,) = root_modules_of(config).values()
        write_rendered(render(root), self._folder)
        if not self._ready:
            self._terraform.init(self._folder)
            self._ready = True
        done = self._terraform.run(
            self._folder,
            *arguments,
            AWS_ENDPOINT_URL=self._url,
            AWS_ACCESS_KEY_ID="test",
            AWS_SECRET_ACCESS_KEY="test",
            AWS_EC2_METADATA_DISABLED="true",
        )
        return done.returncode, done.stdout + done.stderr

    def launches(self) -> dict[str, Any]:
        """The newest data of the fleet's launch template."""
        found = self.ec2.describe_launch_template_versions(
            LaunchTemplateName="looked-up-primary-small", Versions=["$Latest"]
        )["LaunchTemplateVersions"]
        data: dict[str, Any] = found[0]["LaunchTemplateData"]
        return data

    def subnets(self) -> set[str]:
        """Subnets that the fleet launches into."""
        fleets = self.ec2.describe_fleets()["Fleets"]
        configs = [config for fleet in fleets for config in fleet["LaunchTemplateConfigs"]]
        assert len(configs) == 2
        return {override["SubnetId"] for config in configs for override in config["Overrides"]}

    def asked(self, *arguments: str) -> dict[str, int]:
        """How often one call of Terraform with an image by alias asks AWS what."""
        before = len(self._calls.calls())
        code, said = self.call("al2023@latest", *arguments)
        assert code == 0, said
        made = Counter(call.action for call in self._calls.calls()[before:])
        return {action: made[action] for action in ASKED}


def test_plan_looks_up_what_aliases_and_tags_mean(server: AwsServer, tmp_path: Path) -> None:
    """A review sees ids; what comes after the next release is a change that is reviewed again."""
    account = Account(server, tmp_path)
    account.prepare()
    assert account.call("al2023@latest", "apply", "-auto-approve")[0] == 0
    newest = account.launches()
    assert newest["SecurityGroupIds"] == [account.ids.security_group_id]
    assert account.subnets() == set(list(account.ids.subnet_ids.values())[:2])
    assert account.asked("plan", "-detailed-exitcode") == ASKED

    code, said = account.call("al2023@v20260110", "plan", "-detailed-exitcode", "-no-color")
    assert code == 2, said
    assert f'"{newest["ImageId"]}" -> "ami-' in said
    assert "must be replaced" not in said


@pytest.mark.nightly
def test_tags_that_match_two_subnets_of_a_zone_stop_the_plan(
    server: AwsServer, tmp_path: Path
) -> None:
    """EC2 refuses such a fleet half-way through the apply, with words about instance pools."""
    account = Account(server, tmp_path)
    account.prepare()
    made = account.ec2.create_subnet(
        VpcId=account.ids.vpc_id,
        CidrBlock="172.31.200.0/24",
        AvailabilityZone=min(account.ids.subnet_ids),
    )["Subnet"]["SubnetId"]
    account.tag([made], tier="nodes")
    code, said = account.call("al2023@latest", "plan", "-no-color")
    assert code == 1
    assert "match several subnets of one zone" in " ".join(said.replace("│", " ").split())
