"""The AWS CLI's answers become fleets and instances, and only ours."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.model.ids import Region
from reconciler.model.snapshot import CloudState, Ignored
from reconciler.records.aws import decode_cloud
from tests.unit.records.aws.aws_answers import (
    STAMP,
    Json,
    fleet_json,
    group_json,
    instance_json,
    reservations,
    tags,
)

HOME = Region("us-west-2")
AT = datetime(2026, 1, 31, 12, tzinfo=UTC)


def decode(*answers: Mapping[str, Any], **options: Any) -> CloudState:
    """Answers of the home region."""
    return decode_cloud([(HOME, answer) for answer in answers], cluster="analytics", **options)


def test_fleet_and_its_instance_are_joined_by_tag() -> None:
    """A node whose instance is not found would look gone."""
    state = decode({"Fleets": [fleet_json()]}, reservations(instance_json()))
    (fleet,), (instance,) = state.fleets, state.instances
    assert (fleet.name, fleet.target_capacity, fleet.created_at) == ("primary-small", 3, AT)
    assert (instance.fleet_id, instance.lifecycle, instance.zone) == (
        fleet.id,
        "spot",
        "us-west-2a",
    )
    assert instance.launched_at == AT
    assert instance.launch_template_version == "4"
    assert state.instances_known
    assert state.regions == {HOME}


@pytest.mark.parametrize(
    ("options", "rebalances"),
    [
        ({"MaintenanceStrategies": {"CapacityRebalance": {"ReplacementStrategy": "launch"}}}, True),
        ({"MaintenanceStrategies": {"CapacityRebalance": {}}}, False),
        ({"MaintenanceStrategies": None}, False),
        (None, False),
    ],
)
def test_fleet_that_replaces_what_ec2_recommends_to_leave_is_known(
    options: Any, rebalances: bool
) -> None:
    """A second node would be asked for beside the one that EC2 launches."""
    (fleet,) = decode({"Fleets": [fleet_json(SpotOptions=options)]}).fleets
    assert fleet.rebalances_capacity == rebalances


@pytest.mark.parametrize("kind", ["request", "instant"])
def test_fleet_of_another_type_is_left_out_and_reported(kind: str) -> None:
    """Its capacity cannot be set; it would only be said that the fleet is missing."""
    state = decode({"Fleets": [fleet_json(Type=kind)]})
    assert state.fleets == ()
    assert state.ignored == (Ignored(code="not-maintained", kind="Fleet", name="fleet-1"),)
    assert state.other_fleets == {"fleet-1"}


@pytest.mark.parametrize(
    ("subnets", "found"),
    [
        (["subnet-a", "subnet-b,subnet-c"], ("subnet-a", "subnet-b", "subnet-c")),
        (["subnet-a", None], ()),
        ([None], ()),
    ],
)
def test_subnets_are_known_where_every_option_names_them(
    subnets: list[str | None], found: tuple[str, ...]
) -> None:
    """A node in a subnet that the fleet leaves open would count as one to be replaced."""
    overrides = [{"InstanceType": "r5.large", "SubnetId": subnet} for subnet in subnets]
    config = {"Overrides": overrides}
    answer = {"Fleets": [fleet_json(LaunchTemplateConfigs=[config])]}
    own = reservations(instance_json(SubnetId="subnet-a"))
    state = decode(answer, own)
    assert state.fleets[0].subnet_ids == found
    assert state.instances[0].subnet_id == "subnet-a"


def test_boto3_and_cli_answers_decode_to_the_same() -> None:
    """boto3 has datetimes where the CLI prints text."""
    with_text = decode({"Fleets": [fleet_json()]}, reservations(instance_json()))
    with_times = decode(
        {"Fleets": [fleet_json(CreateTime=AT)]}, reservations(instance_json(LaunchTime=AT))
    )
    assert with_times == with_text


@pytest.mark.parametrize(
    ("found", "ours"),
    [
        (tags(fleet="f", cluster="analytics"), True),
        ([*tags(fleet="f"), {"Key": "kubernetes.io/cluster/analytics", "Value": "owned"}], True),
        (tags(fleet="f", cluster="other"), False),
        (tags(cluster="analytics"), False),
        ([], False),
    ],
)
def test_only_tagged_fleets_are_ours(found: list[Json], ours: bool) -> None:
    """Another cluster's fleet must never be scaled."""
    assert bool(decode({"Fleets": [fleet_json(Tags=found)]}).fleets) is ours


