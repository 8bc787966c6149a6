"""Fleets written almost without `ignore_changes`: every field must be answered as EC2 does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from reconciler.adapters.terraform.mirror import VARIABLE
from reconciler.sandbox.aws.bootstrap import bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays
from tests.terraform.program import TerraformProgram, find_terraform, mirror_directory

pytestmark = [pytest.mark.terraform, pytest.mark.sandbox]

_ROOT = """
terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
  backend "s3" {
    bucket         = "state"
    key            = "root.tfstate"
    region         = "us-west-2"
    use_lockfile   = true
    use_path_style = true

    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
    skip_s3_checksum            = true
  }
}

provider "aws" {
  region                      = "us-west-2"
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
}

resource "aws_launch_template" "bare" {
  name          = "bare"
  image_id      = "AMI"
  instance_type = "m5.large"
  tags          = { team = "data" }
}

resource "aws_ec2_fleet" "bare" {
  launch_template_config {
    launch_template_specification {
      launch_template_id = aws_launch_template.bare.id
      version            = aws_launch_template.bare.latest_version
    }
  }
  target_capacity_specification {
    default_target_capacity_type = "spot"
    total_target_capacity        = 1
  }
}

resource "aws_ec2_fleet" "mixed" {
  excess_capacity_termination_policy = "no-termination"
  launch_template_config {
    launch_template_specification {
      launch_template_id = aws_launch_template.bare.id
      version            = "$Latest"
    }
    override {
      instance_type     = "r5.xlarge"
      subnet_id         = "SUBNET"
      weighted_capacity = 2
      max_price         = "0.5"
    }
    override {
      instance_type     = "c5.4xlarge"
      availability_zone = "us-west-2b"
      priority          = 1
    }
  }
  on_demand_options {
    allocation_strategy = "prioritized"
  }
  spot_options {
    allocation_strategy            = "diversified"
    instance_interruption_behavior = "terminate"
    instance_pools_to_use_count    = 1
  }
  target_capacity_specification {
    default_target_capacity_type = "spot"
    on_demand_target_capacity    = 1
    spot_target_capacity         = 3
    total_target_capacity        = 4
  }
  tags = { cluster = "analytics" }

  lifecycle {
    ignore_changes = [spot_options[0].instance_pools_to_use_count]
  }
}
"""


class Root:
    """The root in a folder, called against the emulated AWS."""

    def __init__(self, terraform: TerraformProgram, folder: Path, url: str) -> None:
        self._terraform = terraform
        self._folder = folder
        self._url = url

    def call(self, *arguments: str) -> tuple[int, str]:
        """Exit code and all that was printed."""
        done = self._terraform.run(
            self._folder,
            *arguments,
            AWS_ENDPOINT_URL=self._url,
            AWS_ACCESS_KEY_ID="test",
            AWS_SECRET_ACCESS_KEY="test",
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def aws() -> Iterator[AwsServer]:
    """The emulated AWS, quick."""
    with AwsServer(delays=Delays(launch_seconds=0.1, modify_seconds=0.1)) as server:
        yield server


@pytest.fixture
def s3(aws: AwsServer) -> Iterator[Any]:
    """S3, with the bucket for Terraform's state."""
    client = boto3.Session("test", "test", region_name="us-west-2").client(
        "s3", endpoint_url=aws.url
    )
    client.create_bucket(
        Bucket="state", CreateBucketConfiguration={"LocationConstraint": "us-west-2"}
    )
    yield client
    client.close()


def test_plan_after_apply_is_empty_and_the_state_is_locked(
    aws: AwsServer, s3: Any, tmp_path: Path
) -> None:
    """A field that EC2 fills in and we do not makes Terraform replace fleets that run nodes."""
    terraform = find_terraform()
    mirror = mirror_directory()
    if mirror is None:
        pytest.skip(f"no folder with the AWS provider was found ({VARIABLE} names one)")
    ids = bootstrap_account(aws.url)
    root = _ROOT.replace("AMI", ids.ami).replace("SUBNET", ids.subnet_ids["us-west-2a"])
    (tmp_path / "main.tf").write_text(root)
    bare = Root(terraform, tmp_path, aws.url)
    for arguments in (
        ("init", f"-plugin-dir={mirror}"),
        ("apply", "-auto-approve"),
        ("plan", "-detailed-exitcode"),
    ):
        code, printed = bare.call(*arguments)
        assert code == 0, printed
    s3.put_object(Bucket="state", Key="root.tfstate.tflock", Body=b'{"ID": "somebody"}')
    code, printed = bare.call("plan")
    assert code == 1
    assert "Error acquiring the state lock" in printed
