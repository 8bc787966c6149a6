"""What Auto Scaling groups have beyond what every Cloud promises, over HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from reconciler.adapters.aws import SqsNotices
from reconciler.model.errors import Conflict, Refused
from reconciler.model.fleet import Fleet, Instance
from reconciler.sandbox.aws.faults.injected import CapacityLimit
from tests.contract.cloud_worlds import (
    AWAY,
    HOME,
    EmulatedAws,
    GroupsOverHttp,
    emulated_aws,
)
from tests.waiting import until


@pytest.fixture(scope="module")
def emulated() -> Iterator[EmulatedAws]:
    """Auto Scaling's API on loopback."""
    with emulated_aws() as running:
        yield running


@pytest.fixture
def world(emulated: EmulatedAws) -> Iterator[GroupsOverHttp]:
    """An account without groups of the cluster."""
    made = GroupsOverHttp(emulated)
    yield made
    made.close()


def only(world: GroupsOverHttp) -> Fleet:
    """The one group that is seen."""
    (found,) = world.port.observe([HOME, AWAY]).fleets
    return found


def member(world: GroupsOverHttp) -> Instance:
    """The one instance that is seen."""
    (found,) = world.port.observe([HOME]).instances
    return found


AUTOSCALER = "k8s.io/cluster-autoscaler"


def test_groups_are_found_by_the_tags_of_three_programs_and_by_name(world: GroupsOverHttp) -> None:
    """Whoever comes from another autoscaler must not tag every group again."""
    cluster = world.cluster
    world.add_group("by-autoscaler", 0, {f"{AUTOSCALER}/{k}": "" for k in ("enabled", cluster)})
    world.add_group("by-openai", 0, {"KubernetesCluster": cluster, "KubernetesRole": "worker"})
    world.add_group("by-role", 0, {"KubernetesCluster": cluster, "Role": "minion"})
    world.add_group("master", 0, {"KubernetesCluster": cluster, "KubernetesRole": "master"})
    world.add_group("half", 0, {f"{AUTOSCALER}/enabled": "", f"{AUTOSCALER}/other": ""})
    world.add_group("named", 0, {"team": "x"})
    found = {fleet.name for fleet in world.port.observe([HOME]).fleets}
    assert found == {"by-autoscaler", "by-openai", "by-role"}
    world.named = frozenset({"named", "gone"})
    world.advance(130)
    assert {e.name for e in world.port.observe([HOME]).fleets} == found | {"named"}


def test_member_that_is_protected_or_set_aside_is_shown_as_such(world: GroupsOverHttp) -> None:
    """It would be drained and not end, or end while somebody looks for a fault on it."""
    name = world.add_fleet("primary-small", 1)
    world.advance(60)
    ids = [member(world).id]
    change = world.auto_scaling.set_instance_protection
    change(AutoScalingGroupName=name, InstanceIds=ids, ProtectedFromScaleIn=True)
    world.advance(130)
    assert member(world).protected
    assert [instance.protected for instance in world.port.instances(HOME, ids)] == [True]
    change(AutoScalingGroupName=name, InstanceIds=ids, ProtectedFromScaleIn=False)
    world.auto_scaling.enter_standby(
        AutoScalingGroupName=name, InstanceIds=ids, ShouldDecrementDesiredCapacity=True
    )
    world.advance(130)
    assert (member(world).protected, member(world).set_aside) == (True, True)
    assert only(world).target_capacity == 0
    assert [instance.set_aside for instance in world.port.instances(HOME, ids)] == [True]


def test_member_in_standby_fulfils_nothing_and_is_not_ended(world: GroupsOverHttp) -> None:
    """Its place would be bought twice, or the node ended that somebody looks at."""
    name = world.add_fleet("primary-small", 1)
    world.advance(60)
    ids = [member(world).id]
    change: Any = {"AutoScalingGroupName": name, "InstanceIds": ids}
    world.auto_scaling.enter_standby(**change, ShouldDecrementDesiredCapacity=False)
    world.advance(130)
    assert only(world).target_capacity == 1
    assert sorted((e.id in ids, e.counts) for e in world.members(name)) == [
        (False, True),
        (True, False),
    ]
    assert world.port.terminate(HOME, name, ids, lower_target=True) == 1
    assert world.port.terminate(HOME, name, ids, lower_target=False) is None
    world.advance(60)
    assert len(world.members(name)) == 2
    world.auto_scaling.exit_standby(**change)
    world.advance(130)
    assert [instance.counts for instance in world.members(name)] == [True, True]


