"""What EC2 Fleet promises, seen through boto3: each test is one rule the reconciler lives by."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from reconciler.sandbox.aws.bootstrap import AccountIds
from reconciler.sandbox.aws.clock import ManualClock
from reconciler.sandbox.aws.faults import CapacityLimit
from reconciler.sandbox.aws.launcher import EndReason
from reconciler.sandbox.aws.server import AwsServer

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

MakeFleet = Callable[..., str]


def members(ec2: "EC2Client", fleet: str) -> list[str]:
    """Ids of the fleet's active instances."""
    return [i["InstanceId"] for i in ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"]]


def described(ec2: "EC2Client", fleet: str) -> Any:
    """The fleet as DescribeFleets answers it."""
    return ec2.describe_fleets(FleetIds=[fleet])["Fleets"][0]


def states(ec2: "EC2Client", fleet: str) -> dict[str, str]:
    """State of every instance that carries the fleet's tag, by id."""
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[{"Name": "tag:aws:ec2:fleet-id", "Values": [fleet]}]
    )
    return {
        i["InstanceId"]: i["State"]["Name"]
        for page in pages
        for reservation in page["Reservations"]
        for i in reservation["Instances"]
    }


def history(ec2: "EC2Client", fleet: str, **wanted: Any) -> list[tuple[str, str]]:
    """Type and sub-type of the fleet's records."""
    answer = ec2.describe_fleet_history(FleetId=fleet, StartTime="1970-01-01T00:00:00Z", **wanted)
    return [
        (r["EventType"], r["EventInformation"]["EventSubType"]) for r in answer["HistoryRecords"]
    ]


def set_target(ec2: "EC2Client", fleet: str, target: int, **more: Any) -> None:
    """ModifyFleet to a new total."""
    ec2.modify_fleet(
        FleetId=fleet, TargetCapacitySpecification={"TotalTargetCapacity": target}, **more
    )


def error_code(caught: pytest.ExceptionInfo[ClientError]) -> str:
    """EC2's code of a refusal."""
    return str(caught.value.response["Error"]["Code"])


def test_maintain_fleet_launches_its_target_pending_then_running(
    ec2: "EC2Client", clock: ManualClock, make_fleet: MakeFleet
) -> None:
    """Instances that are running at once would hide every bug in how launching capacity counts."""
    fleet = make_fleet(3)
    assert set(states(ec2, fleet).values()) == {"pending"}
    assert described(ec2, fleet)["FulfilledCapacity"] == 3
    clock.advance(30)
    assert list(states(ec2, fleet).values()) == ["running"] * 3


def test_members_carry_what_a_node_is_recognised_by(
    ec2: "EC2Client", ids: AccountIds, make_fleet: MakeFleet, template: str
) -> None:
    """Without these tags and fields an instance is never joined to its node and fleet."""
    fleet = make_fleet(1)
    (instance_id,) = members(ec2, fleet)
    instance = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]
    tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
    assert tags["aws:ec2:fleet-id"] == fleet
    assert tags["fleet"] == "primary-small"
    assert tags["aws:ec2launchtemplate:id"] == template
    assert tags["aws:ec2launchtemplate:version"] == "1"
    assert instance["InstanceLifecycle"] == "spot"
    assert instance["SpotInstanceRequestId"].startswith("sir-")
    assert instance["SubnetId"] == ids.subnet_ids[instance["Placement"]["AvailabilityZone"]]
    address = instance["PrivateIpAddress"].replace(".", "-")
    assert instance["PrivateDnsName"] == f"ip-{address}.us-west-2.compute.internal"
    user_data = ec2.describe_instance_attribute(InstanceId=instance_id, Attribute="userData")
    assert user_data["UserData"]["Value"] == "aGVsbG8="


def test_on_demand_members_carry_no_spot_marks(ec2: "EC2Client", make_fleet: MakeFleet) -> None:
    """A spot mark on an on-demand node would make the rescheduler take it for the cheap kind."""
    fleet = make_fleet(1, default="on-demand")
    answer = ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"][0]
    assert "SpotInstanceRequestId" not in answer
    found = ec2.describe_instances(InstanceIds=[answer["InstanceId"]])
    assert "InstanceLifecycle" not in found["Reservations"][0]["Instances"][0]
    assert described(ec2, fleet)["FulfilledOnDemandCapacity"] == 1


