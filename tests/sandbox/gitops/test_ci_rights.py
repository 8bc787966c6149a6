"""The pipelines' IAM policies on an AWS that enforces them: enough, and nothing that is unused."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from botocore.exceptions import ClientError

from reconciler.install.iam import PolicyName
from reconciler.sandbox.aws.iam import Subject, is_allowed
from tests.sandbox.gitops.enforced import TEAM, Enforced, actions_of, shipped, without
from tests.sandbox.gitops.pipeline_on_aws import (
    BUCKET,
    KEY,
    Pipeline,
    config,
    drain,
    drain_group,
    fleet,
    group,
    members,
    new_pipeline,
)
from tests.terraform.needs import needs_provider, real_terraform
from tests.waiting import until

pytestmark = real_terraform
ONLY_ON_AWS = {"ec2:RunInstances", "iam:PassRole"}
"""What EC2 asks for on top when a fleet is made, and the emulated one does not.

Source: EC2 user guide, "EC2 Fleet prerequisites", and IAM user guide, "PassRole", read 2026-08.
"""
IN_TROUBLE = {"ec2:DescribeFleetHistory", "autoscaling:DescribeScalingActivities"}
"""Asked for while a fleet or group is below its target, which depends on the moment."""
OF_SOME_GROUPS = {
    "autoscaling:DescribeInstanceRefreshes",
    "autoscaling:DescribeLaunchConfigurations",
}
"""Asked for only while a group looks as if it were being refreshed, and of groups that were
made with a launch configuration; the module's groups have a launch template.
"""
GROUP = f"{TEAM}-large"


def _deploy(pipeline: Pipeline, account: Enforced, text: str) -> dict[str, set[str]]:
    """The whole way of a change, each stage with its own rights; what each of them used."""
    pipeline.push(text)
    used: dict[str, set[str]] = {}
    stages: dict[PolicyName, Callable[[], CompletedProcess[str]]] = {
        "ci-plan": pipeline.plan,
        "ci-apply": pipeline.apply,
    }
    for stage, run in stages.items():
        account.grant(shipped(stage, groups=True))
        account.server.control.calls.clear()
        done = run()
        assert done.returncode == 0, done.stderr
        used[stage] = account.used()
    account.free()
    return used


def looked_up(account: Enforced, text: str) -> str:
    """The config with an image by alias, and subnets and security group by tags that they have."""
    tags = {"cluster": f"{TEAM}-cluster"}
    ec2, eks = account.client("ec2"), account.client("eks")
    ids = [account.ids.security_group_id, *account.ids.subnet_ids.values()]
    ec2.create_tags(Resources=ids, Tags=[{"Key": k, "Value": v} for k, v in tags.items()])
    if not eks.list_clusters()["clusters"]:
        eks.create_cluster(
            name=tags["cluster"],
            version="1.34",
            roleArn="arn:aws:iam::123456789012:role/cluster",
            resourcesVpcConfig={"subnetIds": ids[1:3]},
        )
    ec2.close()
    eks.close()
    text = re.sub(r"ami: \S+", "ami: al2023@latest", text)
    text = re.sub(r"security_group_id: .*", f"security_group_tags: {tags}", text)
    return re.sub(r"private_subnet_ids: .*", f"subnet_tags: {tags}", text)


def with_group(text: str, maximum: int) -> str:
    """The config with an Auto Scaling group in its sector."""
    entry = f"{{size: large, provider: asg, auto_scaling_group: {GROUP}, max_capacity: {maximum}"
    return f"{text}    - {entry}, initial_node_count: 1}}\n"


@pytest.mark.nightly
@needs_provider
def test_pipeline_makes_changes_and_ends_fleets_and_groups_with_exactly_its_rights(
    enforced: Enforced, tmp_path: Path
) -> None:
    """A pipeline that is refused in the middle of an apply leaves half a change behind."""
    pipeline = new_pipeline(tmp_path, enforced)
    text = looked_up(enforced, config(enforced, team=TEAM, sizes="small medium"))
    used = [_deploy(pipeline, enforced, with_group(text, maximum=5))]
    changed = text.replace("{owner: OWNER}", "{team: data}")
    # Only other instance types make the provider modify a fleet.
    changed = changed.replace("{size: small,", "{size: small, instance_types: [r5.xlarge],")
    used.append(_deploy(pipeline, enforced, with_group(changed, maximum=6)))
    until("an instance of the group", lambda: members(enforced, GROUP), seconds=30)
    drain(enforced, fleet(enforced, TEAM)["FleetId"])
    drain_group(enforced, GROUP)
    approved = "allow_destroy: [primary-small, primary-large]\n"
    fewer = config(enforced, team=TEAM, sizes="medium", extra=approved)
    used.append(_deploy(pipeline, enforced, looked_up(enforced, fewer)))
    assert group(enforced, GROUP) is None
    stages: dict[PolicyName, set[str]] = {
        "ci-plan": IN_TROUBLE | OF_SOME_GROUPS,
        "ci-apply": IN_TROUBLE | OF_SOME_GROUPS | ONLY_ON_AWS,
    }
    for stage, optional in stages.items():
        granted = actions_of(shipped(stage, groups=True), "ec2:", "autoscaling:")
        asked = set[str]().union(*(each[stage] for each in used))
        assert asked | optional & granted == granted


STATE: dict[str, Callable[[Any], object]] = {
    "s3:ListBucket": lambda s3: s3.list_objects_v2(Bucket=BUCKET),
    "s3:GetObject": lambda s3: s3.get_object(Bucket=BUCKET, Key=KEY),
    "s3:PutObject": lambda s3: s3.put_object(Bucket=BUCKET, Key=f"{KEY}.tflock", Body=b"lock"),
    "s3:DeleteObject": lambda s3: s3.delete_object(Bucket=BUCKET, Key=f"{KEY}.tflock"),
}


READS = ("s3:ListBucket", "s3:GetObject")


@pytest.mark.parametrize(("name", "needed"), [("ci-plan", READS), ("ci-apply", tuple(STATE))])
def test_state_needs_each_of_its_rights(
    enforced: Enforced, name: PolicyName, needed: tuple[str, ...]
) -> None:
    """What Terraform's S3 backend does with state and lock: with each right, and without it."""
    s3 = enforced.client("s3")
    s3.put_object(Bucket=BUCKET, Key=KEY, Body=b"{}")
    s3.close()
    assert actions_of(shipped(name), "s3:") == set(needed)
    user = enforced.user("s3")
    for action, call in STATE.items():
        if action in needed:
            enforced.grant(shipped(name))
            call(user)
        enforced.grant(without(shipped(name), action))
        with pytest.raises(ClientError, match=r"AccessDenied|Forbidden|403"):
            call(user)
    user.close()


