"""The policy of Auto Scaling groups on an AWS that enforces it: enough, for its own groups only."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from reconciler.adapters.aws import AutoScalingCloud, Clients
from reconciler.adapters.aws.lifecycle_hooks import complete_action, record_heartbeat
from reconciler.install.iam import policy
from reconciler.model.errors import Forbidden, Refused
from reconciler.model.ids import FleetId, Region
from reconciler.model.notices import LifecycleAction
from reconciler.sandbox.aws.bootstrap import bootstrap_account
from reconciler.sandbox.aws.clock import ManualClock
from reconciler.sandbox.aws.front.control_client import ControlClient
from reconciler.sandbox.aws.server import AwsServer

pytestmark = pytest.mark.sandbox
REGION = Region("us-west-2")
USER = "reconciler"
AUTOSCALER = "k8s.io/cluster-autoscaler"
TAGS = {
    "tagged": {"cluster": "analytics", "fleet": "a"},
    "autoscaler": {f"{AUTOSCALER}/enabled": "true", f"{AUTOSCALER}/analytics": "owned"},
    "openai": {"KubernetesCluster": "analytics", "Role": "minion"},
}
OTHERS = {
    "other": {"cluster": "other", "fleet": "a"},
    "others": {f"{AUTOSCALER}/enabled": "true", f"{AUTOSCALER}/other": "owned"},
}


class Account:
    """Groups of several owners, and one user with the shipped policy of groups."""

    def __init__(self, server: AwsServer, clock: ManualClock, patch: pytest.MonkeyPatch) -> None:
        session: Any = boto3.Session("sandbox", "sandbox", region_name=REGION)
        self.clock, self.control = clock, ControlClient(server.url)
        ids = bootstrap_account(server.url, REGION)
        self.groups: Any = session.client("autoscaling", endpoint_url=server.url)
        ec2 = session.client("ec2", endpoint_url=server.url)
        template = ec2.create_launch_template(
            LaunchTemplateName="t",
            LaunchTemplateData={"ImageId": ids.ami, "InstanceType": "m5.large"},
        )["LaunchTemplate"]["LaunchTemplateId"]
        ec2.close()
        for name, tags in {**TAGS, **OTHERS}.items():
            pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
            self.groups.create_auto_scaling_group(
                AutoScalingGroupName=name,
                MinSize=0,
                MaxSize=5,
                DesiredCapacity=0,
                LaunchTemplate={"LaunchTemplateId": template, "Version": "$Latest"},
                VPCZoneIdentifier=",".join(ids.subnet_ids.values()),
                Tags=[{**pair, "PropagateAtLaunch": True} for pair in pairs],
            )
            self.groups.put_lifecycle_hook(
                AutoScalingGroupName=name,
                LifecycleHookName="drain",
                LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
            )
        iam = session.client("iam", endpoint_url=server.url)
        iam.create_user(UserName=USER)
        key = iam.create_access_key(UserName=USER)["AccessKey"]
        values = {"cluster": "analytics", "regions": [REGION], "groups": "true"}
        document = policy("capacity-loop", values)
        iam.put_user_policy(UserName=USER, PolicyName="it", PolicyDocument=document)
        iam.close()
        patch.setenv("AWS_ENDPOINT_URL", server.url)
        patch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
        patch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
        self.control.enforce_iam(enforced=True)
        self.clients = Clients()
        self.named = frozenset({*TAGS, *OTHERS})
        self.cloud = AutoScalingCloud(
            "analytics", lambda: self.named, self.clients, clock.now, lambda: 0.0
        )

    def refused(self) -> set[str]:
        """What was asked for and not allowed."""
        calls = self.control.calls(service="autoscaling", user_agent="fleet-reconciler")
        return {call["action"] for call in calls if call["status"] == 403}


@pytest.fixture
def account() -> Iterator[Account]:
    """An AWS of its own, for which the whole of it is closed afterwards."""
    clock = ManualClock()
    with AwsServer(clock=clock) as server, pytest.MonkeyPatch.context() as patch:
        made = Account(server, clock, patch)
        yield made
        made.cloud.close()
        made.groups.close()


@pytest.mark.parametrize("name", TAGS)
def test_everything_is_done_with_groups_of_the_cluster(account: Account, name: str) -> None:
    """A right too few is an outage, and for each way to tag groups."""
    group = FleetId(name)
    account.cloud.observe([REGION])
    account.cloud.set_target_capacity(REGION, group, 2)
    account.clock.advance(60)
    account.cloud.fleet(REGION, group)
    members = [e.id for e in account.cloud.observe([REGION]).instances if e.fleet_id == group]
    assert len(members) == 2
    assert account.cloud.terminate(REGION, group, members[:1], lower_target=True) == 1
    hook = LifecycleAction(region=REGION, group=name, name="drain", token="0" * 36)
    complete_action(account.clients, hook)
    with pytest.raises(Refused):  # nothing waits by that token; that it may be asked is what counts
        record_heartbeat(account.clients, hook)
    assert account.refused() == set()


@pytest.mark.parametrize("name", OTHERS)
def test_groups_of_other_clusters_are_out_of_reach(account: Account, name: str) -> None:
    """Even a config that names another cluster's group cannot change it."""
    with pytest.raises(Forbidden):
        account.cloud.set_target_capacity(REGION, FleetId(name), 2)
    assert account.refused() == {"SetDesiredCapacity"}


def test_policy_has_no_placeholder_left() -> None:
    """A key with a placeholder in it is a condition that nothing fulfils."""
    values = {"cluster": "analytics", "regions": [REGION], "groups": "true"}
    text = policy("capacity-loop", values)
    assert "${" not in text
    assert f"aws:ResourceTag/{AUTOSCALER}/analytics" in text
    assert "autoscaling" not in policy("capacity-loop", {"cluster": "a", "regions": [REGION]})
    assert json.loads(text)
