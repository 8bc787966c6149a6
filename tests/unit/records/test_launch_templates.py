"""What fleets and groups launch from, and which fleets are there without being planned with."""

from typing import Any

import pytest

from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState
from reconciler.records.aws import decode_cloud
from tests.unit.records.aws_answers import Json, fleet_json, group_json


def decoded(*answers: Json) -> CloudState:
    """Answers of one region."""
    return decode_cloud(((Region("us-west-2"), each) for each in answers), cluster="analytics")


def test_every_launch_template_and_version_of_a_fleet_is_kept() -> None:
    """Nodes of all but the first would count as ones to be replaced."""
    specifications = [
        {"LaunchTemplateId": template_id, "Version": version}
        for template_id, version in (("lt-1", "2"), ("lt-1", "1"), ("lt-1", "2"), ("lt-2", "1"))
    ]
    configs = [{"LaunchTemplateSpecification": each} for each in specifications]
    (fleet,) = decoded({"Fleets": [fleet_json(LaunchTemplateConfigs=configs)]}).fleets
    assert (fleet.launch_template_id, fleet.launch_template_version) == ("lt-1", "2")
    assert fleet.further_templates == (("lt-1", "1"), ("lt-2", "1"))
    overrides = [{"InstanceType": "m5.large", "LaunchTemplateSpecification": specifications[3]}]
    template = {"LaunchTemplateSpecification": specifications[0], "Overrides": overrides}
    group = group_json(MixedInstancesPolicy={"LaunchTemplate": template})
    (found,) = decoded({"AutoScalingGroups": [group]}).fleets
    assert found.further_templates == (("lt-2", "1"),)


def test_types_that_aws_chooses_by_attributes_are_not_known() -> None:
    """The type that the launch template names would count as the only one, and nodes as drifted."""
    version = {"LaunchTemplateId": "lt-1", "VersionNumber": 1}
    versions = {
        "LaunchTemplateVersions": [{**version, "LaunchTemplateData": {"InstanceType": "t3.micro"}}]
    }
    template = {
        "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "1"},
        "Overrides": [{"InstanceRequirements": {"VCpuCount": {"Min": 4}}}],
    }
    fleet = fleet_json(LaunchTemplateConfigs=[template])
    group = group_json(MixedInstancesPolicy={"LaunchTemplate": template})
    state = decoded({"Fleets": [fleet], "AutoScalingGroups": [group]}, versions)
    assert [each.instance_types for each in state.fleets] == [(), ()]


@pytest.mark.parametrize(
    ("changed", "others"),
    [
        ({"Tags": []}, {"fleet-1"}),
        ({"CreateTime": "soon"}, {"fleet-1"}),
        ({"Tags": [], "FleetState": "deleted_running"}, set()),
        ({"Type": "request", "FleetState": "deleted_terminating"}, set()),
        ({"Type": "instant", "FleetState": "failed"}, set()),
        ({}, set()),
    ],
)
def test_fleet_that_is_not_planned_with_is_known_to_be_there(
    changed: dict[str, Any], others: set[str]
) -> None:
    """What it launched would look left behind, and be ended."""
    assert decoded({"Fleets": [fleet_json(**changed)]}).other_fleets == others
