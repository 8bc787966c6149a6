"""Groups and instances of an account without AWS, and the adapter over it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from botocore.exceptions import ClientError

from reconciler.adapters.aws.auto_scaling import AutoScalingCloud
from reconciler.adapters.aws.clients import Clients
from reconciler.model.ids import Region

HOME = Region("us-west-2")
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
GROUPS, EACH = 500, 10


class Account:
    """Groups and instances of an account, in pages, with a count of the calls."""

    def __init__(self) -> None:
        self.calls = Counter[str]()
        self.members = {
            f"group-{n:03}": [f"i-{n:03}{m:02}" for m in range(EACH)] for n in range(GROUPS)
        }
        self.desired = dict.fromkeys(self.members, EACH)
        self.version = 1
        self.leaving = ""
        """The instance that its group ends, while a hook holds it."""
        self.launching = ""
        self.refreshing: set[str] = set()
        """Groups with an instance refresh under way."""
        self.launched_from: dict[str, dict[str, Any]] = {}
        """What is known of how instances were launched."""
        self.pool_state = ""
        """In which state warm pools keep their instances; empty: there are none."""
        self.pools = {"group-000"}
        """Groups that have a warm pool."""
        self.launched_at: datetime | None = None
        """When EC2 launched the instances."""
        self.activities: list[dict[str, Any]] = []
        """Scaling activities, the newest first."""
        self.pages_max = 5
        """The limit of pages of activities: more are throttled."""
        self.throttled: set[str] = set()
        """Calls that Auto Scaling and EC2 throttle."""
        self.down: set[str] = set()
        """Calls that Auto Scaling does not answer."""
        self.denied: set[str] = set()
        """Calls to which the role has no right."""

    def pages(self, operation: str, arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Every page of an answer, each a call."""
        if operation == "describe_launch_templates":
            self.count(operation)
            names = arguments["LaunchTemplateIds"]
            yield {"LaunchTemplates": [self.template(name) for name in names]}
            return
        size = arguments["PaginationConfig"]["PageSize"]
        if operation == "describe_auto_scaling_groups":
            names = arguments.get("AutoScalingGroupNames") or list(self.members)
            key, found = "AutoScalingGroups", [self.group(name) for name in names]
        else:
            (wanted,) = arguments["Filters"]
            key = "Reservations"
            found = [
                {"Instances": [self.instance(name, i) for i in self.members[name]]}
                for name in wanted["Values"]
            ]
            size //= EACH
        for start in range(0, max(1, len(found)), size):
            self.calls[operation] += 1
            yield {key: found[start : start + size]}

    def count(self, operation: str) -> None:
        """Count a call, or refuse it."""
        self.calls[operation] += 1
        if operation in self.throttled:
            raise ClientError({"Error": {"Code": "Throttling", "Message": "slow"}}, operation)
        if operation in self.denied:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)
        if operation in self.down:
            raise ClientError({"Error": {"Code": "ServiceUnavailable", "Message": ""}}, operation)

    def group(self, name: str) -> dict[str, Any]:
        """One group as AWS shows it."""
        return {
            "AutoScalingGroupName": name,
            "DesiredCapacity": self.desired[name],
            **self.warm_pool(name),
            "MinSize": 0,
            "MaxSize": 100,
            "Tags": [{"Key": "cluster", "Value": "analytics"}, {"Key": "fleet", "Value": name}],
            "MixedInstancesPolicy": {
                "LaunchTemplate": {
                    "LaunchTemplateSpecification": {
                        "LaunchTemplateId": f"lt-{name}",
                        "Version": "$Latest",
                    },
                    "Overrides": [{"InstanceType": "r5.xlarge"}],
                }
            },
            "Instances": [
                {
                    "InstanceId": i,
                    "LifecycleState": self.lifecycle_state(i),
                    **self.launched_from.get(i, {}),
                }
                for i in self.members[name]
            ],
        }

    def warm_pool(self, name: str) -> dict[str, Any]:
        """The warm pool of a group, as far as its answer shows it."""
        has_one = self.pool_state and name in self.pools
        return {"WarmPoolConfiguration": {"PoolState": self.pool_state}} if has_one else {}

    def lifecycle_state(self, instance_id: str) -> str:
        """The state that its group has it in."""
        states = {self.leaving: "Terminating:Wait", self.launching: "Pending"}
        return states.get(instance_id, "InService")

    def instance(self, name: str, instance_id: str) -> dict[str, Any]:
        """One instance as EC2 shows it."""
        return {
            "InstanceId": instance_id,
            "State": {"Name": "running"},
            "InstanceType": "r5.xlarge",
            "LaunchTime": self.launched_at,
            "Tags": [{"Key": "aws:autoscaling:groupName", "Value": name}],
        }

    def template(self, name: str) -> dict[str, Any]:
        """One launch template as EC2 shows it."""
        return {
            "LaunchTemplateId": name,
            "LatestVersionNumber": self.version,
            "DefaultVersionNumber": 1,
        }

    def get_paginator(self, operation: str) -> Any:
        """boto3's way to ask for pages."""
        account = self

        class Paginator:
            def paginate(self, **arguments: Any) -> Iterator[dict[str, Any]]:
                return account.pages(operation, arguments)

        return Paginator()

    def describe_launch_template_versions(self, **arguments: Any) -> dict[str, Any]:
        """One version, whose instance type follows from its number."""
        self.count("describe_launch_template_versions")
        (wanted,) = arguments["Versions"]
        number = self.version if wanted == "$Latest" else int(wanted)
        version = {
            "LaunchTemplateId": arguments["LaunchTemplateId"],
            "VersionNumber": number,
            "LaunchTemplateData": {"InstanceType": f"r{number}.xlarge"},
        }
        return {"LaunchTemplateVersions": [version]}

    def describe_instance_refreshes(self, **arguments: Any) -> dict[str, Any]:
        """The refresh of a group, if one is under way."""
        self.count("describe_instance_refreshes")
        name = arguments["AutoScalingGroupName"]
        assert name in self.members
        refresh = {
            "InstanceRefreshId": "refresh-1",
            "AutoScalingGroupName": name,
            "Status": "InProgress",
        }
        return {"InstanceRefreshes": [refresh] if name in self.refreshing else []}

    def describe_scaling_activities(self, **arguments: Any) -> dict[str, Any]:
        """A page of activities of one group, or of all."""
        self.count("describe_scaling_activities")
        name = arguments.get("AutoScalingGroupName")
        found = [a for a in self.activities if name in {None, a["AutoScalingGroupName"]}]
        start = int(arguments.get("NextToken", "0"))
        if start >= arguments["MaxRecords"] * self.pages_max:
            raise ClientError(
                {"Error": {"Code": "Throttling", "Message": "slow"}}, "describe_scaling_activities"
            )
        end = start + arguments["MaxRecords"]
        more = {"NextToken": str(end)} if end < len(found) else {}
        return {"Activities": found[start:end], **more}

    def autoscaling(self, _region: Region) -> "Account":
        """The client of Auto Scaling."""
        return self

    ec2 = autoscaling

    def server_time(self) -> None:
        """It has no clock."""

    def close(self) -> None:
        """It has no connections."""


class Watched:
    """The adapter over such an account, and its clock."""

    def __init__(self) -> None:
        self.account = Account()
        self.seconds = 0.0
        self.cloud = AutoScalingCloud(
            "analytics",
            frozenset,
            cast("Clients", self.account),
            lambda: NOW + timedelta(seconds=self.seconds),
            lambda: self.seconds,
        )

    def cycles(self, seconds: int, every: int = 10) -> None:
        """Observe every so many seconds."""
        for _ in range(0, seconds, every):
            self.seconds += every
            state = self.cloud.observe([HOME])
            assert len(state.fleets) == GROUPS

    def halted(self, seconds: float) -> list[str]:
        """The groups of which no instance may be ended, observed after so many seconds."""
        self.seconds += seconds
        return [fleet.name for fleet in self.cloud.observe([HOME]).fleets if fleet.removals_halted]

    def versions(self) -> set[str]:
        """The launch template versions of the groups' next nodes."""
        return {fleet.launch_template_version for fleet in self.cloud.observe([HOME]).fleets}