def test_zones_are_spread_by_subnet(
    ec2: "EC2Client", ids: AccountIds, make_fleet: MakeFleet
) -> None:
    """A fleet that fills one zone only would make zonal spread look impossible."""
    fleet = make_fleet(4, SpotOptions={"AllocationStrategy": "price-capacity-optimized"})
    pages = ec2.describe_instances(InstanceIds=members(ec2, fleet))["Reservations"]
    zones = {page["Instances"][0]["Placement"]["AvailabilityZone"] for page in pages}
    assert zones == set(ids.subnet_ids)


def test_unknown_instance_type_is_launched(ec2: "EC2Client", make_fleet: MakeFleet) -> None:
    """Own sizes may name types that are newer than the emulator."""
    fleet = make_fleet(1, types=("z99.7xlarge",))
    assert ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"][0]["InstanceType"] == (
        "z99.7xlarge"
    )


def test_modify_fleet_is_modifying_for_a_while_then_active(
    ec2: "EC2Client", clock: ManualClock, make_fleet: MakeFleet
) -> None:
    """A reconciler that waits for `active` wrongly, or never sees `modifying`, shows here."""
    fleet = make_fleet(1)
    set_target(ec2, fleet, 4)
    assert described(ec2, fleet)["FleetState"] == "modifying"
    assert len(members(ec2, fleet)) == 4
    clock.advance(10)
    assert described(ec2, fleet)["FleetState"] == "active"
    changes = [sub for kind, sub in history(ec2, fleet) if kind == "fleetRequestChange"]
    assert changes == ["submitted", "active", "modify_in_progress", "modify_succeeded"]


def test_target_split_goes_to_the_default_type(ec2: "EC2Client", make_fleet: MakeFleet) -> None:
    """EC2 answers both parts; the Terraform provider compares them with the total."""
    fleet = make_fleet(2)
    set_target(ec2, fleet, 5)
    target = described(ec2, fleet)["TargetCapacitySpecification"]
    assert target == {
        "TotalTargetCapacity": 5,
        "OnDemandTargetCapacity": 0,
        "SpotTargetCapacity": 5,
        "DefaultTargetCapacityType": "spot",
    }


def test_terminated_member_is_replaced_and_off_the_list(
    ec2: "EC2Client", clock: ManualClock, make_fleet: MakeFleet
) -> None:
    """A fleet keeps its target: terminating without lowering it first only buys a new node."""
    fleet = make_fleet(2)
    before = members(ec2, fleet)
    answer = ec2.terminate_instances(InstanceIds=before[:1])["TerminatingInstances"][0]
    assert answer["CurrentState"]["Name"] == "shutting-down"
    after = members(ec2, fleet)
    assert before[0] not in after
    assert len(after) == 2
    clock.advance(20)
    assert states(ec2, fleet)[before[0]] == "terminated"
    assert len(members(ec2, fleet)) == 2


def test_target_lowered_first_then_terminated_is_not_replaced(
    ec2: "EC2Client", make_fleet: MakeFleet
) -> None:
    """This order is how scale-in removes exactly the node that it drained."""
    fleet = make_fleet(3)
    victim = members(ec2, fleet)[1]
    set_target(ec2, fleet, 2, ExcessCapacityTerminationPolicy="no-termination")
    assert len(members(ec2, fleet)) == 3
    ec2.terminate_instances(InstanceIds=[victim])
    assert victim not in members(ec2, fleet)
    assert len(members(ec2, fleet)) == 2
    assert described(ec2, fleet)["FulfilledCapacity"] == 2


def test_termination_policy_kills_the_excess(
    ec2: "EC2Client", clock: ManualClock, make_fleet: MakeFleet
) -> None:
    """EC2's default policy picks victims itself: lowering a target under it kills pods."""
    fleet = make_fleet(4, policy="termination")
    set_target(ec2, fleet, 1)
    assert len(members(ec2, fleet)) == 1
    assert described(ec2, fleet)["ActivityStatus"] == "pending_termination"
    clock.advance(20)
    assert described(ec2, fleet)["ActivityStatus"] == "fulfilled"
    assert sorted(states(ec2, fleet).values()) == ["pending", *["terminated"] * 3]


def test_instance_killed_from_outside_is_replaced_and_says_why(
    aws: AwsServer, ec2: "EC2Client", clock: ManualClock, make_fleet: MakeFleet
) -> None:
    """A spot interruption that nobody reacts to must still end in a replacement by EC2."""
    fleet = make_fleet(1)
    (victim,) = members(ec2, fleet)
    assert aws.control.terminate([victim], EndReason.SPOT_INTERRUPTION) == (victim,)
    clock.advance(20)
    assert len(members(ec2, fleet)) == 1
    found = ec2.describe_instances(InstanceIds=[victim])["Reservations"][0]["Instances"][0]
    assert found["State"]["Name"] == "terminated"
    assert found["StateReason"]["Code"] == "Server.SpotInstanceTermination"
    assert ("instanceChange", "terminated") in history(ec2, fleet)


