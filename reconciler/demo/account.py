"""The sandbox's AWS account for the demo: state bucket, fleets by their tags, calls."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

import boto3

from reconciler.sandbox.aws.bootstrap import AccountIds, bootstrap_account
from reconciler.sandbox.stack import Sandbox

STATE_BUCKET = "analytics-terraform-state"
_EXAMPLE_IDS = {
    "ami": "ami-0123456789abcdef0",
    "security group": "sg-0123456789abcdef0",
}
_EXAMPLE_SUBNETS = ("subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb")


_SIZING = (
    ("ec2", "ModifyFleet", "FleetId", "TargetCapacitySpecification.TotalTargetCapacity"),
    ("autoscaling", "SetDesiredCapacity", "AutoScalingGroupName", "DesiredCapacity"),
)
"""The services and calls that set a target, with the parameters for the fleet and the number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """A raise of a fleet's target."""

    at: datetime
    fleet: str
    sector: str
    to_capacity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFleet:
    """An EC2 Fleet or an Auto Scaling group."""

    id: str
    """A group's name."""
    target: int
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Account:
    """One region of the emulated AWS."""

    sandbox: Sandbox
    region: str

    def _client(self, service: str) -> Any:
        session: Any = boto3.Session("sandbox", "sandbox", region_name=self.region)
        return session.client(service, endpoint_url=self.sandbox.aws_url)

    def make_state_bucket(self) -> None:
        """Create the bucket that the config's backend names."""
        client = self._client("s3")
        client.create_bucket(
            Bucket=STATE_BUCKET,
            CreateBucketConfiguration={"LocationConstraint": self.region},
        )
        client.close()

    def config_for(self, example: str) -> str:
        """Return the example config with this account's ids and S3 endpoint."""
        ids: AccountIds = bootstrap_account(self.sandbox.aws_url, self.region)
        text = example.replace(_EXAMPLE_IDS["ami"], ids.ami)
        text = text.replace(_EXAMPLE_IDS["security group"], ids.security_group_id)
        subnets = zip(_EXAMPLE_SUBNETS, ids.subnet_ids.values(), strict=False)
        for example_id, own in subnets:
            text = text.replace(example_id, own)
        old = f"region: {self.region}}}\nsectors:"
        new = f'region: {self.region}, endpoint: "{self.sandbox.aws_url}"}}\nsectors:'
        return text.replace(old, new)

    def fleets(self, cluster: str) -> Mapping[str, LiveFleet]:
        """Return the cluster's live fleets and groups by their `fleet` tag."""
        filters = [{"Name": "tag:cluster", "Values": [cluster]}]
        ec2, auto_scaling = self._client("ec2"), self._client("autoscaling")
        fleets = ec2.describe_fleets(Filters=filters)["Fleets"]
        groups = auto_scaling.describe_auto_scaling_groups(Filters=filters)["AutoScalingGroups"]
        ec2.close()
        auto_scaling.close()
        live_fleets = [
            _live(fleet["FleetId"], fleet["TargetCapacitySpecification"], fleet.get("Tags", ()))
            for fleet in fleets
            if fleet["FleetState"] in {"active", "modifying", "submitted"}
        ]
        live_fleets += [
            _live(group["AutoScalingGroupName"], group, group["Tags"]) for group in groups
        ]
        return {
            live_fleet.tags.get("fleet", live_fleet.id): live_fleet for live_fleet in live_fleets
        }

    def targets(self, cluster: str) -> dict[str, int]:
        """Return the target capacity by fleet."""
        return {name: fleet.target for name, fleet in self.fleets(cluster).items()}

    def raises(self, cluster: str, started_with: Mapping[str, int]) -> list[Raise]:
        """Return every accepted call that raised a target, from the log of calls."""
        fleets = self.fleets(cluster)
        by_id = {fleet.id: name for name, fleet in fleets.items()}
        targets = dict(started_with)
        found: list[Raise] = []
        for at, id_, wanted in sorted(self._asked()):
            name = by_id.get(id_)
            if name is None:
                continue
            if wanted > targets.get(name, 0):
                sector = fleets[name].tags.get("sector", "")
                found.append(Raise(at=at, fleet=name, sector=sector, to_capacity=wanted))
            targets[name] = wanted
        return found

    def _asked(self) -> Iterator[tuple[datetime, str, int]]:
        """Yield when which fleet or group got which target."""
        for service, action, id_key, key in _SIZING:
            for call in self.sandbox.control.calls(service=service, action=action):
                wanted = call["parameters"].get(key)
                if call["status"] == HTTPStatus.OK and wanted is not None:
                    at = datetime.fromisoformat(call["at"])
                    yield at, call["parameters"].get(id_key, ""), int(wanted)


def _live(id_: str, sized: Mapping[str, Any], tags: Iterable[Mapping[str, str]]) -> LiveFleet:
    """Return a fleet or group as the demo shows it."""
    target = sized.get("TotalTargetCapacity", sized.get("DesiredCapacity", 0))
    return LiveFleet(id=id_, target=int(target), tags={tag["Key"]: tag["Value"] for tag in tags})