@pytest.mark.parametrize("fields", [{"FleetState": "deleted"}, {"Type": "instant"}])
def test_ended_and_unmanageable_fleets_are_left_out(fields: Json) -> None:
    """A deleted fleet beside its successor would make two of one name."""
    assert decode({"Fleets": [fleet_json(**fields)]}).fleets == ()


def _weighted(*weights: float | str | None) -> list[Json]:
    names = ("r5.xlarge", "r5.2xlarge")
    stated = zip(names, weights, strict=True)
    return [{"InstanceType": n} | ({"WeightedCapacity": w} if w else {}) for n, w in stated]


@pytest.mark.parametrize(
    ("weights", "unit", "halted"),
    [
        ((None, None), None, ""),
        ((1.0, None), "units", ""),
        ((1, 4), None, "its target counts units of WeightedCapacity, not nodes"),
        ((None, None), "vcpu", "its target counts vcpu, not nodes"),
    ],
)
def test_fleet_whose_target_counts_no_nodes_is_left_alone(
    weights: tuple[float | None, ...], unit: str | None, halted: str
) -> None:
    """A target of 8 at a weight of 4 is two nodes: a plan would count on six that never come."""
    capacity: Json = {"TotalTargetCapacity": 8} | ({"TargetCapacityUnitType": unit} if unit else {})
    config = {"Overrides": _weighted(*weights)}
    found = fleet_json(TargetCapacitySpecification=capacity, LaunchTemplateConfigs=[config])
    (fleet,) = decode({"Fleets": [found]}).fleets
    assert (fleet.launches_halted, fleet.removals_halted) == (halted, halted)
    assert fleet.counts_units == bool(halted)


@pytest.mark.parametrize(
    ("weights", "unit", "halted"),
    [
        (("1", None), None, ""),
        (("1", "2"), "units", "its target counts units of WeightedCapacity, not nodes"),
        ((None, None), "memory-mib", "its target counts memory-mib, not nodes"),
    ],
)
def test_group_whose_capacity_counts_no_nodes_is_left_alone(
    weights: tuple[str | None, ...], unit: str | None, halted: str
) -> None:
    """Auto Scaling writes weights as text."""
    policy = {"LaunchTemplate": {"Overrides": _weighted(*weights)}}
    found = group_json(MixedInstancesPolicy=policy, DesiredCapacityType=unit)
    (group,) = decode({"AutoScalingGroups": [found]}).fleets
    assert (group.launches_halted, group.removals_halted) == (halted, halted)
    assert group.counts_units == bool(halted)


@pytest.mark.parametrize(
    ("state", "reason", "known", "by_itself"),
    [
        ("terminated", "Client.InternalError: Client error on launch", None, True),
        ("shutting-down", "Server.InternalError: Internal error on launch", None, True),
        ("terminated", "Instance initiated shutdown",
         "Client.InstanceInitiatedShutdown: Instance initiated shutdown", True),
        ("terminated", "Client.UserInitiatedShutdown: User initiated shutdown", None, False),
        ("stopped", "Client.InstanceInitiatedShutdown: Instance initiated shutdown", None, False),
        ("running", "Client.InternalError: Client error on launch", "", False),
    ],
)  # fmt: skip
def test_why_an_instance_ended_is_known(
    state: str, reason: str, known: str | None, by_itself: bool
) -> None:
    """Instances that end by themselves after their launch would look like any others."""
    code = (known or reason).partition(":")[0] or "Client.InternalError"
    told: Json = {"State": {"Name": state}, "StateReason": {"Code": code, "Message": reason}}
    answer = [reservations(instance_json(**told)), {"Fleets": [fleet_json()]}]
    (instance,) = decode(*answer).instances
    assert instance.ended_because == (reason if known is None else known)
    assert instance.ended_by_itself == by_itself


def test_foreign_instances_are_left_out() -> None:
    """An account has instances that are none of our business."""
    state = decode(
        {"Fleets": [fleet_json()]},
        reservations(
            instance_json("i-other", "fleet-other"),
            instance_json("i-bare", None),
            instance_json("i-tagged", None, Tags=tags(cluster="analytics")),
        ),
    )
    assert [instance.id for instance in state.instances] == ["i-tagged"]


