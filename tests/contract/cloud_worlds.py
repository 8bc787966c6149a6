"""Clouds that the Cloud port's contract is checked on: in memory, and EC2's API over HTTP."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import boto3
import pytest

from reconciler.adapters.aws import AutoScalingCloud, Clients, Ec2FleetCloud
from reconciler.adapters.memory import Delays, FleetShape, MemoryCloud, MemoryWorld
from reconciler.model.fleet import Fleet, Instance, Provider
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.ports.cloud import Cloud
from reconciler.sandbox.aws.bootstrap import AccountIds, bootstrap_account
from reconciler.sandbox.aws.clock import ManualClock
from reconciler.sandbox.aws.faults.injected import CapacityLimit
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays as AwsDelays

CLUSTER = "analytics"
HOME = Region("us-west-2")
AWAY = Region("us-east-1")
_NUMBERS = count(1)


class CloudWorld(ABC):
    """What a test arranges behind the port; time is virtual."""

    port: Cloud
    cluster = CLUSTER
    provider: Provider = "ec2-fleet"

    @abstractmethod
    def add_fleet(self, name: str, target: int) -> FleetId:
        """A maintain fleet of ours in the home region."""

    @abstractmethod
    def advance(self, seconds: float) -> None:
        """Let time pass."""

    @abstractmethod
    def refuse_launches(self, fleet_id: FleetId, code: str) -> None:
        """EC2 has no capacity from now on."""

    @abstractmethod
    def protect_from_termination(self, instance_id: InstanceId, *, protected: bool = True) -> None:
        """Somebody sets `DisableApiTermination`, or takes it back."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

    def members(self, fleet_id: FleetId) -> list[Instance]:
        """The fleet's instances that still count, by observation."""
        found = self.port.observe([HOME]).instances
        return [
            instance for instance in found if instance.fleet_id == fleet_id and not instance.gone
        ]

    def observed(self, fleet_id: FleetId) -> Fleet:
        """The fleet, by observation."""
        return next(fleet for fleet in self.port.observe([HOME]).fleets if fleet.id == fleet_id)


