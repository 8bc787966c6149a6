"""`reconciler import` from files: an older config, fleets, groups, and what is odd."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import run
from reconciler.config.loader import load_config
from reconciler.config.resolve import resolve_fleets
from reconciler.gitops.root_module import root_module_of

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


EKS_NAME = "eks-batch-20260131120000000000000002-12c7b5f4-1111-2222-3333-444455556666"


@pytest.mark.parametrize(
    ("name", "tags", "expected"),
    [
        (EKS_NAME, {"eks:nodegroup-name": "batch"}, "batch-m5-large"),
        ("my nodes/prod", {}, "my-nodes-prod-m5-large"),
    ],
)
def test_group_whose_name_is_no_label_gets_one_that_is(
    desk: Desk, name: str, tags: Json, expected: str
) -> None:
    """EKS calls the groups of managed node groups by more than 63 characters."""
    code, answer, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"AutoScalingGroups": [group(name, tags=tags), group("other")]}),
    )
    assert (code, err) == (0, "")
    assert answer["fleets"] == sorted([expected, "other-m5-large"])
    config = load_config(desk.folder / "out/sectors.yaml")
    entries = [entry for sector in config.sectors.values() for entry in sector.fleets]
    assert name in [entry.auto_scaling_group for entry in entries]


def test_groups_with_one_long_beginning_keep_names_of_their_own(desk: Desk) -> None:
    """Names that are merely cut would make two groups one."""
    names = [f"{'n' * 80}-{number}" for number in range(3)]
    _, answer, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"AutoScalingGroups": [group(name) for name in names]}),
    )
    assert (len(answer["fleets"]), answer["left_out"], err) == (3, {}, "")


def test_group_without_a_sector_label_is_said_to_need_one(desk: Desk) -> None:
    """Pods that select a label that no node carries would have nodes launched, and never bind."""
    _, answer, _ = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers(
            {"AutoScalingGroups": [group("plain"), group("own", labels={"sector": "web"})]}
        ),
    )
    (plain,) = [note for note in answer["notes"] if note.startswith("plain-m5-large: ")]
    assert "label sector=plain" in plain
    assert not [note for note in answer["notes"] if note.startswith("web-m5-large: ")]
    assert any("default_sector" in note for note in answer["notes"])


def test_one_size_with_other_types_here_and_there_keeps_both(desk: Desk) -> None:
    """A node that is planned for larger than it comes is launched again and again."""
    label = {"size": "wide"}
    groups = [group("a", "m5.large", labels=label), group("b", "r5.2xlarge", labels=label)]
    built_in = group("c", "m5.large", labels={"size": "small", "kind": "memory"})
    desk.adopt(
        "--cluster-name", "analytics", *desk.answers({"AutoScalingGroups": [*groups, built_in]})
    )
    resolved = {
        fleet.sector_name: fleet.instance_types
        for fleet in resolve_fleets(load_config(desk.folder / "out/sectors.yaml"))
    }
    assert resolved == {"a": ("m5.large",), "b": ("r5.2xlarge",), "c": ("m5.large",)}


def test_fleets_of_one_own_size_are_planned_with_their_own_types(desk: Desk) -> None:
    """The first plan would otherwise change the types of a fleet that nobody touched."""
    wide = fleet("fleet-1", "wide", types=["r6i.large"])
    other = fleet("fleet-2", "wide", types=["m6i.large"], tags={"sector": "batch"})
    desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [wide, other]}, template(), SUBNETS),
    )
    root = root_module_of(load_config(desk.folder / "out/sectors.yaml"))
    types = {name: variables["instance_types"] for name, variables in root.fleets.items()}
    assert types == {"primary-wide": ["r6i.large"], "batch-wide": ["m6i.large"]}


def test_kind_that_nobody_states_is_the_sectors(desk: Desk) -> None:
    """A guess from the first instance type must not cost a group its place."""
    label = {"sector": "web"}
    groups = [
        group("a", "c5.large", labels={**label, "size": "one"}),
        group("b", "r5.large", labels={**label, "size": "two", "kind": "memory"}),
    ]
    _, answer, _ = desk.adopt(
        "--cluster-name", "analytics", *desk.answers({"AutoScalingGroups": groups})
    )
    assert (sorted(answer["fleets"]), answer["left_out"]) == (["web-one", "web-two"], {})
    assert load_config(desk.folder / "out/sectors.yaml").sectors["web"].kind == "memory"


def test_spot_group_is_told_by_its_distribution(desk: Desk) -> None:
    """Planned at on-demand prices a spot group would be the last to be asked."""
    spot = {
        "InstancesDistribution": {
            "OnDemandBaseCapacity": 0,
            "OnDemandPercentageAboveBaseCapacity": 0,
        }
    }
    desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"AutoScalingGroups": [group("a", policy=spot), group("b")]}),
    )
    config = load_config(desk.folder / "out/sectors.yaml")
    assert {name: sector.fleets[0].spot for name, sector in config.sectors.items()} == {
        "a": True,
        "b": False,
    }


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (fleet("fleet-2", "small", tags={"sector": "my sector"}), "is no label value"),
        (fleet("fleet-2", "small", tags={"sector": "gpu", "kind": "gpu"}), "built-in size"),
        (fleet("fleet-2", "medium", tags={"sector": "x" * 60}), "at most 63 fit"),
    ],
)
def test_fleet_that_breaks_a_rule_leaves_the_others_alone(
    desk: Desk, odd: Json, reason: str
) -> None:
    """One oddly tagged fleet must not keep a cluster of fifty from being adopted."""
    code, answer, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small"), odd]}, template(), SUBNETS),
    )
    assert (code, err, answer["fleets"]) == (0, "", ["primary-small"])
    assert reason in answer["left_out"]["fleet-2"]


def test_fleet_that_counts_in_weights_is_left_out(desk: Desk) -> None:
    """Its target counts units: taken for nodes it would be several times too large."""
    weighted = fleet("fleet-2", "medium")
    for override in weighted["LaunchTemplateConfigs"][0]["Overrides"]:
        override["WeightedCapacity"] = 4
    _, answer, _ = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small"), weighted]}, template(), SUBNETS),
    )
    assert answer["fleets"] == ["primary-small"]
    assert "weights" in answer["left_out"]["fleet-2"]


def test_fleet_of_several_launch_templates_is_left_out(desk: Desk) -> None:
    """Types of one template launched from the other's image would never boot."""
    mixed = fleet("fleet-2", "medium")
    more = {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-2"}, "Overrides": []}
    mixed["LaunchTemplateConfigs"].append(more)
    _, answer, _ = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small"), mixed]}, template(), SUBNETS),
    )
    assert answer["fleets"] == ["primary-small"]
    assert "several launch templates" in answer["left_out"]["fleet-2"]


