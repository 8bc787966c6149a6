"""A folder to import into, and what EC2 and Auto Scaling say of the capacity there is."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import run

Json = dict[str, Any]

KFM = """\
sleep_interval: 30
reserved_cpus: 1.0
inactive_grace_periods:
- {starts: 7:00, ends: 19:00, value: 900}
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small, capacity_min: 2, bounce_deployment_pods: true}
    - {size: large}
"""


def fleet(fleet_id: str, size: str, **changes: Any) -> Json:
    """A fleet as describe-fleets lists it, tagged by whoever made it."""
    tags = {"cluster": "analytics", "sector": "primary", "size": size, **changes.pop("tags", {})}
    overrides = [
        {"InstanceType": name, "SubnetId": subnet}
        for name in changes.pop("types", ["r5.xlarge", "r4.xlarge", "m5.2xlarge", "m4.2xlarge"])
        for subnet in changes.pop("subnets", ["subnet-a"])
    ]
    template = {"LaunchTemplateId": changes.pop("template", "lt-1"), "Version": "$Latest"}
    made = {
        "FleetId": fleet_id,
        "FleetState": "active",
        "Type": "maintain",
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": 3,
            "DefaultTargetCapacityType": "spot",
        },
        "LaunchTemplateConfigs": [
            {"LaunchTemplateSpecification": template, "Overrides": overrides}
        ],
        "SpotOptions": {"AllocationStrategy": "capacity-optimized"},
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }
    return made | changes


def template(name: str = "kfm-small", user_data: str = "", template_id: str = "lt-1") -> Json:
    """The launch template of these fleets, or another one."""
    return {
        "LaunchTemplateVersions": [
            {
                "LaunchTemplateId": template_id,
                "LaunchTemplateName": name,
                "VersionNumber": 1,
                "DefaultVersion": True,
                "LaunchTemplateData": {
                    "ImageId": "ami-1",
                    "KeyName": "ops",
                    "SecurityGroupIds": ["sg-1"],
                    "IamInstanceProfile": {
                        "Arn": "arn:aws:iam::123456789012:instance-profile/node"
                    },
                    "UserData": base64.b64encode(user_data.encode()).decode(),
                    "BlockDeviceMappings": [
                        {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 80, "VolumeType": "gp2"}}
                    ],
                },
            }
        ]
    }


SUBNETS = {"Subnets": [{"SubnetId": "subnet-a", "AvailabilityZone": "us-west-2a"}]}


def group(name: str, *types: str, labels: Json | None = None, **changes: Any) -> Json:
    """An Auto Scaling group as describe-auto-scaling-groups lists it."""
    autoscaler = "k8s.io/cluster-autoscaler"
    tags = {
        f"{autoscaler}/enabled": "true",
        f"{autoscaler}/analytics": "owned",
        **{f"{autoscaler}/node-template/label/{k}": v for k, v in (labels or {}).items()},
        **changes.pop("tags", {}),
    }
    template = {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-9", "Version": "1"}}
    overrides = [{"InstanceType": each} for each in types or ("m5.large",)]
    policy = {"LaunchTemplate": {**template, "Overrides": overrides}}
    made = {
        "AutoScalingGroupName": name,
        "DesiredCapacity": 1,
        "MinSize": 0,
        "MaxSize": 3,
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "MixedInstancesPolicy": policy | changes.pop("policy", {}),
    }
    return made | changes


class Desk:
    """A folder to import into."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def answers(self, *answers: Json) -> list[str]:
        """Arguments that name these answers as files."""
        names = []
        for number, answer in enumerate(answers):
            file = self.folder / f"aws-{number}.json"
            file.write_text(json.dumps({"Region": "us-west-2", **answer}))
            names.append(str(file))
        return ["--aws", *names]

    def adopt(self, *arguments: str) -> tuple[int, Json, str]:
        """Exit code, answer and standard error."""
        code = run(["import", "--out", str(self.folder / "out"), "--output", "json", *arguments])
        printed = self._capsys.readouterr()
        return code, json.loads(printed.out or "{}"), printed.err

    def written(self, name: str) -> str:
        """A file that was written."""
        return (self.folder / "out" / name).read_text()


def adopted(desk: Desk, *groups: Json, user_data: str = "") -> tuple[Json, str]:
    """The import of groups that launch from the template lt-1, and the blocks that it wrote."""
    code, answer, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"AutoScalingGroups": list(groups)}, template("nodes", user_data), SUBNETS),
    )
    assert (code, err) == (0, "")
    imports = desk.folder / "out/terraform/imports.tf"
    return answer, imports.read_text() if imports.exists() else ""


def templated(name: str, version: str = "$Latest", **changes: Any) -> Json:
    """A group that launches two instance types from the template lt-1."""
    specification = {"LaunchTemplateId": "lt-1", "Version": version}
    overrides = changes.pop(
        "overrides", [{"InstanceType": "m5.large"}, {"InstanceType": "m5a.large"}]
    )
    policy: Json = {
        "LaunchTemplate": {"LaunchTemplateSpecification": specification, "Overrides": overrides}
    }
    distribution = changes.pop("distribution", {"OnDemandPercentageAboveBaseCapacity": 25})
    policy["InstancesDistribution"] = {"SpotAllocationStrategy": "lowest-price", **distribution}
    places: Json = {"VPCZoneIdentifier": "subnet-a"}
    tags = changes.pop("tags", {})
    return group(name, policy=policy, tags=tags) | places | changes