def test_fleet_instances_answer_gives_membership() -> None:
    """A launch template without tags leaves members unmarked."""
    members = {"FleetId": "fleet-1", "ActiveInstances": [{"InstanceId": "i-1"}]}
    state = decode(
        {"Fleets": [fleet_json()]}, reservations(instance_json(fleet_id=None, Tags=[])), members
    )
    assert [(instance.id, instance.fleet_id) for instance in state.instances] == [
        ("i-1", "fleet-1")
    ]


def test_fleet_instances_answer_alone_lists_members_but_proves_nobody_gone() -> None:
    """One fleet's members say nothing about the nodes of the others."""
    members = {
        "FleetId": "fleet-1",
        "ActiveInstances": [{"InstanceId": "i-1", "SpotInstanceRequestId": "sir-1"}],
    }
    state = decode({"Fleets": [fleet_json()]}, members)
    assert [(e.id, e.state, e.lifecycle) for e in state.instances] == [("i-1", "running", "spot")]
    assert state.instances[0].launched_at is None
    assert not state.instances_known


@pytest.mark.parametrize("answer", [{}, {"Reservations": []}, {"Reservations": None}])
def test_empty_answers_prove_nobody_gone(answer: Json) -> None:
    """An empty list must not make nodes look gone."""
    assert not decode({"Fleets": [fleet_json()]}, answer).instances_known


@pytest.mark.parametrize(
    ("fleets", "known"),
    [
        ([fleet_json(FulfilledCapacity=0)], True),
        ([fleet_json(FulfilledCapacity=0), fleet_json("fleet-2", FulfilledCapacity=1)], False),
        ([], False),
    ],
)
def test_no_instance_is_an_answer_of_ec2_where_no_fleet_holds_one(
    fleets: list[Json], known: bool
) -> None:
    """Fleets at zero would leave the proof that this is their cluster undecided for ever."""
    answers: tuple[Json, ...] = ({"Fleets": fleets}, {"Reservations": []})
    asked = decode(*answers, asked=True)
    assert (asked.instances_known, asked.instances_asked) == (known, True)
    read = decode(*answers)
    assert (read.instances_known, read.instances_asked) == (False, False)


def test_history_errors_become_launch_errors_of_their_fleet() -> None:
    """Demand would wait for a fleet that EC2 cannot fill."""
    records = [
        {
            "EventType": kind,
            "Timestamp": STAMP,
            "EventInformation": {"EventSubType": "allLaunchSpecsTemporarilyBlacklisted"},
        }
        for kind in ("error", "service-error", "instanceChange")
    ]
    worded = {
        "EventType": "error",
        "Timestamp": "2026-01-31T12:05:00Z",
        "EventInformation": {"EventDescription": "r5.xlarge: InsufficientInstanceCapacity, sorry"},
    }
    history = {"FleetId": "fleet-1", "HistoryRecords": [worded, *records]}
    (fleet,) = decode({"Fleets": [fleet_json()]}, history).fleets
    assert [event.code for event in fleet.launch_errors] == [
        "allLaunchSpecsTemporarilyBlacklisted",
        "InsufficientInstanceCapacity",
    ]
    assert fleet.launch_errors[0].at == AT


def test_history_tells_when_the_target_was_set_last() -> None:
    """A fleet that launches nothing would be given its time anew with every restart."""
    records = [
        {"EventType": "fleetRequestChange", "Timestamp": stamp}
        for stamp in (STAMP, "2026-01-31T11:00:00Z")
    ]
    launched = {"EventType": "instanceChange", "Timestamp": "2026-01-31T12:30:00Z"}
    history = {"FleetId": "fleet-1", "HistoryRecords": [*records, launched]}
    (fleet,) = decode({"Fleets": [fleet_json()]}, history).fleets
    assert (fleet.changed_at, fleet.launch_errors) == (AT, ())


@pytest.mark.parametrize(("word", "number"), [("$Latest", "5"), ("$Default", "4"), ("3", "3")])
def test_template_version_words_are_resolved(word: str, number: str) -> None:
    """`$Latest` compared with a number would call every node outdated."""
    specification = {"LaunchTemplateName": "nodes", "Version": word}
    config = {"LaunchTemplateSpecification": specification, "Overrides": []}
    versions = [
        {
            "LaunchTemplateId": "lt-1",
            "LaunchTemplateName": "nodes",
            "VersionNumber": each,
            "DefaultVersion": each == 4,
            "LaunchTemplateData": {"InstanceType": f"r{each}.xlarge"},
        }
        for each in (3, 4, 5)
    ]
    (fleet,) = decode(
        {"Fleets": [fleet_json(LaunchTemplateConfigs=[config])]},
        {"LaunchTemplateVersions": versions},
    ).fleets
    assert (fleet.launch_template_id, fleet.launch_template_version) == ("lt-1", number)
    assert fleet.instance_types == (f"r{number}.xlarge",)