def test_suspended_processes_and_a_refresh_say_what_the_group_does_not_do(
    world: GroupsOverHttp,
) -> None:
    """Demand would wait for a group that launches nothing; a refresh would be disturbed."""
    name = world.add_fleet("primary-small", 2)
    world.advance(60)
    first = world.members(name)[0].id
    world.auto_scaling.suspend_processes(
        AutoScalingGroupName=name, ScalingProcesses=["Launch", "Terminate"]
    )
    live = world.port.fleet(HOME, name)
    assert live.launches_halted == "its process Launch is suspended"
    assert live.removals_halted == "its group's process Terminate is suspended"
    world.auto_scaling.resume_processes(AutoScalingGroupName=name)
    world.auto_scaling.start_instance_refresh(AutoScalingGroupName=name)
    assert "instance refresh" in world.port.fleet(HOME, name).removals_halted
    with pytest.raises(Conflict, match="instance refresh"):
        world.port.terminate(HOME, name, [first], lower_target=True)
    world.auto_scaling.cancel_instance_refresh(AutoScalingGroupName=name)
    assert world.port.terminate(HOME, name, [first], lower_target=True) == 1


def test_group_at_its_minimum_keeps_the_instance(world: GroupsOverHttp) -> None:
    """Auto Scaling refuses the end rather than to launch another."""
    name = world.add_group("least", 1, {"cluster": world.cluster, "fleet": "a"}, MinSize=1)
    world.advance(60)
    with pytest.raises(Refused, match="min size"):
        world.port.terminate(HOME, name, [member(world).id], lower_target=True)
    assert len(world.members(name)) == 1


def test_more_than_the_maximum_is_refused(world: GroupsOverHttp) -> None:
    """The plan that asked for it was made from another maximum."""
    name = world.add_fleet("primary-small", 0)
    with pytest.raises(Refused, match="above max value 10"):
        world.port.set_target_capacity(HOME, name, 11)


def test_zones_are_balanced_and_one_without_capacity_is_passed_over(world: GroupsOverHttp) -> None:
    """Pods that are spread over zones, or bound to a volume's, need to know where nodes come up."""
    name = world.add_fleet("primary-small", 2)
    world.advance(60)
    zones = sorted(instance.zone for instance in world.members(name))
    assert len(set(zones)) == 2
    world.server.faults.limit(
        CapacityLimit(code="InsufficientInstanceCapacity", zone=zones[0], remaining=0)
    )
    world.port.set_target_capacity(HOME, name, 4)
    world.advance(60)
    assert zones[0] in {instance.zone for instance in world.members(name)}
    assert len(world.members(name)) == 4
    assert world.observed(name).launch_errors == ()


def test_group_keeps_its_instance_types_when_its_owner_changes_its_size(
    world: GroupsOverHttp,
) -> None:
    """Terraform sends only what changed: a new maximum must not lose the instance types."""
    listed = [{"Key": "cluster", "Value": world.cluster}]
    template = world.template(f"{world.cluster}-kept", listed)
    policy = {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "$Latest"},
            "Overrides": [{"InstanceType": "c5.large"}, {"InstanceType": "c5a.large"}],
        },
    }
    tags = {"cluster": world.cluster, "fleet": "kept"}
    name = world.add_group(f"{world.cluster}-kept", 0, tags, MixedInstancesPolicy=policy)
    world.auto_scaling.update_auto_scaling_group(AutoScalingGroupName=name, MaxSize=20)
    assert (only(world).max_size, only(world).instance_types) == (20, ("c5.large", "c5a.large"))
    alone = world.template(f"{world.cluster}-alone", listed, InstanceType="m5.large")
    world.auto_scaling.update_auto_scaling_group(
        AutoScalingGroupName=name, LaunchTemplate={"LaunchTemplateId": alone, "Version": "1"}
    )
    world.advance(130)
    assert only(world).instance_types == ("m5.large",)


