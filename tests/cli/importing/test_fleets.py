"""`reconciler import` of EC2 Fleets: an older config is completed, nothing is replaced."""

from reconciler.config.loader import load_config
from reconciler.gitops.root_module import root_module_of
from tests.cli.importing.desk import KFM, SUBNETS, Desk, fleet, template


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
