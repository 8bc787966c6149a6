"""Finds what a new account has, for configs that must name real ids."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3

from reconciler.model.errors import NotFound

_IMAGES: Any = [
    {"Name": "name", "Values": ["al2023-ami-2023.*"]},
    {"Name": "architecture", "Values": ["x86_64"]},
]
"""The images of Amazon that are read: to serialize all 1,300 would take seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountIds:
    """Ids of one Region that a sector config can name."""

    account_id: str
    region: str
    vpc_id: str
    subnet_ids: Mapping[str, str]
    """By zone, sorted."""
    security_group_id: str
    ami: str


def bootstrap_account(url: str, region: str = "us-west-2") -> AccountIds:
    """Look up the default VPC, its subnets and security group, and an AMI, through the API.

    Args:
        url: Endpoint of the emulated AWS; never a real one, the credentials are dummies.
        region: Where to look.

    Raises:
        NotFound: The account is not as a fresh one is.
    """
    session = boto3.Session("sandbox", "sandbox", region_name=region)
    ec2 = session.client("ec2", endpoint_url=url)
    sts = session.client("sts", endpoint_url=url)
    try:
        vpc_id = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"][0][
            "VpcId"
        ]
        subnets = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])["Subnets"]
        groups = ec2.describe_security_groups(
            Filters=[
                {"Name": "vpc-id", "Values": [vpc_id]},
                {"Name": "group-name", "Values": ["default"]},
            ]
        )["SecurityGroups"]
        images = ec2.describe_images(Owners=["amazon"], Filters=_IMAGES)["Images"]
        return AccountIds(
            account_id=sts.get_caller_identity()["Account"],
            region=region,
            vpc_id=vpc_id,
            subnet_ids=dict(sorted((s["AvailabilityZone"], s["SubnetId"]) for s in subnets)),
            security_group_id=groups[0]["GroupId"],
            ami=min(image["ImageId"] for image in images),
        )
    except (IndexError, ValueError) as error:
        raise NotFound(url, f"no default VPC, security group or AMI in {region}") from error
    finally:
        ec2.close()
        sts.close()