def test_plan_changes_nothing_and_apply_nothing_of_others(enforced: Enforced) -> None:
    """Pull requests run the plan's role: whoever opens one must not reach EC2 with it."""
    ec2 = enforced.client("ec2")
    foreign = ec2.create_launch_template(
        LaunchTemplateName="foreign",
        LaunchTemplateData={"ImageId": enforced.ids.ami},
        TagSpecifications=[
            {"ResourceType": "launch-template", "Tags": [{"Key": "cluster", "Value": "other"}]}
        ],
    )["LaunchTemplate"]["LaunchTemplateId"]
    ec2.close()
    of_aws = actions_of(shipped("ci-plan", groups=True), "ec2:", "autoscaling:")
    assert not [each for each in of_aws if ":Describe" not in each]
    enforced.grant(shipped("ci-apply"))
    user = enforced.user("ec2")
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        user.delete_launch_template(LaunchTemplateId=foreign)
    own = [{"Key": "cluster", "Value": f"{TEAM}-cluster"}]
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        user.create_tags(Resources=[foreign], Tags=own)
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        user.create_launch_template(
            LaunchTemplateName="untagged", LaunchTemplateData={"ImageId": enforced.ids.ami}
        )
    user.close()


def test_plan_cannot_take_the_lock_of_an_apply_away(enforced: Enforced) -> None:
    """Two applies at once would write one state: whoever opens a pull request has this role."""
    s3 = enforced.client("s3")
    s3.put_object(Bucket=BUCKET, Key=f"{KEY}.tflock", Body=b"of an apply")
    enforced.grant(shipped("ci-plan"))
    user = enforced.user("s3")
    changes: list[Callable[[], object]] = [
        lambda: user.delete_object(Bucket=BUCKET, Key=f"{KEY}.tflock"),
        lambda: user.put_object(Bucket=BUCKET, Key=f"{KEY}.tflock", Body=b"mine"),
        lambda: user.put_object(Bucket=BUCKET, Key=KEY, Body=b"{}"),
    ]
    for change in changes:
        with pytest.raises(ClientError, match=r"AccessDenied|Forbidden|403"):
            change()
    user.close()
    enforced.free()
    assert s3.get_object(Bucket=BUCKET, Key=f"{KEY}.tflock")["Body"].read() == b"of an apply"
    s3.close()


