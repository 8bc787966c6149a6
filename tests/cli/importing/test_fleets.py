"""`reconciler import` of EC2 Fleets: an older config is completed, nothing is replaced."""

from typing import Any

import pytest

from reconciler.cli.main import run
from reconciler.config.loader import load_config
from reconciler.gitops.drift.live import fleet_tags
from reconciler.gitops.rendering.root_module import root_module_of
from tests.cli.importing.desk import KFM, SUBNETS, Desk, fleet, template

SECOND_TEMPLATE = template("kfm-other", template_id="lt-2")


def test_kluster_fleet_manager_config_is_completed_from_its_fleets(desk: Desk) -> None:
    """Moving over must keep every number that operators tuned and find out the rest."""
    (desk.folder / "config.yaml").write_text(KFM)
    code, answer, err = desk.adopt(
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
    assert given["spot_allocation_strategy"] == "capacity-optimized"
    assert given["instance_profile_arn"].endswith("/node")
    (volume,) = given["volumes"]
    assert (volume.size, volume.type, volume.encrypted) == (80, "gp2", None)
    assert small.terraform is not None
    assert small.terraform.launch_template_name == "kfm-small"
    assert large.terraform is None
    assert any("primary-large: is in the config but not in EC2" in n for n in answer["notes"])


@pytest.mark.parametrize("told", [True, False])
def test_spot_options_that_no_variable_has_are_reported(desk: Desk, told: bool) -> None:
    """A fleet that Terraform made in its place would behave differently, without a word."""
    rebalance = {"CapacityRebalance": {"ReplacementStrategy": "launch-before-terminate"}}
    options = {"InstanceInterruptionBehavior": "stop", "MaintenanceStrategies": rebalance}
    made = fleet("fleet-1", "small", SpotOptions=options if told else {})
    answers = desk.answers({"Fleets": [made]}, template(), SUBNETS)
    _, answer, _ = desk.adopt("--cluster-name", "analytics", *answers)
    notes = " ".join(answer["notes"])
    for said in ("(capacity rebalancing)", "interrupted spot instances stop"):
        assert (said in notes) == told


@pytest.mark.parametrize("managed", [True, False])
@pytest.mark.parametrize("strategy", ["launch", "launch-before-terminate"])
def test_what_ec2_does_by_itself_is_reported_every_fleet(
    desk: Desk, managed: bool, strategy: str
) -> None:
    """The capacity loop meets it whoever made the fleet: nodes come, and go without a drain."""
    made = fleet(
        "fleet-1",
        "small",
        ReplaceUnhealthyInstances=True,
        SpotOptions={
            "InstanceInterruptionBehavior": "hibernate",
            "MaintenanceStrategies": {"CapacityRebalance": {"ReplacementStrategy": strategy}},
        },
    )
    made_of = template()
    if not managed:
        made_of["LaunchTemplateVersions"][0]["LaunchTemplateData"]["ImageId"] = "resolve:ssm:/a"
    answers = desk.answers({"Fleets": [made]}, made_of, SUBNETS)
    _, answer, _ = desk.adopt("--cluster-name", "analytics", *answers)
    notes = " ".join(answer["notes"])
    assert ("stays out of Terraform" in notes) != managed
    for said in (
        "(capacity rebalancing): plans wait for the new one",
        "interrupted spot instances hibernate",
        "replaces its unhealthy instances by itself",
    ):
        assert said in notes
    ended = "ends the old one by itself some time later" in notes
    assert ended == (strategy == "launch-before-terminate")
    assert ("a new fleet would not have it" in notes) == managed


def test_launch_template_of_another_name_keeps_it(desk: Desk) -> None:
    """A template that is made anew, or renamed, would change what running fleets launch from."""
    _, answer, _ = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template("kfm-small"), SUBNETS),
    )
    assert answer["fleets"] == ["primary-small"]
    assert 'aws_launch_template.this\n  id = "lt-1"' in desk.written("terraform/imports.tf")
    (root,) = root_module_of(load_config(desk.folder / "out/sectors.yaml")).fleets.values()
    assert (root["launch_template_name"], root["launch_template_description"]) == ("kfm-small", "")
    volume = {"device_name": "/dev/xvda", "size": 80, "type": "gp2"}
    assert root["volumes"] == [volume]
    assert root["metadata_options"] == {}


