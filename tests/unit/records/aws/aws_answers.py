"""Fleets, instances and groups as the AWS CLI prints them."""

from typing import Any

STAMP = "2026-01-31T12:00:00Z"
Json = dict[str, Any]


def tags(**pairs: str) -> list[Json]:
    """Tags as EC2 writes them."""
    return [{"Key": key, "Value": value} for key, value in pairs.items()]


def fleet_json(fleet_id: str = "fleet-1", **fields: Any) -> Json:
    """A fleet of ours."""
    return {
        "FleetId": fleet_id,
        "FleetState": "active",
        "Type": "maintain",
        "TargetCapacitySpecification": {"TotalTargetCapacity": 3},
        "FulfilledCapacity": 2.0,
        "CreateTime": STAMP,
        "Tags": tags(fleet="primary-small", cluster="analytics"),
        **fields,
    }


def instance_json(
    instance_id: str = "i-1", fleet_id: str | None = "fleet-1", **fields: Any
) -> Json:
    """A running spot instance of the fleet."""
    member = [{"Key": "aws:ec2:fleet-id", "Value": fleet_id}] if fleet_id else []
    return {
        "InstanceId": instance_id,
        "State": {"Name": "running"},
        "InstanceType": "r5.xlarge",
        "Placement": {"AvailabilityZone": "us-west-2a"},
        "LaunchTime": STAMP,
        "InstanceLifecycle": "spot",
        "Tags": [*member, {"Key": "aws:ec2launchtemplate:version", "Value": "4"}],
        **fields,
    }


def reservations(*instances: Any) -> Json:
    """A describe-instances answer."""
    return {"Reservations": [{"Instances": list(instances)}]}


def group_json(name: str = "workers", **fields: Any) -> Json:
    """An Auto Scaling group that Cluster Autoscaler would discover."""
    return {
        "AutoScalingGroupName": name,
        "DesiredCapacity": 1,
        "MinSize": 0,
        "MaxSize": 5,
        "CreatedTime": STAMP,
        "Instances": [
            {
                "InstanceId": "i-1",
                "LifecycleState": "InService",
                "ProtectedFromScaleIn": True,
                "AvailabilityZone": "us-west-2a",
            }
        ],
        "Tags": [
            {"Key": "k8s.io/cluster-autoscaler/enabled", "Value": "true"},
            {"Key": "k8s.io/cluster-autoscaler/analytics", "Value": "owned"},
        ],
        **fields,
    }