def test_node_of_an_empty_group_is_known_by_template_configuration_and_policy(
    world: GroupsOverHttp,
) -> None:
    """A group at zero would never be asked for a node."""
    tags = {"cluster": world.cluster, "fleet": "by-template"}
    world.add_group(f"{world.cluster}-by-template", 0, tags)
    world.auto_scaling.create_launch_configuration(
        LaunchConfigurationName=f"{world.cluster}-old",
        ImageId="ami-12c6146b",
        InstanceType="m5.large",
        SpotPrice="0.05",
    )
    tags = {"cluster": world.cluster, "fleet": "by-configuration"}
    named = {"LaunchConfigurationName": f"{world.cluster}-old"}
    world.add_group(f"{world.cluster}-by-configuration", 0, tags, **named)
    template = world.template(
        f"{world.cluster}-mixed", [{"Key": "cluster", "Value": world.cluster}]
    )
    types = [{"InstanceType": "c5.large"}, {"InstanceType": "c5a.large"}]
    policy = {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "$Latest"},
            "Overrides": types,
        },
        "InstancesDistribution": {
            "OnDemandBaseCapacity": 1,
            "OnDemandPercentageAboveBaseCapacity": 0,
        },
    }
    tags = {"cluster": world.cluster, "fleet": "by-policy"}
    mixed = world.add_group(f"{world.cluster}-mixed", 3, tags, MixedInstancesPolicy=policy)
    listed = [{"Key": "cluster", "Value": world.cluster}]
    plain = world.template(f"{world.cluster}-plain", listed, InstanceType="c6i.large")
    tags = {"cluster": world.cluster, "fleet": "without-market"}
    launched = {"LaunchTemplateId": plain, "Version": "$Latest"}
    world.add_group(f"{world.cluster}-without-market", 0, tags, LaunchTemplate=launched)
    found = {fleet.name: fleet for fleet in world.port.observe([HOME]).fleets}
    assert {name: fleet.lifecycle for name, fleet in found.items()} == {
        "by-template": "spot",
        "by-configuration": "spot",
        "by-policy": "spot",
        "without-market": None,
    }
    assert {name: fleet.instance_types for name, fleet in found.items()} == {
        "by-template": ("r5.xlarge",),
        "by-configuration": ("m5.large",),
        "by-policy": ("c5.large", "c5a.large"),
        "without-market": ("c6i.large",),
    }
    assert found["by-template"].launch_template_version == "1"
    world.advance(60)
    lifecycles = sorted(instance.lifecycle for instance in world.members(mixed))
    assert lifecycles == ["on-demand", "spot", "spot"]


def node_group(world: GroupsOverHttp, name: str) -> str:
    """A managed node group of EKS; returns the name of its Auto Scaling group."""
    eks: Any = boto3.Session(region_name=HOME).client("eks")
    role = "arn:aws:iam::123456789012:role/node"
    subnets = world.subnets
    eks.create_cluster(name=world.cluster, roleArn=role, resourcesVpcConfig={"subnetIds": subnets})
    made = eks.create_nodegroup(
        clusterName=world.cluster,
        nodegroupName=name,
        nodeRole=role,
        subnets=subnets,
        instanceTypes=["g5.xlarge"],
        capacityType="SPOT",
        scalingConfig={"minSize": 0, "maxSize": 5, "desiredSize": 0},
        labels={"team": "data"},
        taints=[{"key": "dedicated", "value": "data", "effect": "NO_SCHEDULE"}],
    )["nodegroup"]
    eks.close()
    return str(made["resources"]["autoScalingGroups"][0]["name"])


def asked_of_eks(world: GroupsOverHttp) -> int:
    """How often EKS was asked about a node group of the cluster."""
    asked = world.server.calls.calls(service="eks", action="GET")
    return sum(world.cluster in aws_call.parameters["Path"] for aws_call in asked)


def test_node_of_an_empty_managed_group_is_read_from_eks_once_an_hour(
    world: GroupsOverHttp,
) -> None:
    """EKS tags such a group with no label: it would never scale from zero for who selects one."""
    name = node_group(world, "data")
    tags = {"eks:cluster-name": world.cluster, "eks:nodegroup-name": "data"}
    found = {f"{AUTOSCALER}/{key}": "" for key in ("enabled", world.cluster)}
    world.add_group(name, 0, {**tags, **found})
    before = asked_of_eks(world)
    template = f"{AUTOSCALER}/node-template"
    expected = {
        f"{template}/label/team": "data",
        f"{template}/label/eks.amazonaws.com/nodegroup": "data",
        f"{template}/label/eks.amazonaws.com/capacityType": "SPOT",
        f"{template}/taint/dedicated": "data:NoSchedule",
    }
    for _ in range(3):
        group = only(world)
        assert group.instance_types == ("g5.xlarge",)
        assert expected.items() <= group.tags.items()
        world.advance(130)
    assert asked_of_eks(world) == before + 1
    world.advance(3600)
    assert only(world).tags[f"{template}/label/team"] == "data"
    assert asked_of_eks(world) == before + 2


