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
        (
            f"instance_profile_name: node, instance_profile_arn: {_ARN}",
            "instance_profile_arn",
            "terraform/value",
        ),
        ("bootstrap_arguments: --a", "bootstrap_arguments", "terraform/value"),
        ("volumes: [{device_name: a}, {device_name: a}]", "volumes", "terraform/value"),
        ("ebs_iops: 2999", "ebs_iops", "terraform/value"),
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
