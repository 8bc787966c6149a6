"""EC2 Fleets as the eks_fleet module makes them, directly through boto3."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import boto3

from reconciler.sandbox.aws.bootstrap import bootstrap_account

REGION = "us-west-2"
CLUSTER = "analytics"
SIZES = {
    "small": ("r5.xlarge", "m5.2xlarge"),
    "medium": ("r5.2xlarge", "m5.4xlarge"),
    "large": ("r5.4xlarge", "m5.8xlarge"),
}


def create_fleet(
    url: str,
    size: str,
    target: int = 0,
    cluster: str = CLUSTER,
    *,
    sector: str = "primary",
    zone: str = "",
    taints: Sequence[Mapping[str, str]] = (),
    spot: bool = True,
) -> str:
    """A maintain fleet `<sector>-<size>` whose instances join as its nodes; returns its id."""
    ids = bootstrap_account(url, REGION)
    session: Any = boto3.Session("sandbox", "sandbox", region_name=REGION)
    ec2 = session.client("ec2", endpoint_url=url)
    fleet = f"{sector}-{size}-{zone}" if zone else f"{sector}-{size}"
    tags = {
        "Name": f"{cluster}-{fleet}",
        "Spot": str(spot).lower(),
        "cluster": cluster,
        "fleet": fleet,
        "kind": "memory",
        f"kubernetes.io/cluster/{cluster}": "owned",
        "sector": sector,
        "size": size,
    }
    pairs = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
    try:
        template = ec2.create_launch_template(
            LaunchTemplateName=f"{cluster}-{fleet}",
            LaunchTemplateData={
                "ImageId": ids.ami,
                "UserData": user_data(cluster, fleet, size, sector, taints, spot=spot),
                "SecurityGroupIds": [ids.security_group_id],
                "TagSpecifications": [{"ResourceType": "instance", "Tags": pairs}],
            },
        )["LaunchTemplate"]["LaunchTemplateId"]
        overrides = [
            {"InstanceType": name, "SubnetId": subnet}
            for name in SIZES[size]
            for where, subnet in ids.subnet_ids.items()
            if zone in {"", where}
        ]
        answer = ec2.create_fleet(
            Type="maintain",
            ExcessCapacityTerminationPolicy="no-termination",
            ReplaceUnhealthyInstances=False,
            TerminateInstancesWithExpiration=False,
            SpotOptions={"AllocationStrategy": "lowestPrice"},
            LaunchTemplateConfigs=[
                {
                    "LaunchTemplateSpecification": {
                        "LaunchTemplateId": template,
                        "Version": "$Latest",
                    },
                    "Overrides": overrides,
                }
            ],
            TargetCapacitySpecification={
                "TotalTargetCapacity": target,
                "DefaultTargetCapacityType": "spot" if spot else "on-demand",
            },
            TagSpecifications=[{"ResourceType": "fleet", "Tags": pairs}],
        )
        return str(answer["FleetId"])
    finally:
        ec2.close()


def create_group(
    url: str,
    size: str,
    cluster: str = CLUSTER,
    *,
    sector: str = "primary",
    tags: Mapping[str, str] | None = None,
) -> str:
    """An Auto Scaling group of spot nodes `<cluster>-<sector>-<size>`, empty; returns its name.

    Args:
        url: Of the sandbox's AWS.
        size: One of `SIZES`.
        cluster: The cluster's name.
        sector: Its nodes'.
        tags: Of the group in the place of those that name cluster and fleet.
    """
    ids = bootstrap_account(url, REGION)
    session: Any = boto3.Session("sandbox", "sandbox", region_name=REGION)
    ec2 = session.client("ec2", endpoint_url=url)
    groups = session.client("autoscaling", endpoint_url=url)
    fleet = f"{sector}-{size}"
    name = f"{cluster}-{fleet}"
    owned = {f"kubernetes.io/cluster/{cluster}": "owned"}
    named = {"cluster": cluster, "fleet": fleet} if tags is None else tags
    pairs = [{"Key": key, "Value": value} for key, value in (owned | dict(named)).items()]
    try:
        template = ec2.create_launch_template(
            LaunchTemplateName=name,
            LaunchTemplateData={
                "ImageId": ids.ami,
                "UserData": user_data(cluster, fleet, size, sector, ()),
                "SecurityGroupIds": [ids.security_group_id],
            },
        )["LaunchTemplate"]["LaunchTemplateId"]
        groups.create_auto_scaling_group(
            AutoScalingGroupName=name,
            MinSize=0,
            MaxSize=20,
            DesiredCapacity=0,
            VPCZoneIdentifier=",".join(ids.subnet_ids.values()),
            Tags=[{**pair, "PropagateAtLaunch": True} for pair in pairs],
            MixedInstancesPolicy={
                "LaunchTemplate": {
                    "LaunchTemplateSpecification": {
                        "LaunchTemplateId": template,
                        "Version": "$Latest",
                    },
                    "Overrides": [{"InstanceType": each} for each in SIZES[size]],
                },
                "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 0},
            },
        )
        return name
    finally:
        ec2.close()
        groups.close()


def change_template(url: str, fleet: str, data: str | None = None, cluster: str = CLUSTER) -> str:
    """Give a fleet's launch template a new version, which its next instances are launched from.

    Args:
        url: Of the sandbox's AWS.
        fleet: Its name.
        data: User data, base64; None: that of the version before.
        cluster: The cluster's name.

    Returns:
        The number of the version.
    """
    session: Any = boto3.Session("sandbox", "sandbox", region_name=REGION)
    ec2 = session.client("ec2", endpoint_url=url)
    name = f"{cluster}-{fleet}"
    try:
        found = ec2.describe_launch_template_versions(LaunchTemplateName=name, Versions=["$Latest"])
        (latest,) = found["LaunchTemplateVersions"]
        made = ec2.create_launch_template_version(
            LaunchTemplateName=name,
            LaunchTemplateData=latest["LaunchTemplateData"] | ({"UserData": data} if data else {}),
        )
        return str(made["LaunchTemplateVersion"]["VersionNumber"])
    finally:
        ec2.close()


def user_data(
    cluster: str,
    fleet: str,
    size: str,
    sector: str,
    taints: Sequence[Mapping[str, str]],
    *,
    spot: bool = True,
) -> str:
    """AL2023 user data, base64, in the shape that the eks_fleet module renders."""
    labels = {
        "sector": sector,
        "fleet": fleet,
        "size": size,
        "pool_size": size,
        "kind": "memory",
        "lifecycle": "Ec2Spot" if spot else "OnDemand",
    }
    flag = "--node-labels=" + ",".join(f"{key}={value}" for key, value in labels.items())
    config = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": cluster,
                "apiServerEndpoint": "https://cluster.test",
                "certificateAuthority": "Y2E=",
                "cidr": "172.20.0.0/16",
            },
            "kubelet": {
                "config": {"registerWithTaints": list(taints)} if taints else {},
                "flags": [flag],
            },
        },
    }
    text = (
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="BOUNDARY"\n\n'
        "--BOUNDARY\nContent-Type: application/node.eks.aws\n\n"
        f"{json.dumps(config)}\n--BOUNDARY--\n"
    )
    return base64.b64encode(text.encode()).decode()
