"""Images by alias, and subnets and security groups by tags, in a sector config."""

import pytest

from reconciler.config.check import check_reading
from reconciler.config.loader import parse_config, read_config
from reconciler.config.resolve import resolve_fleets

CONFIG = """
cluster: c
regions: [us-west-2]
terraform: {TERRAFORM}
sectors: {s: {kind: memory, fleets: [{size: small TYPES}]}}
"""
TAGS = "subnet_tags: {tier: nodes}, security_group_tags: {tier: nodes}"


def config(terraform: str, types: str = "") -> str:
    """A config with these module variables."""
    stated = f", instance_types: [{types}]" if types else ""
    return CONFIG.replace("TERRAFORM", terraform).replace(" TYPES", stated)


def told(text: str, severity: str = "error") -> list[tuple[str, str]]:
    """Code and path of what `validate` says of this severity."""
    found = check_reading(read_config(text))
    return [(p.code, p.path) for p in found if p.severity == severity]


@pytest.mark.parametrize("ami", ["al2023@latest", "al2023-neuron@v20260110", "al2023-nvidia@v1"])
def test_aliases_and_tags_stand_in_for_ids(ami: str) -> None:
    """Whoever has them needs no id in git."""
    assert told(config(f"ami: {ami}, {TAGS}")) == []


@pytest.mark.parametrize("ami", ["al2023", "al2023@", "al2023@newest", "ubuntu@latest", "@latest"])
def test_unknown_alias_is_refused(ami: str) -> None:
    """Terraform would ask for a parameter that is not there."""
    assert told(config(f"ami: '{ami}', {TAGS}")) == [("config/type", "terraform.ami")]


def test_alias_and_the_way_its_image_boots_agree() -> None:
    """A node that is told its cluster in another image's way never joins."""
    facts = "cluster_endpoint: https://a.example, cluster_ca: YQ=="
    bottlerocket = f"ami: bottlerocket@latest, {TAGS}, {facts}"
    assert told(config(f"{bottlerocket}, ami_type: BOTTLEROCKET")) == []
    assert told(config(f"{bottlerocket}, service_cidr: 10.0.0.0/16")) == [
        ("terraform/value", "terraform.ami")
    ]
    assert told(config(f"ami: al2023@latest, {TAGS}, {facts}, ami_type: BOTTLEROCKET")) == [
        ("terraform/value", "terraform.ami")
    ]


def test_image_that_a_parameter_names_is_for_groups_only() -> None:
    """EC2 resolves no parameter for a fleet of type maintain: it would never launch a node."""
    text = config(f"ami: 'resolve:ssm:/a/b', {TAGS}")
    assert told(text) == [("terraform/value", "terraform.ami")]
    group = "{size: small, provider: asg, auto_scaling_group: w}"
    assert told(text.replace("{size: small}", group)) == []


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("private_subnet_ids: {us-west-2a: subnet-1}", "subnet_tags"),
        ("security_group_id: sg-1", "security_group_tags"),
        ("security_group_ids: [sg-1]", "security_group_tags"),
        ("network_interfaces: [{device_index: 0}]", "security_group_tags"),
    ],
)
def test_tags_and_ids_exclude_each_other(more: str, key: str) -> None:
    """Which of them holds could only be guessed."""
    found = told(config(f"ami: al2023@latest, {TAGS}, {more}"))
    assert ("terraform/value", f"terraform.{key}") in found


def test_image_of_another_architecture_than_the_types_is_warned_of() -> None:
    """Its instances would never boot."""
    arm = config(f"ami: al2023@latest, {TAGS}", types="m7g.2xlarge")
    assert told(arm, "warning") == [("instance/architecture", "sectors.s.fleets[0]")]
    right = config(f"ami: al2023@latest, architecture: arm64, {TAGS}", types="m7g.2xlarge")
    assert told(right, "warning") == []


def test_aliases_and_tags_hold_in_every_region() -> None:
    """An id is of one region; an alias is not, and neither are tags."""
    text = config(f"ami: al2023@latest, {TAGS}").replace("[us-west-2]", "[us-west-2, us-east-1]")
    (fleet,) = resolve_fleets(parse_config(text))
    there = fleet.in_region("us-east-1").terraform
    assert there["ami"] == "al2023@latest"
    assert there["subnet_tags"] == {"tier": "nodes"}
