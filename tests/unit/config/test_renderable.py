"""What a config must state for its fleets to be rendered, and when it must."""

import pytest

from reconciler.config.check import check_reading
from reconciler.config.loader import Purpose, parse_config, read_config
from reconciler.model.errors import ConfigError
from tests.unit.config.documents import config_of, with_fleets

SMALL = with_fleets("{size: small}")
COMPLETE = {
    "ami": "ami-1",
    "security_group_id": "sg-1",
    "private_subnet_ids": "{us-west-2a: subnet-1}",
}


def module(**more: str) -> str:
    """A `terraform` block with what is required and more; an empty text takes a key out."""
    given = {**COMPLETE, **more}
    return "terraform: {" + ", ".join(f"{k}: {v}" for k, v in given.items() if v) + "}\n"


def refused(text: str, purpose: Purpose) -> list[tuple[str, str]]:
    """Code and path of what a command that reads the config for a purpose refuses."""
    try:
        parse_config(text, purpose=purpose)
    except ConfigError as error:
        return [(p.code, p.path) for p in error.problems]
    return []


def validated(text: str) -> list[tuple[str, str, str]]:
    """Code, path and severity of what `validate` tells."""
    return [(p.code, p.path, p.severity) for p in check_reading(read_config(text))]


@pytest.mark.parametrize("key", COMPLETE)
def test_missing_variable_is_refused_before_terraform_meets_it(key: str) -> None:
    """The loop would commit a root that no pipeline can plan."""
    text = module(**{key: ""}) + SMALL
    assert validated(text) == [("terraform/missing", "terraform", "error")]
    assert refused(text, Purpose.RENDER) == [("terraform/missing", "terraform")]
    assert config_of(text).sectors
    assert refused(text, Purpose.RUN) == []


def test_missing_variable_of_one_fleet_is_a_fault_of_that_fleet() -> None:
    """Another sector's image does not help."""
    text = (
        module(ami="")
        + "sectors: {a: {kind: cpu, terraform: {ami: ami-1}, fleets: [{size: small}]},"
        " b: {kind: cpu, fleets: [{size: small}]}}\n"
    )
    assert validated(text) == [("terraform/missing", "sectors.b.fleets[0]", "error")]


@pytest.mark.parametrize(
    "variables",
    ["instance_profile_name: node", "backend: {bucket: states, key: k, region: us-west-2}"],
)
def test_anything_that_only_terraform_uses_asks_for_the_rest(variables: str) -> None:
    """Whoever states an instance profile means to launch nodes with it."""
    text = f"terraform: {{{variables}}}\n" + SMALL
    assert validated(text) == [("terraform/missing", "terraform", "error")] * 3


@pytest.mark.parametrize(
    "text", [SMALL, "terraform: {tags: {a: b}, ebs_size: 60, max_pods: 20}\n" + SMALL]
)
def test_config_that_states_nothing_for_terraform_is_clean_everywhere(text: str) -> None:
    """A config of Kluster Fleet Manager validates, plans and renders unchanged."""
    assert (validated(text), refused(text, Purpose.RENDER)) == ([], [])


def test_group_needs_the_variables_of_a_fleet() -> None:
    """Its launch template is made from them: the pipeline would stop at the plan."""
    text = module(ami="") + with_fleets("{size: small, provider: asg, auto_scaling_group: w}")
    assert refused(text, Purpose.RENDER) == [("terraform/missing", "terraform")]


def test_zone_without_a_subnet_is_refused() -> None:
    """The module would plan no override at all for the fleet."""
    text = module() + with_fleets("{size: small, zone: us-west-2b}")
    path = "sectors.primary.fleets[0].zone"
    assert validated(text) == [("terraform/zone-without-subnet", path, "error")]
    assert refused(text, Purpose.RENDER) == [("terraform/zone-without-subnet", path)]


@pytest.mark.parametrize(
    "fleet",
    [
        "{size: small, regions: [us-west-2, us-east-1]}",
        "{size: small, regions: [us-east-1]}",
        "{size: small, zone: us-east-1a}",
    ],
)
def test_further_region_needs_its_own_image_and_subnets(fleet: str) -> None:
    """Those of the home region do not exist there; planning over the regions goes on to work."""
    text = "regions: [us-west-2, us-east-1]\n" + module() + with_fleets(fleet + ", {size: large}")
    assert refused(text, Purpose.RENDER)[:3] == [("terraform/missing", "terraform")] * 3
    assert {severity for _, _, severity in validated(text)} == {"error"}
    assert (refused(text, Purpose.PLAN), refused(text, Purpose.RUN)) == ([], [])
    there = "{ami: ami-2, security_group_id: sg-2, private_subnet_ids: {us-east-1a: subnet-2}}"
    text = text.replace("ami-1", f"ami-1, by_region: {{us-east-1: {there}}}")
    assert (validated(text), refused(text, Purpose.RENDER)) == ([], [])


def test_message_names_the_key_of_the_region() -> None:
    """A refusal without a way out leaves people where they were."""
    text = "regions: [us-west-2]\n" + module() + with_fleets("{size: small, regions: [us-east-1]}")
    with pytest.raises(ConfigError) as caught:
        parse_config(text, purpose=Purpose.RENDER)
    assert "terraform.by_region.us-east-1.ami is missing" in caught.value.what


@pytest.mark.parametrize("regions", ["[us-west-2, us-east-1]", "[us-west-2]"])
def test_inherited_regions_are_an_order_of_preference(regions: str) -> None:
    """The example of the documentation lists two, with subnets of the first alone."""
    text = f"regions: {regions}\n" + module() + SMALL
    assert (validated(text), refused(text, Purpose.RENDER)) == ([], [])


def test_group_that_others_made_needs_no_variables() -> None:
    """Terraform does not make it here."""
    text = module() + with_fleets(
        "{size: small, provider: asg, auto_scaling_group: w, managed: false,"
        " regions: [us-east-1], zone: x}"
    )
    assert refused(text, Purpose.RENDER) == []
