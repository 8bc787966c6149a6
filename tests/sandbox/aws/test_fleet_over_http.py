"""What EC2 Fleet promises, seen through boto3: each test is one rule the reconciler lives by."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from reconciler.sandbox.aws.bootstrap import AccountIds
from reconciler.sandbox.aws.clock import ManualClock
from tests.sandbox.aws.reading import described, error_code, history, members, set_target, states

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

MakeFleet = Callable[..., str]


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


def test_launch_template_change_reaches_new_instances_only(
    ec2: "EC2Client", make_fleet: MakeFleet, template: str
) -> None:
    """Rolling updates tell old nodes from new ones by this tag."""
    image = ec2.describe_images(Owners=["amazon"])["Images"][-1]["ImageId"]
    fleet = make_fleet(1)
    old = members(ec2, fleet)
    ec2.create_launch_template_version(
        LaunchTemplateId=template,
        SourceVersion="1",
        LaunchTemplateData={"ImageId": image, "UserData": "bmV3"},
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
    (found,) = ec2.describe_instances(InstanceIds=new)["Reservations"]
    assert found["Instances"][0]["ImageId"] == image


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


def test_image_that_a_parameter_names_is_refused(
    ec2: "EC2Client", make_fleet: MakeFleet, template: str
) -> None:
    """EC2 resolves it for fleets of type instant only; one that is kept up never launches."""
    data: Any = {"ImageId": "resolve:ssm:/a/b"}
    ec2.create_launch_template_version(
        LaunchTemplateId=template, SourceVersion="1", LaunchTemplateData=data
    )
    with pytest.raises(ClientError) as caught:
        make_fleet(1)
    assert error_code(caught) == "InvalidParameterValue"


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