def test_image_from_a_parameter_and_groups_of_an_interface_are_understood(desk: Desk) -> None:
    """Launch templates of other modules say both in their own way."""
    odd = template()
    data = odd["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    data |= {
        "ImageId": "resolve:ssm:/aws/service/eks/optimized-ami/1.33/image_id",
        "SecurityGroupIds": [],
        "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-9"]}],
    }
    code, answer, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small")]}, odd, SUBNETS),
    )
    assert (code, err) == (0, "")
    given = load_config(desk.folder / "out/sectors.yaml").terraform.given()
    assert given["security_group_id"] == "sg-9"
    assert "ami" not in given
    assert any("/aws/service/eks/optimized-ami" in note for note in answer["notes"])


def test_fleets_of_another_region_than_the_configs_are_refused(desk: Desk) -> None:
    """Import blocks for fleets that the root module's Region does not have end its first plan."""
    (desk.folder / "config.yaml").write_text(f"regions: [us-east-1, us-west-2]\n{KFM}")
    code, _, err = desk.adopt(
        "--config",
        str(desk.folder / "config.yaml"),
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template(), SUBNETS),
    )
    assert code == 2
    assert "us-west-2" in err
    assert "us-east-1" in err


def test_import_that_cannot_be_written_whole_leaves_nothing(desk: Desk) -> None:
    """A config without its import blocks would make every fleet a second time."""
    (desk.folder / "out").mkdir()
    (desk.folder / "out/terraform").write_text("a file")
    code, _, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template(), SUBNETS),
    )
    assert (code, err.count("\n")) == (1, 1)
    assert not (desk.folder / "out/sectors.yaml").exists()


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