class InMemory(CloudWorld):
    """The twin that simulations run on."""

    def __init__(self, provider: Provider = "ec2-fleet") -> None:
        self.provider = provider
        self._world = MemoryWorld(CLUSTER, Delays(launch=20, terminate=10, modify=5))
        self.port = MemoryCloud(self._world, provider)

    def add_fleet(self, name: str, target: int) -> FleetId:
        """See CloudWorld."""
        shape = FleetShape(name=name, region=HOME, provider=self.provider, max_size=10)
        return self._world.add_fleet(shape, target)

    def advance(self, seconds: float) -> None:
        """See CloudWorld."""
        self._world.advance(seconds)

    def refuse_launches(self, fleet_id: FleetId, code: str) -> None:
        """See CloudWorld."""
        self._world.refuse_launches(fleet_id, code)

    def protect_from_termination(self, instance_id: InstanceId, *, protected: bool = True) -> None:
        """See CloudWorld."""
        self._world.protect_from_termination(instance_id, protected=protected)

    def close(self) -> None:
        """See CloudWorld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedAws:
    """A running server, which several worlds share: starting one takes seconds."""

    server: AwsServer
    clock: ManualClock
    ids: AccountIds


@contextmanager
def emulated_aws() -> Iterator[EmulatedAws]:
    """Start the emulated AWS and point boto3 at it."""
    clock = ManualClock()
    delays = AwsDelays(launch_seconds=20, terminate_seconds=10, modify_seconds=5, retry_seconds=60)
    with AwsServer(clock=clock, delays=delays) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", server.url)
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield EmulatedAws(server=server, clock=clock, ids=bootstrap_account(server.url))


class OverHttp(CloudWorld):
    """The real adapter, boto3 and all, against the emulated AWS."""

    port: Ec2FleetCloud | AutoScalingCloud

    def __init__(self, emulated: EmulatedAws) -> None:
        self.server, self._clock = emulated.server, emulated.clock
        self.cluster = f"analytics-{next(_NUMBERS)}"
        self._ids = emulated.ids
        self._ec2: Any = boto3.Session(region_name=HOME).client("ec2")
        self.clients = Clients()
        self.port = Ec2FleetCloud(self.cluster, self.clients, self._clock.now)

    def template(self, name: str, tags: list[dict[str, str]], **data: Any) -> str:
        """Create a launch template whose instances get these tags; returns its id."""
        tagged = {"TagSpecifications": [{"ResourceType": "instance", "Tags": tags}]}
        made = self._ec2.create_launch_template(
            LaunchTemplateName=name,
            LaunchTemplateData={"ImageId": self._ids.ami, **tagged, **data},
        )
        return str(made["LaunchTemplate"]["LaunchTemplateId"])

    def add_fleet(
        self, name: str, target: int, cluster: str | None = None, kind: str = "maintain"
    ) -> FleetId:
        """See CloudWorld; of another cluster on request."""
        cluster = cluster or self.cluster
        tags = [{"Key": "fleet", "Value": name}, {"Key": "cluster", "Value": cluster}]
        template = self.template(f"{cluster}-{name}", tags)
        subnet = next(iter(self._ids.subnet_ids.values()))
        config = {
            "LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "$Latest"},
            "Overrides": [{"InstanceType": "r5.xlarge", "SubnetId": subnet}],
        }
        answer = self._ec2.create_fleet(
            Type=kind,
            LaunchTemplateConfigs=[config],
            TargetCapacitySpecification={
                "TotalTargetCapacity": target,
                "DefaultTargetCapacityType": "spot",
            },
            TagSpecifications=[{"ResourceType": "fleet", "Tags": tags}],
        )
        return FleetId(answer["FleetId"])

    def advance(self, seconds: float) -> None:
        """See CloudWorld; what follows from the last call is done before, in the next one."""
        self._ec2.describe_regions(RegionNames=[HOME])
        self._clock.advance(seconds)

    def refuse_launches(self, fleet_id: FleetId, code: str) -> None:
        """See CloudWorld."""
        self.server.faults.limit(CapacityLimit(code=code))

    def protect_from_termination(self, instance_id: InstanceId, *, protected: bool = True) -> None:
        """See CloudWorld."""
        self._ec2.modify_instance_attribute(
            InstanceId=instance_id, DisableApiTermination={"Value": protected}
        )

    def close(self) -> None:
        """See CloudWorld."""
        self.clients.close()
        self._ec2.close()
        self.server.faults.clear()


class GroupsOverHttp(OverHttp):
    """The adapter of Auto Scaling groups against the emulated AWS."""

    provider: Provider = "asg"

    def __init__(self, emulated: EmulatedAws) -> None:
        super().__init__(emulated)
        self.named: frozenset[str] = frozenset()
        self.seconds = 0.0
        """The adapter's own clock."""
        self.auto_scaling: Any = boto3.Session(region_name=HOME).client("autoscaling")
        self.port = AutoScalingCloud(
            self.cluster,
            lambda: self.named,
            self.clients,
            self._clock.now,
            lambda: self.seconds,
        )

    @property
    def subnets(self) -> list[str]:
        """One of each zone of the home region."""
        return list(self._ids.subnet_ids.values())

    def add_fleet(
        self, name: str, target: int, cluster: str | None = None, kind: str = "maintain"
    ) -> FleetId:
        """See CloudWorld; a group of another cluster on request."""
        cluster = cluster or self.cluster
        del kind
        return self.add_group(f"{cluster}-{name}", target, {"fleet": name, "cluster": cluster})

    def add_group(
        self, name: str, target: int, tags: Mapping[str, str], **arguments: Any
    ) -> FleetId:
        """Create a group of spot nodes with these tags, which its instances get too."""
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        made = {
            "MinSize": 0,
            "MaxSize": 10,
            "VPCZoneIdentifier": ",".join(self._ids.subnet_ids.values()),
            **arguments,
        }
        launches_by = {"MixedInstancesPolicy", "LaunchConfigurationName", "LaunchTemplate"}
        if not launches_by & arguments.keys():
            market = {"MarketType": "spot"}
            template = self.template(
                name, listed, InstanceType="r5.xlarge", InstanceMarketOptions=market
            )
            made["LaunchTemplate"] = {"LaunchTemplateId": template, "Version": "$Latest"}
        self.auto_scaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            DesiredCapacity=target,
            Tags=[{**each, "PropagateAtLaunch": True} for each in listed],
            **made,
        )
        return FleetId(name)

    def advance(self, seconds: float) -> None:
        """See CloudWorld; for the adapter as well."""
        super().advance(seconds)
        self.seconds += seconds

    def close(self) -> None:
        """See CloudWorld."""
        for auto_scaling_group in self.auto_scaling.describe_auto_scaling_groups()[
            "AutoScalingGroups"
        ]:
            name = auto_scaling_group["AutoScalingGroupName"]
            self.auto_scaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
        self.auto_scaling.close()
        super().close()


UNKNOWN = InstanceId("i-0123456789abcdef0")