def test_fleets_of_one_own_size_are_planned_with_their_own_types(desk: Desk) -> None:
    """The first plan would otherwise change the types of a fleet that nobody touched."""
    wide = fleet("fleet-1", "wide", types=["r6i.large"])
    tags = {"sector": "batch"}
    other = fleet("fleet-2", "wide", types=["m6i.large"], tags=tags, template="lt-2")
    desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [wide, other]}, template(), SECOND_TEMPLATE, SUBNETS),
    )
    root = root_module_of(load_config(desk.folder / "out/sectors.yaml"))
    types = {name: variables["instance_types"] for name, variables in root.fleets.items()}
    assert types == {"primary-wide": ["r6i.large"], "batch-wide": ["m6i.large"]}


def test_lifecycle_in_the_name_of_a_fleet_is_kept(desk: Desk) -> None:
    """Spot and on-demand nodes of one size would be one fleet, and the other would be destroyed."""
    capacity = {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"}
    spot = fleet("fleet-1", "small", tags={"fleet": "primary-small"})
    steady = fleet(
        "fleet-2",
        "small",
        tags={"fleet": "primary-small-on-demand"},
        template="lt-2",
        TargetCapacitySpecification=capacity,
    )
    code, _, error = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [spot, steady]}, template(), SECOND_TEMPLATE, SUBNETS),
    )
    assert (code, error) == (0, "")
    root = root_module_of(load_config(desk.folder / "out/sectors.yaml"))
    assert {name: variables["spot"] for name, variables in root.fleets.items()} == {
        "primary-small": True,
        "primary-small-on-demand": False,
    }


def test_fleet_whose_image_a_parameter_names_stays_out_of_terraform(desk: Desk) -> None:
    """EC2 launches no node of it, and the module refuses such an image."""
    odd = template()
    odd["LaunchTemplateVersions"][0]["LaunchTemplateData"]["ImageId"] = "resolve:ssm:/golden"
    code, answer, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small")]}, odd, SUBNETS),
    )
    assert (code, err) == (0, "")
    assert not root_module_of(load_config(desk.folder / "out/sectors.yaml")).fleets
    assert any("resolve:ssm:/golden" in note for note in answer["notes"])


def test_launch_template_with_another_clusters_tag_stays_out_of_terraform(desk: Desk) -> None:
    """`cluster` is a common key for tags: the pipeline would refuse the import that was written."""
    listed = {
        "LaunchTemplates": [
            {"LaunchTemplateId": "lt-1", "Tags": [{"Key": "cluster", "Value": "prod"}]}
        ]
    }
    code, answer, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template(), listed, SUBNETS),
    )
    assert (code, err) == (0, "")
    assert not root_module_of(load_config(desk.folder / "out/sectors.yaml")).fleets
    assert any("its launch template has the tag cluster=prod" in note for note in answer["notes"])


def test_groups_of_an_interface_are_understood(desk: Desk) -> None:
    """Launch templates of other modules name them there."""
    odd = template()
    data = odd["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    data |= {
        "SecurityGroupIds": [],
        "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-9"]}],
    }
    code, _, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small")]}, odd, SUBNETS),
    )
    assert (code, err) == (0, "")
    (root,) = root_module_of(load_config(desk.folder / "out/sectors.yaml")).fleets.values()
    assert root["network_interfaces"] == [{"device_index": 0, "security_groups": ["sg-9"]}]
    assert "security_group_id" not in root