def test_missing_capacity_shows_as_error_and_moves_to_other_pools(
    aws: AwsServer, ec2: "EC2Client", make_fleet: MakeFleet
) -> None:
    """A fleet that stops at its first dry pool would make every shortage a total one."""
    aws.faults.limit(CapacityLimit(instance_type="r5.xlarge"))
    fleet = make_fleet(2)
    kinds = {
        i["InstanceType"] for i in ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"]
    }
    assert kinds == {"m5.2xlarge"}
    assert described(ec2, fleet)["ActivityStatus"] == "fulfilled"
    assert ("error", "InsufficientInstanceCapacity") in history(ec2, fleet)


def test_no_capacity_anywhere_is_activity_status_error_until_it_returns(
    aws: AwsServer, ec2: "EC2Client", clock: ManualClock, make_fleet: MakeFleet
) -> None:
    """The fleet must look unavailable while it is, and recover by itself."""
    aws.faults.limit(CapacityLimit(code="MaxSpotInstanceCountExceeded", lifecycle="spot"))
    fleet = make_fleet(2)
    assert described(ec2, fleet)["ActivityStatus"] == "error"
    assert described(ec2, fleet)["FulfilledCapacity"] == 0
    errors = history(ec2, fleet, EventType="service-error")
    assert ("error", "spotInstanceCountLimitExceeded") in errors
    assert errors[-1] == ("error", "allLaunchSpecsTemporarilyBlacklisted")
    aws.faults.clear()
    assert described(ec2, fleet)["FulfilledCapacity"] == 0
    clock.advance(60)
    assert described(ec2, fleet)["ActivityStatus"] == "fulfilled"
    assert len(members(ec2, fleet)) == 2


def test_limited_capacity_gives_what_is_left(
    aws: AwsServer, ec2: "EC2Client", make_fleet: MakeFleet
) -> None:
    """Partial fulfilment is the usual case in a shortage: some nodes come, the rest never."""
    aws.faults.limit(CapacityLimit(remaining=2))
    fleet = make_fleet(5)
    assert described(ec2, fleet)["FulfilledCapacity"] == 2
    assert described(ec2, fleet)["ActivityStatus"] == "error"


def test_launch_template_change_reaches_new_instances_only(
    ec2: "EC2Client", make_fleet: MakeFleet, template: str
) -> None:
    """Rolling updates tell old nodes from new ones by this tag."""
    fleet = make_fleet(1)
    old = members(ec2, fleet)
    ec2.create_launch_template_version(
        LaunchTemplateId=template,
        SourceVersion="1",
        LaunchTemplateData={"ImageId": "ami-0123456789abcdef0", "UserData": "bmV3"},
    )
    set_target(ec2, fleet, 2)
    new = [i for i in members(ec2, fleet) if i not in old]
    tags = ec2.describe_tags(
        Filters=[
            {"Name": "resource-id", "Values": new},
            {"Name": "key", "Values": ["aws:ec2launchtemplate:version"]},
        ]
    )["Tags"]
    assert [tag["Value"] for tag in tags] == ["2"]
    attribute = ec2.describe_instance_attribute(InstanceId=new[0], Attribute="userData")
    assert attribute["UserData"]["Value"] == "bmV3"


def test_modify_fleet_replaces_configs_and_context(
    ec2: "EC2Client", ids: AccountIds, make_fleet: MakeFleet, template: str
) -> None:
    """Terraform changes a fleet's types this way, without making a new fleet."""
    fleet = make_fleet(1)
    subnet = next(iter(ids.subnet_ids.values()))
    config: Any = {
        "LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "$Latest"},
        "Overrides": [{"InstanceType": "c5.4xlarge", "SubnetId": subnet}],
    }
    set_target(ec2, fleet, 2, LaunchTemplateConfigs=[config], Context="ctx")
    kinds = [
        i["InstanceType"] for i in ec2.describe_fleet_instances(FleetId=fleet)["ActiveInstances"]
    ]
    assert kinds[1] == "c5.4xlarge"
    assert described(ec2, fleet)["LaunchTemplateConfigs"] == [config]
    assert described(ec2, fleet)["Context"] == "ctx"


def test_modify_fleet_of_the_split_is_refused(ec2: "EC2Client", make_fleet: MakeFleet) -> None:
    """EC2 takes only a new total; code that sends the parts must fail here too."""
    fleet = make_fleet(0)
    with pytest.raises(ClientError) as caught:
        ec2.modify_fleet(
            FleetId=fleet,
            TargetCapacitySpecification={"TotalTargetCapacity": 2, "SpotTargetCapacity": 2},
        )
    assert error_code(caught) == "InvalidTargetCapacitySpecification"