def test_unreadable_fleet_is_reported_and_the_rest_goes_on() -> None:
    """One odd entry must not cost the region."""
    broken = fleet_json("fleet-2", TargetCapacitySpecification={"TotalTargetCapacity": -1})
    state = decode({"Fleets": [broken, 7, fleet_json()]})
    assert [fleet.id for fleet in state.fleets] == ["fleet-1"]
    assert state.ignored == (
        Ignored(code="unreadable", kind="Fleet"),
        Ignored(code="unreadable", kind="Fleet", name="fleet-2"),
    )


@pytest.mark.parametrize(
    "fields", [{"State": 5}, {"State": {"Name": "dreaming"}}, {"LaunchTime": "soon"}]
)
def test_unreadable_instance_stands_for_itself(fields: Json) -> None:
    """Without it its node would look gone; with a launch time it might look stuck."""
    state = decode({"Fleets": [fleet_json()]}, reservations(instance_json(**fields)))
    (instance,) = state.instances
    assert (instance.id, instance.state, instance.launched_at) == ("i-1", "running", None)
    assert instance.fleet_id == "fleet-1"
    assert state.ignored[0].name == "i-1"


def test_same_fleet_twice_counts_once() -> None:
    """Two files of one answer would double the capacity."""
    assert len(decode({"Fleets": [fleet_json()]}, {"Fleets": [fleet_json()]}).fleets) == 1


@pytest.mark.parametrize(
    ("found", "named", "ours"),
    [
        (group_json()["Tags"], (), True),
        (tags(KubernetesCluster="analytics", KubernetesRole="worker"), (), True),
        (tags(KubernetesCluster="analytics", Role="minion"), (), True),
        (tags(KubernetesCluster="analytics", Role="bastion"), (), False),
        (tags(KubernetesCluster="other", Role="worker"), (), False),
        ([], ("workers",), True),
        (tags(fleet="primary-small", cluster="analytics"), (), True),
    ],
)
def test_groups_are_found_by_tags_or_by_the_config(
    found: list[Json], named: tuple[str, ...], ours: bool
) -> None:
    """A group that is not ours must never be scaled."""
    state = decode({"AutoScalingGroups": [group_json(Tags=found)]}, groups=frozenset(named))
    assert bool(state.fleets) is ours


def test_group_carries_limits_members_and_errors() -> None:
    """A group is a fleet with sizes of its own and protected members."""
    activity = {
        "AutoScalingGroupName": "workers",
        "StatusCode": "Failed",
        "StartTime": STAMP,
        "Description": "Launching a new EC2 instance",
        "StatusMessage": "Could not launch Spot Instances. UnfulfillableCapacity - sorry",
    }
    ending = {**activity, "Description": "Terminating EC2 instance: i-1"}
    state = decode({"AutoScalingGroups": [group_json()]}, {"Activities": [activity, ending]})
    (fleet,), (instance,) = state.fleets, state.instances
    assert (fleet.provider, fleet.id, fleet.name) == ("asg", "workers", "workers")
    assert (fleet.min_size, fleet.max_size, fleet.target_capacity) == (0, 5, 1)
    assert [event.code for event in fleet.launch_errors] == ["UnfulfillableCapacity"]
    assert (instance.fleet_id, instance.protected) == ("workers", True)


def test_node_group_says_what_a_node_of_an_empty_group_is() -> None:
    """Scaling from zero needs labels, taints and types before there is a node."""
    node_group = {
        "nodegroup": {
            "nodegroupName": "ng",
            "resources": {"autoScalingGroups": [{"name": "workers"}]},
            "labels": {"sector": "primary"},
            "taints": [{"key": "gpu", "value": "yes", "effect": "NO_SCHEDULE"}],
            "instanceTypes": ["g5.xlarge"],
        }
    }
    (fleet,) = decode({"AutoScalingGroups": [group_json()]}, node_group).fleets
    prefix = "k8s.io/cluster-autoscaler/node-template"
    assert fleet.instance_types == ("g5.xlarge",)
    assert fleet.tags[f"{prefix}/label/sector"] == "primary"
    assert fleet.tags[f"{prefix}/taint/gpu"] == "yes:NoSchedule"