def test_number_of_fleets_is_said_in_words(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """`1 fleets` is read by everyone who imports their first one."""
    files = desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template(), SUBNETS)
    out = desk.folder / "out"
    assert (
        run(["import", "--cluster-name", "analytics", "--out", str(out), "-o", "table", *files])
        == 0
    )
    assert capsys.readouterr().out.startswith(f"{out / 'sectors.yaml'}: 1 fleet\n")


def test_config_without_a_default_sector_is_said_to_leave_pods_alone(desk: Desk) -> None:
    """Whoever takes over a cluster whose pods name no sector must learn it before they wait."""
    answers = desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template(), SUBNETS)
    _, answer, _ = desk.adopt("--cluster-name", "analytics", *answers)
    (note,) = (note for note in answer["notes"] if "default_sector" in note)
    assert note == "pods that name no sector are left alone: state default_sector"


@pytest.mark.parametrize("kind", ["instance", "volume"])
def test_template_that_names_another_cluster_leaves_its_fleet_out_of_terraform(
    desk: Desk, kind: str
) -> None:
    """No config may state such tags, but the capacity loop sizes the fleet all the same."""
    described = template()
    data = described["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    tags = [{"Key": "cluster", "Value": "other"}]
    data["TagSpecifications"] = [{"ResourceType": kind, "Tags": tags}]
    answers = desk.answers({"Fleets": [fleet("fleet-1", "small")]}, described, SUBNETS)
    code, answer, _ = desk.adopt("--cluster-name", "analytics", *answers)
    assert (code, answer.get("left_out")) == (0, {})
    (entry,) = load_config(desk.folder / "out/sectors.yaml").sectors["primary"].fleets
    assert not entry.managed
    assert "cluster=other" in " ".join(answer["notes"])


@pytest.mark.parametrize("tags", [{}, {"fleet": "other"}], ids=["none", "another"])
def test_fleet_without_its_tag_fleet_is_reported_with_the_command_that_sets_it(
    desk: Desk, tags: dict[str, str]
) -> None:
    """The capacity loop never saw it, its pods stayed pending, and no note said a word."""
    made = fleet("fleet-1", "small", tags=tags)
    answers = desk.answers({"Fleets": [made]}, template(), SUBNETS)
    code, answer, err = desk.adopt("--cluster-name", "analytics", *answers)
    assert (code, err) == (0, "")
    command = "aws ec2 create-tags --resources fleet-1 --tags Key=fleet,Value=primary-small"
    assert any(command in note for note in answer["notes"])
    assert any("then state them in its fleet_tags, too" in note for note in answer["notes"])
    config = load_config(desk.folder / "out/sectors.yaml")
    variables = root_module_of(config).fleets["primary-small"]
    there = {tag["Key"]: tag["Value"] for tag in made["Tags"]}
    assert fleet_tags("analytics", "primary-small", variables) == there, (
        "the first plan changes none"
    )


def test_fleet_with_its_four_tags_needs_no_command(desk: Desk) -> None:
    """A note without need hides the others."""
    made = fleet("fleet-1", "small", tags={"fleet": "primary-small"})
    answers = desk.answers({"Fleets": [made]}, template(), SUBNETS)
    _, answer, _ = desk.adopt("--cluster-name", "analytics", *answers)
    assert not any("create-tags" in note for note in answer["notes"])


@pytest.mark.parametrize("odd", [7, [1.5]])
def test_odd_tag_specifications_of_a_launch_template_are_passed_over(desk: Desk, odd: Any) -> None:
    """They ended the import with `AttributeError … run again with -vvv`."""
    launched = template()
    data = launched["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    data["TagSpecifications"] = odd
    answers = desk.answers({"Fleets": [fleet("fleet-1", "small")]}, launched, SUBNETS)
    _, _, err = desk.adopt("--cluster-name", "analytics", *answers)
    assert "for a traceback" not in err
