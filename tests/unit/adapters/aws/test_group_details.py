"""What is known of an empty group's nodes, while AWS does not answer."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.group_details import Group, GroupDetails
from reconciler.model.ids import Region

WEST = Region("us-west-2")
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
GROUP = {
    "AutoScalingGroupName": "plain",
    "LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "1"},
}


class Ec2:
    """One launch template; calls fail with a code while there is one."""

    def __init__(self) -> None:
        self.code = ""
        self.calls = 0
        self.seconds = 0.0
        self.details = GroupDetails(lambda: NOW, lambda: self.seconds)

    def ec2(self, _region: Region) -> "Ec2":
        """The client."""
        return self

    def describe_launch_template_versions(self, **_arguments: Any) -> dict[str, Any]:
        """The version's instance type."""
        self.calls += 1
        if self.code:
            error = {"Error": {"Code": self.code, "Message": "no"}}
            raise ClientError(error, "DescribeLaunchTemplateVersions")  # type: ignore[arg-type]
        data = {"InstanceType": "m5.large"}
        version = {"LaunchTemplateId": "lt-1", "VersionNumber": 1, "LaunchTemplateData": data}
        return {"LaunchTemplateVersions": [version]}

    def eks(self, _region: Region) -> "Ec2":
        """The client."""
        return self

    def describe_nodegroup(self, **arguments: Any) -> dict[str, Any]:
        """The node group with its name alone."""
        self.calls += 1
        return {"nodegroup": {"nodegroupName": arguments["nodegroupName"]}}

    def asked(self, seconds: float, groups: Sequence[Group] = (GROUP,)) -> bool:
        """Whether the nodes are known after so many more seconds."""
        self.seconds += seconds
        return bool(self.details.answers(cast("Clients", self), WEST, groups))


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "InternalError"])
def test_question_without_an_answer_is_asked_again_soon(code: str) -> None:
    """One throttled second at the start would keep an empty group closed for ten minutes."""
    ec2 = Ec2()
    ec2.code = code
    assert [ec2.asked(0), ec2.asked(1), ec2.asked(2), ec2.asked(2)] == [False] * 4
    assert ec2.calls == 2
    ec2.code = ""
    assert ec2.asked(3)


def test_refused_question_is_not_asked_again_for_long() -> None:
    """A missing right would cost a call with every cycle."""
    ec2 = Ec2()
    ec2.code = "UnauthorizedOperation"
    assert [ec2.asked(0), ec2.asked(500)] == [False, False]
    assert ec2.calls == 1
    ec2.code = ""
    assert ec2.asked(101)


def test_others_are_not_asked_in_the_same_read_as_one_without_an_answer() -> None:
    """Twenty calls, each with its time limit and retries, would hold up every cycle."""
    ec2 = Ec2()
    template = {"LaunchTemplateId": "lt-1"}
    groups = [{**GROUP, "LaunchTemplate": {**template, "Version": str(n)}} for n in range(1, 6)]
    ec2.code = "InternalError"
    assert not ec2.asked(0, groups)
    assert ec2.calls == 1
    ec2.code = ""
    assert ec2.asked(3, groups)
    assert ec2.calls == 6


def test_node_groups_without_nodes_are_asked_about_first() -> None:
    """After a start a plan would buy from an empty group of which EKS has yet to tell the taint."""

    def node_group(number: int, nodes: int) -> Group:
        tags = {"eks:cluster-name": "analytics", "eks:nodegroup-name": f"ng-{number}"}
        return {
            "AutoScalingGroupName": f"eks-ng-{number}",
            "Instances": [{"InstanceId": f"i-{n}"} for n in range(nodes)],
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        }

    ec2 = Ec2()
    groups = [*(node_group(n, 3) for n in range(30)), node_group(30, 0)]
    answers = ec2.details.answers(cast("Clients", ec2), WEST, groups)
    assert ec2.calls == 20
    assert "ng-30" in {answer["nodegroup"]["nodegroupName"] for answer in answers}