def test_modify_fleet_of_other_types_and_unknown_ids_is_refused(
    ec2: "EC2Client", make_fleet: MakeFleet
) -> None:
    """Only maintain fleets can be modified; an unknown id has its own code."""
    once = make_fleet(1, Type="request")
    with pytest.raises(ClientError) as caught:
        set_target(ec2, once, 2)
    assert error_code(caught) == "FleetNotInModifiableState"
    with pytest.raises(ClientError) as caught:
        set_target(ec2, "fleet-00000000-0000-0000-0000-000000000000", 2)
    assert error_code(caught) == "InvalidFleetId.NotFound"


def test_request_fleet_is_not_kept_up(ec2: "EC2Client", make_fleet: MakeFleet) -> None:
    """A one-time request that replaced what dies would hide that it does not."""
    fleet = make_fleet(2, Type="request")
    ec2.terminate_instances(InstanceIds=members(ec2, fleet)[:1])
    assert len(members(ec2, fleet)) == 1


def test_instant_fleet_answers_with_instances_and_errors(
    aws: AwsServer, ec2: "EC2Client", make_fleet: MakeFleet, ids: AccountIds, template: str
) -> None:
    """An instant fleet says at once what it got, and is listed only when named."""
    zone = next(iter(ids.subnet_ids))
    aws.faults.limit(CapacityLimit(zone=zone, remaining=1))
    config: Any = {
        "LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "1"},
        "Overrides": [{"InstanceType": "r5.large", "SubnetId": ids.subnet_ids[zone]}],
    }
    answer = ec2.create_fleet(
        Type="instant",
        LaunchTemplateConfigs=[config],
        TargetCapacitySpecification={
            "TotalTargetCapacity": 2,
            "DefaultTargetCapacityType": "on-demand",
        },
    )
    assert len(answer["Instances"]) == 1
    assert answer["Errors"][0]["ErrorCode"] == "InsufficientInstanceCapacity"
    assert answer["FleetId"] not in [f["FleetId"] for f in ec2.describe_fleets()["Fleets"]]
    assert described(ec2, answer["FleetId"])["Type"] == "instant"


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


def test_delete_fleet_with_termination_ends_in_deleted(
    ec2: "EC2Client", clock: ManualClock, make_fleet: MakeFleet
) -> None:
    """Terraform waits for `deleted`; a fleet that never gets there hangs its destroy."""
    fleet = make_fleet(2)
    assert len(members(ec2, fleet)) == 2
    answer = ec2.delete_fleets(FleetIds=[fleet], TerminateInstances=True)
    assert answer["SuccessfulFleetDeletions"][0]["CurrentFleetState"] == "deleted_terminating"
    assert members(ec2, fleet) == []
    clock.advance(20)
    assert set(states(ec2, fleet).values()) == {"terminated"}
    assert described(ec2, fleet)["FleetState"] == "deleted"


def test_delete_fleet_without_termination_keeps_instances_running(
    ec2: "EC2Client", clock: ManualClock, make_fleet: MakeFleet
) -> None:
    """Nodes of a deleted fleet live on and are no longer replaced."""
    fleet = make_fleet(2)
    running = members(ec2, fleet)
    ec2.delete_fleets(FleetIds=[fleet], TerminateInstances=False)
    clock.advance(60)
    assert described(ec2, fleet)["FleetState"] == "deleted_running"
    assert set(states(ec2, fleet).values()) == {"running"}
    ec2.terminate_instances(InstanceIds=running)
    clock.advance(20)
    assert described(ec2, fleet)["FleetState"] == "deleted"
    assert set(states(ec2, fleet).values()) == {"terminated"}


def test_delete_fleets_lists_what_it_cannot_delete(ec2: "EC2Client", make_fleet: MakeFleet) -> None:
    """DeleteFleets answers 200 even when nothing was deleted: the list must be read."""
    fleet = make_fleet(0)
    ec2.delete_fleets(FleetIds=[fleet], TerminateInstances=True)
    unknown = "fleet-00000000-0000-0000-0000-000000000000"
    answer = ec2.delete_fleets(FleetIds=[fleet, unknown], TerminateInstances=True)
    codes = [d["Error"]["Code"] for d in answer["UnsuccessfulFleetDeletions"]]
    assert codes == ["fleetNotInDeletableState", "fleetIdDoesNotExist"]
    assert answer["SuccessfulFleetDeletions"] == []


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
