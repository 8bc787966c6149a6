"""Describing and refusing through boto3: filters, pages, unknown ids, other Regions."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from reconciler.sandbox.aws.bootstrap import AccountIds
from reconciler.sandbox.aws.clock import ManualClock
from tests.sandbox.aws.reading import described, error_code, members, set_target, states

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

MakeFleet = Callable[..., str]


def test_describe_fleets_filters_by_tag_and_field(ec2: "EC2Client", make_fleet: MakeFleet) -> None:
    """The reconciler finds its fleets by tag: a filter that is ignored shows it foreign ones."""
    ours = make_fleet(0, tags={"cluster": "filters", "fleet": "primary-small"})
    other = make_fleet(1, tags={"cluster": "filters-too"})

    def found(*filters: tuple[str, str]) -> list[str]:
        wanted = [{"Name": name, "Values": [value]} for name, value in filters]
        return [f["FleetId"] for f in ec2.describe_fleets(Filters=wanted)["Fleets"]]  # type: ignore[arg-type]  # plain dicts

    assert found(("tag:cluster", "filters")) == [ours]
    assert found(("tag:cluster", "filters*")) == [ours, other]
    assert ours in found(("tag-key", "fleet"), ("fleet-state", "active"))
    assert found(("tag:cluster", "filters*"), ("fleet-state", "deleted")) == []
    assert found(("tag:cluster", "filters*"), ("activity-status", "fulfilled")) == [ours, other]
    assert found(("tag:cluster", "filters"), ("type", "instant")) == []
    with pytest.raises(ClientError) as caught:
        found(("nonsense", "x"))
    assert error_code(caught) == "InvalidParameterValue"


def test_pages_hold_every_item_once(ec2: "EC2Client", make_fleet: MakeFleet) -> None:
    """An item lost between two pages is a node that looks gone."""
    fleets = [make_fleet(0, tags={"cluster": "pages"}) for _ in range(5)]
    pages = ec2.get_paginator("describe_fleets").paginate(
        Filters=[{"Name": "tag:cluster", "Values": ["pages"]}], PaginationConfig={"PageSize": 2}
    )
    assert [[f["FleetId"] for f in page["Fleets"]] for page in pages] == [
        fleets[:2],
        fleets[2:4],
        fleets[4:],
    ]
    with pytest.raises(ClientError) as caught:
        ec2.describe_fleets(NextToken="nonsense")
    assert error_code(caught) == "InvalidNextToken"


def test_instance_that_dies_between_pages_costs_no_other(
    ec2: "EC2Client", make_fleet: MakeFleet
) -> None:
    """A page token that names an instance fails when that instance no longer matches."""
    fleet = make_fleet(4)
    alive: Any = [
        {"Name": "tag:aws:ec2:fleet-id", "Values": [fleet]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ]
    first = ec2.describe_instances(Filters=alive, MaxResults=5)
    assert len(first["Reservations"]) == 4
    make_two = ec2.describe_fleet_instances(FleetId=fleet, MaxResults=2)
    shown = [i["InstanceId"] for i in make_two["ActiveInstances"]]
    everyone = members(ec2, fleet)
    ec2.terminate_instances(InstanceIds=shown)
    rest = ec2.describe_fleet_instances(FleetId=fleet, NextToken=make_two["NextToken"])
    assert [i["InstanceId"] for i in rest["ActiveInstances"]][:2] == everyone[2:]


def test_describe_instances_pages_by_max_results(ec2: "EC2Client", make_fleet: MakeFleet) -> None:
    """A reader that ignores NextToken must miss nodes here as it would in a large account."""
    fleet = make_fleet(7)
    wanted: Any = [{"Name": "tag:aws:ec2:fleet-id", "Values": [fleet]}]
    first = ec2.describe_instances(Filters=wanted, MaxResults=5)
    assert len(first["Reservations"]) == 5
    second = ec2.describe_instances(Filters=wanted, MaxResults=5, NextToken=first["NextToken"])
    assert len(second["Reservations"]) == 2
    assert "NextToken" not in second


def test_history_starts_at_start_time_and_pages(
    ec2: "EC2Client", clock: ManualClock, make_fleet: MakeFleet
) -> None:
    """Reading the whole history each cycle is what StartTime is there to avoid."""
    fleet = make_fleet(2)
    members(ec2, fleet)
    clock.advance(100)
    since = clock.now()
    set_target(ec2, fleet, 3)
    members(ec2, fleet)
    answer = ec2.describe_fleet_history(FleetId=fleet, StartTime=since)
    kinds = [r["EventInformation"]["EventSubType"] for r in answer["HistoryRecords"]]
    assert kinds == ["modify_in_progress", "launched"]
    assert answer["StartTime"] == since
    assert answer["HistoryRecords"][1]["EventInformation"]["InstanceId"].startswith("i-")
    page = ec2.describe_fleet_history(FleetId=fleet, StartTime=since, MaxResults=1)
    rest = ec2.describe_fleet_history(FleetId=fleet, StartTime=since, NextToken=page["NextToken"])
    assert len(rest["HistoryRecords"]) == 1


def test_unknown_instance_is_not_found_and_terminates_nothing(
    ec2: "EC2Client", make_fleet: MakeFleet
) -> None:
    """One id that is gone must not end the others of the same call."""
    fleet = make_fleet(1)
    (alive,) = members(ec2, fleet)
    with pytest.raises(ClientError) as caught:
        ec2.describe_instances(InstanceIds=["i-0123456789abcdef0"])
    assert error_code(caught) == "InvalidInstanceID.NotFound"
    with pytest.raises(ClientError) as caught:
        ec2.terminate_instances(InstanceIds=[alive, "i-0123456789abcdef0"])
    assert error_code(caught) == "InvalidInstanceID.NotFound"
    assert members(ec2, fleet) == [alive]


def test_terminated_instance_is_forgotten_after_an_hour(
    ec2: "EC2Client", clock: ManualClock, make_fleet: MakeFleet
) -> None:
    """Long after its end an instance is NotFound, which means gone and not an error."""
    fleet = make_fleet(1)
    (victim,) = members(ec2, fleet)
    set_target(ec2, fleet, 0)
    ec2.terminate_instances(InstanceIds=[victim])
    clock.advance(20)
    assert states(ec2, fleet) == {victim: "terminated"}
    clock.advance(3600)
    with pytest.raises(ClientError) as caught:
        ec2.describe_instances(InstanceIds=[victim])
    assert error_code(caught) == "InvalidInstanceID.NotFound"


def test_client_token_makes_create_fleet_idempotent(
    ec2: "EC2Client", make_fleet: MakeFleet
) -> None:
    """A retried CreateFleet whose first reply was lost must not make a second fleet."""
    first = make_fleet(1, ClientToken="once")
    assert make_fleet(1, ClientToken="once") == first


def test_client_token_makes_create_launch_template_idempotent(ec2: "EC2Client") -> None:
    """A slow answer is asked for again, and an apply would fail over a name that it took itself."""
    data: Any = {"ImageId": "ami-1", "InstanceType": "t3.small"}
    made = ec2.create_launch_template(
        LaunchTemplateName="repeated", LaunchTemplateData=data, ClientToken="once"
    )["LaunchTemplate"]
    again = ec2.create_launch_template(
        LaunchTemplateName="repeated", LaunchTemplateData=data, ClientToken="once"
    )["LaunchTemplate"]
    assert again["LaunchTemplateId"] == made["LaunchTemplateId"]
    assert (again["LatestVersionNumber"], again["DefaultVersionNumber"]) == (1, 1)
    with pytest.raises(ClientError) as caught:
        ec2.create_launch_template(
            LaunchTemplateName="repeated", LaunchTemplateData=data, ClientToken="another"
        )
    assert error_code(caught) == "InvalidLaunchTemplateName.AlreadyExistsException"


def test_question_about_an_unknown_launch_template_is_refused_as_a_whole(ec2: "EC2Client") -> None:
    """Moto leaves it out: a program that EC2 gives no version of any template seemed to work."""
    data: Any = {"ImageId": "ami-1", "InstanceType": "t3.small"}
    made = ec2.create_launch_template(LaunchTemplateName="there", LaunchTemplateData=data)
    known = made["LaunchTemplate"]["LaunchTemplateId"]
    asked = ec2.describe_launch_templates(LaunchTemplateIds=[known])["LaunchTemplates"]
    assert [each["LaunchTemplateName"] for each in asked] == ["there"]
    with pytest.raises(ClientError) as caught:
        ec2.describe_launch_templates(LaunchTemplateIds=[known, "lt-00000000000000000"])
    assert error_code(caught) == "InvalidLaunchTemplateId.NotFound"
    with pytest.raises(ClientError) as caught:
        ec2.describe_launch_templates(LaunchTemplateNames=["there", "gone"])
    assert error_code(caught) == "InvalidLaunchTemplateName.NotFoundException"


def test_dry_run_changes_nothing(ec2: "EC2Client", make_fleet: MakeFleet) -> None:
    """DryRun asks for permission only."""
    fleet = make_fleet(1)
    with pytest.raises(ClientError) as caught:
        set_target(ec2, fleet, 9, DryRun=True)
    assert error_code(caught) == "DryRunOperation"
    assert described(ec2, fleet)["TargetCapacitySpecification"]["TotalTargetCapacity"] == 1


def test_regions_keep_their_own_fleets(
    client: Callable[..., Any], ec2: "EC2Client", make_fleet: MakeFleet
) -> None:
    """A fleet that shows in every Region would be counted once per Region."""
    fleet = make_fleet(0)
    east = client("ec2", "us-east-1")
    assert fleet not in [f["FleetId"] for f in east.describe_fleets()["Fleets"]]
    with pytest.raises(ClientError) as caught:
        east.describe_fleets(FleetIds=[fleet])
    assert error_code(caught) == "InvalidFleetId.NotFound"


def test_impossible_requests_are_refused(ec2: "EC2Client", make_fleet: MakeFleet) -> None:
    """A target beyond EC2's limit, or a template that is not there, fails at once and loudly."""
    with pytest.raises(ClientError) as caught:
        make_fleet(10_001)
    assert error_code(caught) == "InvalidTargetCapacitySpecification"
    spec: Any = {"LaunchTemplateId": "lt-0123456789abcdef0", "Version": "1"}
    with pytest.raises(ClientError) as caught:
        make_fleet(1, LaunchTemplateConfigs=[{"LaunchTemplateSpecification": spec}])
    assert error_code(caught) == "InvalidLaunchTemplateId.NotFound"


def test_run_instances_stays_a_plain_instance(ec2: "EC2Client", ids: AccountIds) -> None:
    """Instances that no fleet owns are moto's own, and a fleet's rules do not touch them."""
    made = ec2.run_instances(ImageId=ids.ami, InstanceType="m5.large", MinCount=1, MaxCount=1)[
        "Instances"
    ][0]["InstanceId"]
    answer = ec2.terminate_instances(InstanceIds=[made])["TerminatingInstances"][0]
    assert answer["CurrentState"]["Name"] == "shutting-down"
    found = ec2.describe_instances(InstanceIds=[made])["Reservations"][0]["Instances"][0]
    assert found["State"]["Name"] == "terminated"