def test_eks_tells_of_a_managed_group_also_while_it_launches(world: GroupsOverHttp) -> None:
    """Its first node has not joined: pods that do not tolerate its taint would be given to it."""
    name = node_group(world, "fresh")
    tags = {"eks:cluster-name": world.cluster, "eks:nodegroup-name": "fresh"}
    found = {f"{AUTOSCALER}/{key}": "" for key in ("enabled", world.cluster)}
    group = world.add_group(name, 1, {**tags, **found})
    world.advance(60)
    assert world.members(group)
    assert only(world).tags[f"{AUTOSCALER}/node-template/taint/dedicated"] == "data:NoSchedule"


def test_managed_group_that_eks_does_not_tell_of_is_seen_all_the_same(
    world: GroupsOverHttp,
) -> None:
    """Without the right to DescribeNodegroup no group would be scaled at all."""
    tags = {"eks:cluster-name": world.cluster, "eks:nodegroup-name": "gone"}
    found = {f"{AUTOSCALER}/{key}": "" for key in ("enabled", world.cluster)}
    world.add_group(f"{world.cluster}-gone", 0, {**tags, **found})
    assert only(world).instance_types == ("r5.xlarge",)


def lifecycle_queue(world: GroupsOverHttp) -> Any:
    """A queue that gets the lifecycle actions of the account, as terraform/reconciler makes it."""
    session = boto3.Session(region_name=HOME)
    sqs: Any = session.client("sqs")
    events: Any = session.client("events")
    url = sqs.create_queue(QueueName=f"{world.cluster}-hooks")["QueueUrl"]
    facts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    pattern = {
        "source": ["aws.autoscaling"],
        "detail-type": ["EC2 Instance-terminate Lifecycle Action"],
    }
    events.put_rule(Name=f"{world.cluster}-hooks", EventPattern=json.dumps(pattern))
    targets = [{"Id": "queue", "Arn": facts["QueueArn"]}]
    events.put_targets(Rule=f"{world.cluster}-hooks", Targets=targets)
    events.close()
    sqs.close()
    return url


def test_instance_held_by_a_hook_leaves_and_goes_on_when_its_node_is_empty(
    world: GroupsOverHttp,
) -> None:
    """For an hour it would look like a node that takes pods, or its pods would end with it."""
    name = world.add_fleet("primary-small", 2)
    world.advance(60)
    url = lifecycle_queue(world)
    world.auto_scaling.put_lifecycle_hook(
        AutoScalingGroupName=name,
        LifecycleHookName="drain",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        HeartbeatTimeout=3600,
    )
    first = world.members(name)[0].id
    world.port.terminate(HOME, name, [first], lower_target=True)
    world.advance(60)
    (held,) = world.port.instances(HOME, [first])
    assert (held.state, held.leaving, held.gone, held.counts) == ("running", True, False, False)
    assert [instance.leaving for instance in world.port.observe([HOME]).instances].count(True) == 1
    queue = SqsNotices(
        lambda: url,
        world.clients,
        home=HOME,
        may_receive=lambda: True,
        arrived=lambda _: None,
        troubled=lambda _: None,
    )
    try:
        queue.settle([])
        until(lambda: "no notice came", queue.held)
        (notice,) = queue.held()
        assert (notice.kind, notice.instance) == ("lifecycle-action", first)
        assert notice.hook is not None
        assert (notice.hook.region, notice.hook.group, notice.hook.name) == (HOME, name, "drain")
        queue.settle([notice.message], [notice.message])

        def completed() -> bool:
            found = world.server.calls.calls(action="CompleteLifecycleAction")
            return any(e.parameters["AutoScalingGroupName"] == name for e in found)

        until(lambda: "the action is not completed", completed)
    finally:
        queue.close()
    world.advance(60)
    assert [instance.state for instance in world.port.instances(HOME, [first])] == ["terminated"]
