"""Module variables of overrides, tags and launch templates that do not go together."""

import pytest

from tests.unit.config.documents import found

_ARN = "'arn:aws:iam::123456789012:instance-profile/node'"


@pytest.mark.parametrize(
    ("variables", "key", "code"),
    [
        ("overrides: [{instance_type: c5.large}]", "overrides", "terraform/value"),
        ("overrides: []", "overrides", "terraform/value"),
        ("fleet_tags: {cluster: a, sector: s, size: large}", "fleet_tags", "terraform/value"),
        ("launch_template_tags: {cluster: b}", "launch_template_tags", "terraform/value"),
        (
            "tag_specifications: [{resource_type: volume, tags: {cluster: b}}]",
            "tag_specifications",
            "terraform/value",
        ),
        (
            f"instance_profile_name: node, instance_profile_arn: {_ARN}",
            "instance_profile_arn",
            "terraform/value",
        ),
        ("bootstrap_arguments: --a", "bootstrap_arguments", "terraform/value"),
        ("volumes: [{device_name: a}, {device_name: a}]", "volumes", "terraform/value"),
        ("ebs_iops: 2999", "ebs_iops", "terraform/value"),
        (
            "private_subnet_ids: {us-west-2a: subnet-1, us-west-2b: subnet-1}",
            "private_subnet_ids",
            "terraform/value",
        ),
        (
            (
                "overrides: [{instance_type: m4.2xlarge}, {instance_type: m5.2xlarge},"
                " {instance_type: r4.xlarge}, {instance_type: r5.xlarge},"
                " {instance_type: r5.xlarge, priority: 1}]"
            ),
            "overrides",
            "terraform/value",
        ),
    ],
)
def test_what_the_module_refuses_is_a_fault_at_its_place(
    variables: str, key: str, code: str
) -> None:
    """The pipeline would stop at a commit that validated."""
    text = (
        "cluster: a\nsectors: {s: {kind: memory, fleets: [{size: small, terraform: {"
        + variables
        + "}}]}}\n"
    )
    assert [(fault[0], fault[1].rpartition(".")[2]) for fault in found(text)] == [(code, key)]


@pytest.mark.parametrize(
    "variables",
    [
        "ami_type: AL2, bootstrap_arguments: --a",
        "ami_type: AL2, cluster_endpoint: 'https://a', cluster_ca: YQ==",
        "fleet_tags: {cluster: a, sector: s, size: small, name: kept}",
        "launch_template_tags: {cluster: a, team: b}",
        "launch_template_tags: {team: b}",
        "tag_specifications: [{resource_type: instance, tags: {cluster: a}}]",
        "ebs_iops: 3000",
        "volumes: []",
        "instance_profile_name: node, instance_profile_arn: ''",
        "launch_template_instance_type: ''",
        "user_data: x, ami_type: AL2023",
    ],
)
def test_what_the_module_takes_is_no_fault(variables: str) -> None:
    """A fleet that others made would otherwise be left out of an import."""
    fleet = f"{{size: small, terraform: {{{variables}}}}}"
    text = f"cluster: a\nsectors: {{s: {{kind: memory, fleets: [{fleet}]}}}}\n"
    assert found(text) == []


def templates(first: str, second: str, top: str = "", cluster: str = "cluster: a") -> str:
    """Two fleets, with variables of each and of all."""
    fleets = f"[{{size: small{first}}}, {{size: medium{second}}}]"
    return f"{cluster}\n{top}\nsectors: {{s: {{kind: memory, fleets: {fleets}}}}}\n"


def named(template: str) -> str:
    """What a fleet says of its launch template."""
    return f", terraform: {{launch_template_name: {template}}}"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (templates("", "", "terraform: {launch_template_name: nodes}"), "terraform"),
        (templates(named("nodes"), named("nodes")), "sectors.s.fleets[0].terraform"),
        (templates("", named("a-s-small")), "sectors.s.fleets[1].terraform"),
        (templates(named("a-s-medium"), ""), "sectors.s.fleets[0].terraform"),
    ],
)
def test_launch_template_of_two_fleets_is_a_fault(text: str, place: str) -> None:
    """EC2 refuses the second in the apply, after a plan that looked well."""
    assert [fault[:2] for fault in found(text)] == [
        ("terraform/value", f"{place}.launch_template_name")
    ]


def test_launch_template_name_of_one_fleet_is_no_fault() -> None:
    """An imported fleet keeps its template, and one name in two Regions is two templates."""
    assert found(templates(named("nodes"), named("a-s-large"))) == []
    text = templates("", "", cluster="regions: [us-west-2, us-east-1]").replace(
        "kind: memory", "kind: memory, regions: [us-west-2, us-east-1]"
    )
    assert found(text) == found(text.replace("size: medium", f"size: medium{named('nodes')}"))
