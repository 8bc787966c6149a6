"""`reconciler import` from files: an older config, fleets, groups, and what is odd."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import run
from reconciler.config.loader import load_config

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
    template = {"LaunchTemplateId": "lt-1", "Version": "$Latest"}
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


def template(name: str = "kfm-small", user_data: str = "") -> Json:
    """The launch template of these fleets."""
    return {
        "LaunchTemplateVersions": [
            {
                "LaunchTemplateId": "lt-1",
                "LaunchTemplateName": name,
                "VersionNumber": 1,
                "DefaultVersion": True,
                "LaunchTemplateData": {
                    "ImageId": "ami-1",
                    "KeyName": "ops",
                    "SecurityGroupIds": ["sg-1"],
                    "IamInstanceProfile": {"Arn": "arn:aws:iam::1:instance-profile/node"},
                    "UserData": base64.b64encode(user_data.encode()).decode(),
                    "BlockDeviceMappings": [
                        {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 80, "VolumeType": "gp2"}}
                    ],
                },
            }
        ]
    }


SUBNETS = {"Subnets": [{"SubnetId": "subnet-a", "AvailabilityZone": "us-west-2a"}]}


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


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    """An empty one."""
    return Desk(tmp_path, capsys)


def test_kluster_fleet_manager_config_is_completed_from_its_fleets(desk: Desk) -> None:
    """Moving over must keep every number that operators tuned and find out the rest."""
    (desk.folder / "config.yaml").write_text(KFM)
    code, answer, err = desk.adopt(
        "--config",
        str(desk.folder / "config.yaml"),
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template(), SUBNETS),
    )
    assert (code, err) == (0, "")
    assert answer["fleets"] == ["primary-small", "primary-large"]
    config = load_config(desk.folder / "out/sectors.yaml")
    assert (config.cluster, config.regions) == ("analytics", ("us-west-2",))
    assert config.sleep_interval_seconds == 30
    assert config.inactive_grace_periods[0].starts.hour == 7
    small, large = config.sectors["primary"].fleets
    assert (small.min_capacity, small.bounce_deployment_pods, small.spot) == (2, True, True)
    assert large.size == "large"
    given = config.terraform.given()
    assert given["ami"] == "ami-1"
    assert given["private_subnet_ids"] == {"us-west-2a": "subnet-a"}
    assert (given["ebs_size"], given["ebs_type"]) == (80, "gp2")
    assert given["spot_allocation_strategy"] == "capacity-optimized"
    assert given["instance_profile_name"] == "node"
    assert any("primary-large: is in the config but not in EC2" in n for n in answer["notes"])


def test_foreign_launch_template_is_not_imported_and_said(desk: Desk) -> None:
    """Importing a template under another name would plan to replace it under running nodes."""
    _, answer, _ = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template("kfm-small"), SUBNETS),
    )
    assert "aws_ec2_fleet.this" in desk.written("terraform/imports.tf")
    assert "aws_launch_template" not in desk.written("terraform/imports.tf")
    assert any(
        "kfm-small" in note and "analytics-primary-small" in note for note in answer["notes"]
    )


def test_group_becomes_a_fleet_of_its_own_size(desk: Desk) -> None:
    """Clusters that come from Cluster Autoscaler have groups with node-template tags."""
    node_template = "k8s.io/cluster-autoscaler/node-template"
    tags = {
        "k8s.io/cluster-autoscaler/enabled": "true",
        "k8s.io/cluster-autoscaler/analytics": "owned",
        f"{node_template}/label/sector": "web",
    }
    group = {
        "AutoScalingGroupName": "web-nodes",
        "DesiredCapacity": 2,
        "MinSize": 1,
        "MaxSize": 9,
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "MixedInstancesPolicy": {
            "LaunchTemplate": {
                "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-9", "Version": "1"},
                "Overrides": [{"InstanceType": "c6i.2xlarge"}, {"InstanceType": "c5.2xlarge"}],
            }
        },
    }
    code, answer, err = desk.adopt(
        "--cluster-name", "analytics", *desk.answers({"AutoScalingGroups": [group]})
    )
    assert (code, err, answer["fleets"]) == (0, "", ["web-c6i-2xlarge"])
    config = load_config(desk.folder / "out/sectors.yaml")
    (entry,) = config.sectors["web"].fleets
    assert (entry.provider, entry.auto_scaling_group) == ("asg", "web-nodes")
    assert (entry.min_capacity, entry.max_capacity, entry.spot) == (1, 9, False)
    assert config.sectors["web"].kind == "cpu"
    assert config.sizes["c6i-2xlarge"].cpu_milli == 8000
    assert not (desk.folder / "out/terraform").exists()


def test_what_cannot_be_carried_over_is_left_out_with_its_reason(desk: Desk) -> None:
    """A fleet that is silently missing from the config would be drained or forgotten."""
    code, answer, _ = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers(
            {
                "Fleets": [
                    fleet("fleet-1", "small"),
                    fleet("fleet-2", "small"),
                    fleet("fleet-3", "medium", tags={"kind": "cpu"}),
                    fleet("fleet-4", "large", tags={"sector": ""}),
                    fleet("fleet-5", "xlarge", FleetState="deleted-running"),
                    fleet("fleet-6", "xlarge", tags={"cluster": "another"}),
                    {"FleetId": "fleet-7", "TargetCapacitySpecification": None},
                ]
            },
            template(),
            SUBNETS,
        ),
    )
    assert (code, answer["fleets"]) == (0, ["primary-small"])
    assert set(answer["left_out"]) == {"fleet-2", "fleet-3", "fleet-4"}
    assert answer["unreadable"] == [{"kind": "Fleet", "name": "fleet-7"}]


def test_second_import_overwrites_nothing(desk: Desk) -> None:
    """Whoever edited the written config must not lose that."""
    arguments = [
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template(), SUBNETS),
    ]
    assert desk.adopt(*arguments)[0] == 0
    (desk.folder / "out/sectors.yaml").write_text("mine")
    code, _, err = desk.adopt(*arguments)
    assert code == 2
    assert "exists already" in err
    assert desk.written("sectors.yaml") == "mine"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "--cluster-name"),
        (["--cluster-name", "other"], 1, "nothing there carries the tags of cluster other"),
        (["--cluster-name", "a", "--config", "nowhere.yaml"], 2, "no such file"),
    ],
)
def test_useless_request_is_one_line(
    desk: Desk, arguments: list[str], code: int, said: str
) -> None:
    """An empty config written for a typo would be taken for the truth."""
    files = desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template(), SUBNETS)
    found, _, err = desk.adopt(*arguments, *files)
    assert (found, err.count("\n")) == (code, 1)
    assert said in err
    assert not (desk.folder / "out").exists()
