"""What fleets and groups launch from, and which fleets are there without being planned with."""

from typing import Any

import pytest

from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState
from reconciler.records.aws import decode_cloud
from tests.unit.records.aws.aws_answers import (
    Json,
    fleet_json,
    group_json,
    instance_json,
    reservations,
    tags,
)


def decoded(*answers: Json) -> CloudState:
    """Answers of one region."""
    return decode_cloud(((Region("us-west-2"), answer) for answer in answers), cluster="analytics")


def test_every_launch_template_and_version_of_a_fleet_is_kept() -> None:
    """Nodes of all but the first would count as ones to be replaced."""
    specifications = [
        {"LaunchTemplateId": template_id, "Version": version}
        for template_id, version in (("lt-1", "2"), ("lt-1", "1"), ("lt-1", "2"), ("lt-2", "1"))
    ]
    configs = [{"LaunchTemplateSpecification": specification} for specification in specifications]
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
    ("own", "types"),
    [({"InstanceType": "c6g.large"}, ("m5.large", "c6g.large")), ({}, ())],
    ids=["known", "unknown"],
)
def test_launch_template_without_options_launches_its_own_type_in_its_own_subnet(
    own: Json, types: tuple[str, ...]
) -> None:
    """Its nodes were drifted by what the options of another template say, and so were new ones."""
    version = {"LaunchTemplateId": "lt-2", "VersionNumber": 1, "LaunchTemplateData": own}
    options = [{"InstanceType": "m5.large", "SubnetId": "subnet-a"}]
    first, second = (
        {"LaunchTemplateSpecification": {"LaunchTemplateId": name, "Version": "1"}}
        for name in ("lt-1", "lt-2")
    )
    answer = {
        "Fleets": [fleet_json(LaunchTemplateConfigs=[{**first, "Overrides": options}, second])]
    }
    (fleet,) = decoded(answer, {"LaunchTemplateVersions": [version]}).fleets
    assert (fleet.instance_types, fleet.subnet_ids) == (types, ())


def test_group_with_a_launch_configuration_has_subnets_and_no_version() -> None:
    """A rolling update of it could not tell new nodes from old ones: there must be none."""
    group = group_json(LaunchConfigurationName="lc-1", VPCZoneIdentifier="subnet-b")
    (found,) = decoded({"AutoScalingGroups": [group]}).fleets
    assert (found.launch_template_version, found.subnet_ids) == ("", ("subnet-b",))


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


ANSWERED = "2026-01-31T12:00:00Z"
EARLIER, LATER = "2026-01-31T11:59:59Z", "2026-01-31T12:00:01Z"


def named_by(
    word: str,
    *,
    number: str,
    launched: str,
    answered: str | None = ANSWERED,
    key: str = "AnsweredAt",
) -> CloudState:
    """A fleet whose version is 7, the latest and the default, and its instance of another one."""
    specification = {"LaunchTemplateId": "lt-1", "Version": word}
    fleet = fleet_json(LaunchTemplateConfigs=[{"LaunchTemplateSpecification": specification}])
    numbers = {"LatestVersionNumber": 7, "DefaultVersionNumber": 7}
    template = {"LaunchTemplateId": "lt-1", **numbers, **({key: answered} if answered else {})}
    own = tags(
        **{
            "aws:ec2:fleet-id": "fleet-1",
            "aws:ec2launchtemplate:id": "lt-1",
            "aws:ec2launchtemplate:version": number,
        }
    )
    instance = instance_json(LaunchTime=launched, Tags=own)
    return decoded({"LaunchTemplates": [template]}, {"Fleets": [fleet]}, reservations(instance))


@pytest.mark.parametrize("key", ["AnsweredAt", "ToldAt"], ids=["now", "earlier-release"])
@pytest.mark.parametrize("word", ["$Latest", "$Default"])
def test_instance_of_a_later_version_shows_that_the_number_is_old(word: str, key: str) -> None:
    """After an apply the new nodes were replaced by others of the same version, to reach 7."""
    state = named_by(word, number="8", launched=LATER, key=key)
    (fleet,) = state.fleets
    assert fleet.launch_template_version == word
    (ignored,) = [each for each in state.ignored if each.kind == "LaunchTemplate"]
    assert ignored.name == "lt-1"
    assert ignored.detail.startswith("its version is unknown: i-1 runs version 8")


@pytest.mark.parametrize(
    "instance",
    [
        {"number": "8", "launched": EARLIER},
        {"number": "6", "launched": LATER},
        {"number": "7", "launched": LATER},
        {"number": "8", "launched": LATER, "answered": None},
        {"number": "²", "launched": LATER},
        {"number": "8" * 5_000, "launched": LATER},
    ],
    ids=["version-deleted", "of-a-fixed-number", "of-this-one", "of-a-file", "none", "too-long"],
)
@pytest.mark.parametrize("word", ["$Latest", "$Default"])
def test_other_instances_do_not_show_that_the_number_is_old(
    word: str, instance: dict[str, Any]
) -> None:
    """Whoever went back to an earlier version had no rolling update any more."""
    state = named_by(word, **instance)
    assert [fleet.launch_template_version for fleet in state.fleets] == ["7"]
    assert state.ignored == ()


@pytest.mark.parametrize("key", ["UnknownLaunchTemplates", "LaunchTemplatesNotTold"])
def test_templates_of_unknown_version_are_read_from_snapshots_of_each_release(key: str) -> None:
    """A snapshot of an earlier release would no longer show why an update stands still."""
    (ignored,) = decoded({key: [{"Name": "lt-1", "Why": "no answer"}]}).ignored
    assert (ignored.name, ignored.detail) == ("lt-1", "no answer")
