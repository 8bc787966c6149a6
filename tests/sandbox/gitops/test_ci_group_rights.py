"""What the pipelines' policies let them do with Auto Scaling groups, by calls of its API."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.sandbox.gitops.enforced import TEAM, Enforced, shipped

pytestmark = pytest.mark.sandbox


def test_apply_makes_and_changes_groups_of_its_cluster_only(enforced: Enforced) -> None:
    """A pull request's role changes none; an apply hands none of its own to another cluster."""
    auto_scaling, ec2 = enforced.client("autoscaling"), enforced.client("ec2")
    template = ec2.create_launch_template(
        LaunchTemplateName="any",
        LaunchTemplateData={"ImageId": enforced.ids.ami, "InstanceType": "r5.xlarge"},
    )["LaunchTemplate"]["LaunchTemplateId"]
    ec2.close()
    sized = {
        "MinSize": 0,
        "MaxSize": 1,
        "LaunchTemplate": {"LaunchTemplateId": template},
        "VPCZoneIdentifier": next(iter(enforced.ids.subnet_ids.values())),
    }

    def tag(name: str, key: str, value: str | None = None) -> dict[str, Any]:
        stated = {} if value is None else {"Value": value, "PropagateAtLaunch": False}
        return {"ResourceId": name, "ResourceType": "auto-scaling-group", "Key": key, **stated}

    for cluster in (f"{TEAM}-cluster", "other"):
        auto_scaling.create_auto_scaling_group(
            AutoScalingGroupName=cluster, Tags=[tag(cluster, "cluster", cluster)], **sized
        )
    own, user = f"{TEAM}-cluster", enforced.user("autoscaling")
    refused: list[Callable[[], object]] = [
        lambda: user.create_auto_scaling_group(AutoScalingGroupName="untagged", **sized),
        lambda: user.create_auto_scaling_group(
            AutoScalingGroupName="new", Tags=[tag("new", "cluster", "other")], **sized
        ),
        lambda: user.update_auto_scaling_group(AutoScalingGroupName="other", MaxSize=2),
        lambda: user.delete_auto_scaling_group(AutoScalingGroupName="other"),
        lambda: user.suspend_processes(AutoScalingGroupName="other"),
        lambda: user.create_or_update_tags(Tags=[tag("other", "cluster", own)]),
        lambda: user.create_or_update_tags(Tags=[tag(own, "cluster", "other")]),
        lambda: user.delete_tags(Tags=[tag(own, "cluster")]),
    ]
    allowed: list[Callable[[], object]] = [
        lambda: user.create_auto_scaling_group(
            AutoScalingGroupName="made", Tags=[tag("made", "cluster", own)], **sized
        ),
        lambda: user.update_auto_scaling_group(AutoScalingGroupName=own, MaxSize=2),
        lambda: user.create_or_update_tags(Tags=[tag(own, "team", "data")]),
        lambda: user.delete_tags(Tags=[tag(own, "team")]),
        lambda: user.suspend_processes(AutoScalingGroupName=own, ScalingProcesses=["AZRebalance"]),
        lambda: user.delete_auto_scaling_group(AutoScalingGroupName=own),
    ]
    enforced.grant(shipped("ci-plan", groups=True))
    for call in (*refused, *allowed):
        with pytest.raises(ClientError, match="AccessDenied"):
            call()
    enforced.grant(shipped("ci-apply", groups=True))
    for call in refused:
        with pytest.raises(ClientError, match="AccessDenied"):
            call()
    for call in allowed:
        call()
    user.close()
    auto_scaling.close()