def test_apply_launches_from_its_own_templates_only(enforced: Enforced) -> None:
    """The role that makes fleets must be no way to an instance of any image with any role."""
    ec2 = enforced.client("ec2")
    templates = {}
    for cluster in (f"{TEAM}-cluster", "other"):
        tags = [{"Key": "cluster", "Value": cluster}]
        templates[cluster] = ec2.create_launch_template(
            LaunchTemplateName=cluster,
            LaunchTemplateData={"ImageId": enforced.ids.ami, "InstanceType": "r5.xlarge"},
            TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
        )["LaunchTemplate"]["LaunchTemplateId"]
    enforced.grant(shipped("ci-apply"))
    user = enforced.user("ec2")
    ways: list[dict[str, Any]] = [
        {"ImageId": enforced.ids.ami, "InstanceType": "r5.xlarge"},
        {"LaunchTemplate": {"LaunchTemplateId": templates["other"]}},
    ]
    for way in ways:
        with pytest.raises(ClientError, match="UnauthorizedOperation"):
            user.run_instances(MinCount=1, MaxCount=1, **way)
    own = {"LaunchTemplateId": templates[f"{TEAM}-cluster"]}
    assert user.run_instances(MinCount=1, MaxCount=1, LaunchTemplate=own)["Instances"]
    user.close()
    ec2.close()


def test_apply_cannot_hand_its_own_to_another_cluster(enforced: Enforced) -> None:
    """With another cluster's tag its instances would be launched, and ended, by that cluster."""
    ec2 = enforced.client("ec2")
    own = [{"Key": "cluster", "Value": f"{TEAM}-cluster"}]
    template = ec2.create_launch_template(
        LaunchTemplateName="own",
        LaunchTemplateData={"ImageId": enforced.ids.ami},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": own}],
    )["LaunchTemplate"]["LaunchTemplateId"]
    ec2.close()
    enforced.grant(shipped("ci-apply"))
    user = enforced.user("ec2")
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        user.create_tags(Resources=[template], Tags=[{"Key": "cluster", "Value": "other"}])
    team = {"Key": "team", "Value": "data"}
    user.create_tags(Resources=[template], Tags=[*own, team])
    # Without its tag neither this cluster's pipeline nor its capacity loop could touch it again.
    ways: list[dict[str, Any]] = [
        {"Tags": own},
        {"Tags": [{"Key": "cluster"}, team]},
        {},  # all tags
    ]
    for way in ways:
        with pytest.raises(ClientError, match="UnauthorizedOperation"):
            user.delete_tags(Resources=[template], **way)
    user.delete_tags(Resources=[template], Tags=[team])
    user.close()


def test_apply_modifies_its_own_fleets_with_any_image_and_subnet() -> None:
    """EC2 may authorise a change of types on what the fleet is made from, which has no tag."""
    place = "arn:aws:ec2:us-west-2:123456789012"
    own, other = (
        {"aws:ResourceTag/cluster": each} for each in (f"{TEAM}-cluster", "other-cluster")
    )
    subnet = Subject(arn=f"{place}:subnet/subnet-1")
    cases = [
        (Subject(arn=f"{place}:fleet/fleet-1", context=own), subnet, True),
        (Subject(arn=f"{place}:fleet/fleet-1", context=other), subnet, False),
        (
            Subject(arn=f"{place}:fleet/fleet-1", context=own),
            Subject(arn=f"{place}:launch-template/lt-1", context=other),
            False,
        ),
    ]
    for fleet_named, also, allowed in cases:
        found = is_allowed([shipped("ci-apply")], "ec2:ModifyFleet", [fleet_named, also])
        assert found == allowed, (fleet_named, also)


def test_import_describes_fleets_without_rights_on_groups(
    enforced: Enforced, tmp_path: Path
) -> None:
    """Whoever has fleets alone gave nobody rights on groups, and must not be sent for them."""
    ec2 = enforced.client("ec2")
    tags = {"cluster": "analytics", "sector": "primary", "size": "small"}
    template = ec2.create_launch_template(
        LaunchTemplateName="one", LaunchTemplateData={"ImageId": enforced.ids.ami}
    )["LaunchTemplate"]["LaunchTemplateId"]
    subnet = next(iter(enforced.ids.subnet_ids.values()))
    ec2.create_fleet(
        Type="maintain",
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "$Latest"},
                "Overrides": [{"InstanceType": "r5.xlarge", "SubnetId": subnet}],
            }
        ],
        TargetCapacitySpecification={
            "TotalTargetCapacity": 0,
            "DefaultTargetCapacityType": "spot",
        },
        TagSpecifications=[
            {
                "ResourceType": "fleet",
                "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
            }
        ],
    )
    ec2.close()
    described = ("Fleets", "LaunchTemplates", "LaunchTemplateVersions", "Subnets")
    reads = [f"ec2:Describe{each}" for each in described]
    statement = {"Effect": "Allow", "Action": reads, "Resource": "*"}
    enforced.grant({"Version": "2012-10-17", "Statement": [statement]})
    done = new_pipeline(tmp_path, enforced).reconciler(
        *("import", "--cluster-name", "analytics", "--out", str(tmp_path / "out")),
        *("--output", "json"),
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["fleets"] == ["primary-small"]
    assert "Auto Scaling groups" in answer["notes"][0]
