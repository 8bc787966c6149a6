"""What describe answers about Auto Scaling groups say of their members."""

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.model.fleet import Instance
from reconciler.model.ids import Region
from reconciler.records.aws import decode_cloud
from tests.unit.records.aws.aws_answers import Json, group_json, instance_json, reservations

HOME = Region("us-west-2")


def running(instance_id: str, state: str = "running") -> Json:
    """An instance of the group, as EC2 shows it."""
    member = [{"Key": "aws:autoscaling:groupName", "Value": "workers"}]
    found = instance_json(instance_id, fleet_id=None, State={"Name": state})
    return {**found, "Tags": member}


def members(
    *answers: Mapping[str, Any], states: Mapping[str, str], **fields: Any
) -> dict[str, Instance]:
    """The members of a group that shows its instances in these states."""
    listed = [{"InstanceId": i, "LifecycleState": state} for i, state in states.items()]
    group = group_json(Instances=listed, **fields)
    found = decode_cloud(
        [(HOME, each) for each in ({"AutoScalingGroups": [group]}, *answers)], cluster="analytics"
    )
    return {instance.id: instance for instance in found.instances}


@pytest.mark.parametrize(
    ("state", "set_aside", "counts"),
    [
        ("Pending", False, True),
        ("Pending:Wait", False, True),
        ("InService", False, True),
        ("EnteringStandby", True, False),
        ("Standby", True, False),
        ("Detaching", True, False),
        ("Terminating", False, False),
        ("Terminating:Wait", False, False),
    ],
)
def test_only_members_in_service_or_on_their_way_fulfil_the_desired_capacity(
    state: str, set_aside: bool, counts: bool
) -> None:
    """A node more or less would be asked for than Auto Scaling counts."""
    for answers in ((), (reservations(running("i-1")),)):
        found = members(*answers, states={"i-1": state})["i-1"]
        assert (found.set_aside, found.counts) == (set_aside, counts)
        assert found.protected is set_aside


@pytest.mark.parametrize("listed", [False, True], ids=["of-the-pool-alone", "among-the-members"])
def test_instances_of_a_warm_pool_are_set_aside(listed: bool) -> None:
    """They would be ended as nodes that never joined, or as nodes count for the group's target."""
    warm = {"i-2": "Warmed:Stopped", "i-3": "Warmed:Running", "i-4": "Warmed:Pending:Wait"}
    states = {"i-1": "InService", **(warm if listed else {})}
    answer = reservations(
        running("i-1"), running("i-2", "stopped"), running("i-3"), running("i-4", "pending")
    )
    found = members(answer, states=states, WarmPoolConfiguration={"PoolState": "Stopped"})
    assert {key for key, instance in found.items() if instance.counts} == {"i-1"}
    assert all(
        instance.set_aside and instance.protected for key, instance in found.items() if key != "i-1"
    )


def test_warm_instance_is_set_aside_without_the_pools_configuration() -> None:
    """Its state says enough: in a saved answer without the configuration its node was ended."""
    untagged = {**running("i-3"), "Tags": [{"Key": "cluster", "Value": "analytics"}]}
    found = members(
        reservations(running("i-1"), running("i-2"), untagged, running("i-4", "pending")),
        states={"i-1": "InService", "i-2": "Warmed:Running", "i-3": "Warmed:Stopped"},
    )
    assert {key for key, instance in found.items() if instance.counts} == {"i-1", "i-4"}
    assert {key for key, instance in found.items() if instance.set_aside} == {"i-2", "i-3"}
    assert all(found[key].protected for key in ("i-2", "i-3"))
    assert {instance.fleet_id for instance in found.values()} == {"workers"}


def test_instance_that_a_group_does_not_list_yet_counts() -> None:
    """Answers of two services: without a warm pool it is one that has just been launched."""
    found = members(
        reservations(running("i-1"), running("i-2", "pending")), states={"i-1": "InService"}
    )
    assert {key: instance.counts for key, instance in found.items()} == {"i-1": True, "i-2": True}


def test_member_of_a_group_whose_pool_runs_is_as_old_as_its_activity_says() -> None:
    """EC2 launched it into the pool, perhaps: without its activity it was ended as never joined."""
    direct = {
        "AutoScalingGroupName": "workers",
        "StatusCode": "Successful",
        "StartTime": "2026-01-31T11:59:50Z",
        "Description": "Launching a new EC2 instance: i-1",
    }
    found = members(
        reservations(*map(running, ("i-1", "i-2"))),
        {"Activities": [direct]},
        states=dict.fromkeys(("i-1", "i-2"), "InService"),
        WarmPoolConfiguration={"PoolState": "Running"},
    )
    launched = {
        name: instance.launched_at and instance.launched_at.hour for name, instance in found.items()
    }
    assert launched == {"i-1": 12, "i-2": None}


@pytest.mark.parametrize("status", ["InProgress", "Successful", "Failed"])
def test_launch_of_an_instance_from_a_warm_pool_is_when_it_left_the_pool(status: str) -> None:
    """One that ran there for hours, and starts kubelet in service, was ended as never joined."""
    activities = [
        {
            "AutoScalingGroupName": "workers",
            "StatusCode": status,
            "StartTime": start,
            "Description": f"Launching a new EC2 instance {words}: i-{number}",
        }
        for number, words, start in (
            (1, "from warm pool", "2026-01-31T19:00:00Z"),
            (1, "from warm pool", "2026-01-31T15:00:00Z"),
            (2, "into warm pool", "2026-01-31T19:00:00Z"),
            (3, "from warm pool", "2026-01-31T11:00:00Z"),
        )
    ]
    names = ("i-1", "i-2", "i-3")
    found = members(
        reservations(*map(running, names)),
        {"Activities": activities},
        states=dict.fromkeys(names, "InService"),
    )
    hours = {
        name: instance.launched_at.hour for name, instance in found.items() if instance.launched_at
    }
    assert hours == {"i-1": 12 if status == "Failed" else 19, "i-2": 12, "i-3": 12}
