"""What is asked for by its name or id: launch templates, and fleets that no list shows."""

from tests.contract.scripted import Answer
from tests.contract.scripted_ec2 import (
    HOME,
    Make,
    fleet_xml,
    make_scripted,
    refusal,
    xml,
)

__all__ = ["make_scripted"]


def test_template_that_a_fleet_names_by_its_name_has_a_version(cloud: Make) -> None:
    """Without the number of $Latest no rolling update would ever begin."""
    config = (
        "<launchTemplateConfigs><item><launchTemplateSpecification>"
        "<launchTemplateName>nodes</launchTemplateName><version>$Latest</version>"
        "</launchTemplateSpecification></item></launchTemplateConfigs><tagSet>"
    )

    def script(action: str, parameters: dict[str, list[str]]) -> Answer:
        if action == "DescribeFleets":
            listed = fleet_xml("fleet-1", fulfilled=2).replace("<tagSet>", config)
            return xml(action, f"<fleetSet>{listed}</fleetSet>")
        if action == "DescribeLaunchTemplates":
            assert parameters["LaunchTemplateName.1"] == ["nodes"]
            found = (
                "<item><launchTemplateId>lt-1</launchTemplateId><launchTemplateName>nodes"
                "</launchTemplateName><latestVersionNumber>7</latestVersionNumber></item>"
            )
            return xml(action, f"<launchTemplates>{found}</launchTemplates>")
        return xml(action)

    with cloud(script).open() as port:
        (fleet,) = port.observe([HOME]).fleets
    assert (fleet.launch_template_id, fleet.launch_template_version) == ("lt-1", "7")


def test_fleets_that_only_instances_name_are_asked_for_by_their_ids(cloud: Make) -> None:
    """One of them that EC2 does not know must not hide that the other lives."""
    asked: list[list[str]] = []
    tags = "".join(
        f"<item><key>{key}</key><value>{value}</value></item>"
        for key, value in (("cluster", "analytics"), ("fleet", "f"))
    )

    def member(fleet_id: str) -> str:
        of = f"<item><key>aws:ec2:fleet-id</key><value>{fleet_id}</value></item>"
        return (
            f"<item><instanceId>i-{fleet_id}</instanceId><instanceState><name>running</name>"
            f"</instanceState><tagSet>{tags}{of}</tagSet></item>"
        )

    def script(action: str, parameters: dict[str, list[str]]) -> Answer:
        ids = [value for key, (value,) in parameters.items() if key.startswith("FleetId")]
        if action == "DescribeFleets" and ids:
            asked.append(ids)
            found = fleet_xml("fleet-there").replace("maintain", "instant")
            known = ids == ["fleet-there"]
            return (
                xml(action, f"<fleetSet>{found}</fleetSet>")
                if known
                else refusal("InvalidFleetId.NotFound")
            )
        if action != "DescribeInstances":
            return xml(action)
        items = member("fleet-gone") + member("fleet-there")
        found = f"<item><instancesSet>{items}</instancesSet></item>"
        return xml(action, f"<reservationSet>{found}</reservationSet>")

    with cloud(script).open() as port:
        state = port.observe([HOME])
    assert asked == [["fleet-gone", "fleet-there"], ["fleet-gone"], ["fleet-there"]]
    assert not state.silent
    assert state.other_fleets == {"fleet-there"}


def template_config(template: str) -> str:
    """The config of a fleet that launches from the latest version of a launch template."""
    return (
        "<launchTemplateConfigs><item><launchTemplateSpecification>"
        f"<launchTemplateId>{template}</launchTemplateId><version>$Latest</version>"
        "</launchTemplateSpecification></item></launchTemplateConfigs><tagSet>"
    )


def test_template_of_a_deleted_fleet_hides_no_version_of_others(cloud: Make) -> None:
    """While its last instances ran, every rolling update of the region was forgotten."""

    def script(action: str, parameters: dict[str, list[str]]) -> Answer:
        if action == "DescribeFleets":
            gone = fleet_xml("fleet-1", "deleted_running", fulfilled=2)
            fleets = gone.replace("<tagSet>", template_config("lt-gone"))
            fleets += fleet_xml("fleet-2", fulfilled=2).replace("<tagSet>", template_config("lt-2"))
            return xml(action, f"<fleetSet>{fleets}</fleetSet>")
        if action == "DescribeLaunchTemplates":
            if ["lt-gone"] in parameters.values():
                return refusal("InvalidLaunchTemplateId.NotFound")
            template = "<launchTemplateId>lt-2</launchTemplateId>"
            number = "<latestVersionNumber>8</latestVersionNumber>"
            found = f"<launchTemplates><item>{template}{number}</item></launchTemplates>"
            return xml(action, found)
        return xml(action)

    with cloud(script).open() as port:
        state = port.observe([HOME])
    versions = {str(fleet.id): fleet.launch_template_version for fleet in state.fleets}
    assert versions["fleet-2"] == "8"
    assert [each.kind for each in state.ignored] == []


def test_version_that_is_unknown_is_reported(cloud: Make) -> None:
    """Rolling updates stood still, and nothing said why."""

    def script(action: str, _parameters: dict[str, list[str]]) -> Answer:
        if action == "DescribeFleets":
            fleet = fleet_xml("fleet-2", fulfilled=2).replace("<tagSet>", template_config("lt-2"))
            return xml(action, f"<fleetSet>{fleet}</fleetSet>")
        if action == "DescribeLaunchTemplates":
            return refusal("UnauthorizedOperation")
        return xml(action)

    with cloud(script).open() as port:
        state = port.observe([HOME])
    assert [each.launch_template_version for each in state.fleets] == ["$Latest"]
    (told,) = state.ignored
    assert (told.code, told.kind, told.name) == ("unreadable", "LaunchTemplate", "lt-2")
    assert "UnauthorizedOperation" in told.detail
