"""The sandbox's AWS account as the demo uses it: state bucket, fleets by their tags, calls."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """A fleet's target was raised."""

    at: datetime
    fleet: str
    sector: str
    to_capacity: int


@dataclass(frozen=True, slots=True)
class Account:
    """One region of the emulated AWS."""

    sandbox: Sandbox
    region: str

    def _client(self, service: str) -> Any:
        session: Any = boto3.Session("sandbox", "sandbox", region_name=self.region)
        return session.client(service, endpoint_url=self.sandbox.aws_url)

    def make_state_bucket(self) -> None:
        """The bucket that the config's backend names."""
        client = self._client("s3")
        client.create_bucket(
            Bucket=STATE_BUCKET,
            CreateBucketConfiguration={"LocationConstraint": self.region},
        )
        client.close()

    def config_for(self, example: str) -> str:
        """The example config with this account's ids and S3 endpoint."""
        ids: AccountIds = bootstrap_account(self.sandbox.aws_url, self.region)
        text = example.replace(_EXAMPLE_IDS["ami"], ids.ami)
        text = text.replace(_EXAMPLE_IDS["security group"], ids.security_group_id)
        subnets = zip(_EXAMPLE_SUBNETS, ids.subnet_ids.values(), strict=False)
        for example_id, own in subnets:
            text = text.replace(example_id, own)
        old = f"region: {self.region}}}\nsectors:"
        new = f'region: {self.region}, endpoint: "{self.sandbox.aws_url}"}}\nsectors:'
        return text.replace(old, new)

    def fleets(self, cluster: str) -> Mapping[str, Mapping[str, Any]]:
        """The cluster's live fleets by their `fleet` tag."""
        client = self._client("ec2")
        answer = client.describe_fleets(Filters=[{"Name": "tag:cluster", "Values": [cluster]}])
        client.close()
        found: dict[str, Mapping[str, Any]] = {}
        for fleet in answer["Fleets"]:
            tags = {tag["Key"]: tag["Value"] for tag in fleet.get("Tags", ())}
            if fleet["FleetState"] in {"active", "modifying", "submitted"}:
                found[tags.get("fleet", fleet["FleetId"])] = {**fleet, "tags": tags}
        return found

    def targets(self, cluster: str) -> dict[str, int]:
        """Target capacity by fleet."""
        return {
            name: int(fleet["TargetCapacitySpecification"]["TotalTargetCapacity"])
            for name, fleet in self.fleets(cluster).items()
        }

    def raises(self, cluster: str, started_with: Mapping[str, int]) -> list[Raise]:
        """Every accepted ModifyFleet that raised a target, from the log of calls."""
        fleets = self.fleets(cluster)
        by_id = {str(fleet["FleetId"]): name for name, fleet in fleets.items()}
        targets = dict(started_with)
        found: list[Raise] = []
        for call in self.sandbox.control.calls(service="ec2", action="ModifyFleet"):
            name = by_id.get(call["parameters"].get("FleetId", ""))
            wanted = call["parameters"].get("TargetCapacitySpecification.TotalTargetCapacity")
            if call["status"] != 200 or name is None or wanted is None:
                continue
            if int(wanted) > targets.get(name, 0):
                found.append(
                    Raise(
                        at=datetime.fromisoformat(call["at"]),
                        fleet=name,
                        sector=fleets[name]["tags"].get("sector", ""),
                        to_capacity=int(wanted),
                    )
                )
            targets[name] = int(wanted)
        return found
