"""`reconciler import` of fleets whose limits a config states: those hold, not EC2's target."""

from reconciler.config.loader import load_config
from tests.cli.importing.desk import SUBNETS, Desk, fleet, template

BASE = """\
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small, capacity_min: 1, max_capacity: 4}
    - {size: large}
"""


def test_limits_of_the_given_config_hold(desk: Desk) -> None:
    """A target of the moment must not raise a minimum that an operator chose."""
    (desk.folder / "config.yaml").write_text(BASE)
    fleets = [fleet("fleet-1", "small"), fleet("fleet-2", "medium"), fleet("fleet-3", "large")]
    for each in fleets[1:]:
        each["LaunchTemplateConfigs"][0]["Overrides"] = [
            {"InstanceType": "m5.24xlarge", "SubnetId": "subnet-a"}
        ]
    _, answer, err = desk.adopt(
        *("--config", str(desk.folder / "config.yaml"), "--cluster-name", "analytics"),
        *desk.answers({"Fleets": fleets}, template(), SUBNETS),
    )
    assert err == ""
    entries = load_config(desk.folder / "out/sectors.yaml").sectors["primary"].fleets
    limits = {entry.size: (entry.min_capacity, entry.max_capacity) for entry in entries}
    assert limits == {"small": (1, 4), "large": (3, None), "medium": (3, None)}
    said = [note.partition(":")[0] for note in answer["notes"] if "number of nodes" in note]
    assert said == ["primary-large"] * 2 + ["primary-medium"] * 2


def test_limits_that_the_given_config_leaves_open_are_those_of_the_tags(desk: Desk) -> None:
    """Kluster Fleet Manager's configs have no maximum: purchases would have no limit."""
    (desk.folder / "config.yaml").write_text(BASE)
    tags = {"capacity_min": "2", "max_capacity": "9"}
    fleets = [fleet("fleet-1", "small", tags=tags), fleet("fleet-3", "large", tags=tags)]
    fleets[1]["LaunchTemplateConfigs"][0]["Overrides"] = [
        {"InstanceType": "m5.24xlarge", "SubnetId": "subnet-a"}
    ]
    _, answer, err = desk.adopt(
        *("--config", str(desk.folder / "config.yaml"), "--cluster-name", "analytics"),
        *desk.answers({"Fleets": fleets}, template(), SUBNETS),
    )
    assert err == ""
    entries = load_config(desk.folder / "out/sectors.yaml").sectors["primary"].fleets
    limits = {entry.size: (entry.min_capacity, entry.max_capacity) for entry in entries}
    assert limits == {"small": (1, 4), "large": (2, 9)}
    assert not [note for note in answer["notes"] if "number of nodes" in note]


def test_keys_without_a_value_leave_what_is_found(desk: Desk) -> None:
    """They had hidden the limits in tags, the image and the Region: the config had none of them."""
    nothing = """\
regions: ~
terraform: {ami: null, tags: {note: "~"}}
sectors:
  primary:
    kind: memory
    terraform:
    fleets:
    - {size: small, zone: ~, capacity_min: ~, max_capacity: null, terraform: ~}
"""
    (desk.folder / "config.yaml").write_text(nothing)
    tags = {"capacity_min": "2", "max_capacity": "9"}
    code, answer, err = desk.adopt(
        *("--config", str(desk.folder / "config.yaml"), "--cluster-name", "analytics"),
        *desk.answers({"Fleets": [fleet("fleet-1", "small", tags=tags)]}, template(), SUBNETS),
    )
    assert (code, err) == (0, "")
    config = load_config(desk.folder / "out/sectors.yaml")
    (entry,) = config.sectors["primary"].fleets
    assert (entry.min_capacity, entry.max_capacity) == (2, 9)
    assert config.regions == ("us-west-2",)
    assert config.terraform.given()["ami"] == "ami-1"
    assert config.terraform.given()["tags"] == {"note": "~"}
    assert not [note for note in answer["notes"] if "number of nodes" in note]
