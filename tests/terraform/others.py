"""Fleets as others make them: by Terraform modules of other projects, and by calls of the API."""

import base64
from pathlib import Path
from typing import Any

from reconciler.sandbox.aws.bootstrap import AccountIds

CLUSTER = "analytics"

OTHER_TERRAFORM = (Path(__file__).parent / "others.tf").read_text("utf-8")


def make_by_hand(ec2: Any, ids: AccountIds) -> dict[str, str]:
    """Fleets made by calls of the API, each odd in its own way; their ids by size."""
    plain = {"ImageId": ids.ami, "SecurityGroupIds": [ids.security_group_id]}
    rich = {
        **plain,
        "InstanceType": "m5.large",
        "KeyName": "ops",
        "EbsOptimized": False,
        "IamInstanceProfile": {"Arn": "arn:aws:iam::123456789012:instance-profile/hand"},
        "Monitoring": {"Enabled": False},
        "CreditSpecification": {"CpuCredits": "standard"},
        "MetadataOptions": {"HttpTokens": "optional", "HttpPutResponseHopLimit": 3},
        "UserData": _encoded("#!/bin/sh\n/etc/eks/bootstrap.sh analytics\n"),
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 30, "VolumeType": "gp3"}},
            {
                "DeviceName": "/dev/xvdb",
                "Ebs": {"VolumeSize": 100, "VolumeType": "io1", "Iops": 500, "Encrypted": True},
            },
        ],
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": "cluster", "Value": CLUSTER}]}
        ],
    }
    subnets = list(ids.subnet_ids.values())
    mixed = {"OnDemandTargetCapacity": 1, "DefaultTargetCapacityType": "spot"}
    return {
        "mixed": _fleet(
            ec2,
            "mixed",
            rich,
            [
                {"InstanceType": "m5.large", "SubnetId": subnets[1], "Priority": 2.0},
                {"InstanceType": "m5.xlarge", "SubnetId": subnets[0], "Priority": 1.0},
            ],
            specification={"LaunchTemplateName": "hand-mixed", "Version": "1"},
            target={"TotalTargetCapacity": 3, **mixed},
        ),
        "bare": _fleet(
            ec2,
            "bare",
            {
                **plain,
                "InstanceType": "t3.large",
                "CreditSpecification": {"CpuCredits": "unlimited"},
            },
            [{"SubnetId": subnets[0]}],
            target={"TotalTargetCapacity": 2, "DefaultTargetCapacityType": "on-demand"},
        ),
        "weighted": _fleet(
            ec2,
            "weighted",
            plain,
            [{"InstanceType": "m5.large", "SubnetId": subnets[0], "WeightedCapacity": 2}],
        ),
        "cores": _fleet(
            ec2,
            "cores",
            {**plain, "CpuOptions": {"CoreCount": 1, "ThreadsPerCore": 1}},
            [{"InstanceType": "m5.large", "SubnetId": subnets[0]}],
        ),
        "secret": _fleet(
            ec2,
            "secret",
            {
                **plain,
                "UserData": base64.b64encode(
                    b"#!/bin/sh\nexport API_TOKEN=hunter2hunter2\n"
                ).decode(),
            },
            [{"InstanceType": "m5.large", "SubnetId": subnets[0]}],
        ),
        "older": _fleet(
            ec2,
            "older",
            plain,
            [{"InstanceType": "m5.large", "SubnetId": subnets[0]}],
            specification={"LaunchTemplateName": "hand-older", "Version": "1"},
            second_version={**plain, "KeyName": "newer"},
        ),
    }


def _encoded(user_data: str) -> str:
    return base64.b64encode(user_data.encode()).decode()


def _fleet(
    ec2: Any,
    size: str,
    data: dict[str, Any],
    overrides: list[dict[str, Any]],
    *,
    specification: dict[str, str] | None = None,
    target: dict[str, Any] | None = None,
    second_version: dict[str, Any] | None = None,
) -> str:
    name = f"hand-{size}"
    made = ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    template_id = made["LaunchTemplate"]["LaunchTemplateId"]
    if second_version is not None:
        ec2.create_launch_template_version(
            LaunchTemplateId=template_id, LaunchTemplateData=second_version
        )
    tags = {"cluster": CLUSTER, "sector": "hand", "size": size, "kind": "memory"}
    answer = ec2.create_fleet(
        Type="maintain",
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": specification
                or {"LaunchTemplateId": template_id, "Version": "$Latest"},
                "Overrides": overrides,
            }
        ],
        TargetCapacitySpecification=target
        or {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "spot"},
        TagSpecifications=[
            {
                "ResourceType": "fleet",
                "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
            }
        ],
    )
    return str(answer["FleetId"])
