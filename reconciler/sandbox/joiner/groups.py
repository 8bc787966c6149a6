"""Instances of Auto Scaling groups, which the control API of the emulated AWS does not tell of."""

from collections.abc import Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from reconciler.model.errors import Unavailable
from reconciler.sandbox.control_api import CLIENT
from reconciler.sandbox.joiner.node_object import InstanceFacts

_GROUP_TAG = "aws:autoscaling:groupName"


class GroupInstances:
    """Asks EC2 itself; every question is an AWS call that the emulator's log shows.

    Args:
        aws_url: Endpoint of the emulated AWS.
        region: Where the groups are.
    """

    def __init__(self, aws_url: str, region: str) -> None:
        self._region = region
        self._ec2: Any = boto3.client(
            "ec2",
            endpoint_url=aws_url,
            region_name=region,
            aws_access_key_id="sandbox",
            aws_secret_access_key="sandbox",  # noqa: S106 - opens nothing: the emulator takes any
            config=Config(user_agent_extra=CLIENT),
        )
        self._user_data: dict[str, str] = {}

    def close(self) -> None:
        """Give the connections back."""
        self._ec2.close()

    def list(self) -> list[InstanceFacts]:
        """All instances of groups, ended ones included as long as EC2 tells of them.

        Raises:
            Unavailable: EC2 did not answer.
        """
        try:
            filters = [{"Name": "tag-key", "Values": [_GROUP_TAG]}]
            pages = self._ec2.get_paginator("describe_instances").paginate(Filters=filters)
            return [
                self._facts(instance)
                for page in pages
                for reservation in page["Reservations"]
                for instance in reservation["Instances"]
            ]
        except (BotoCoreError, ClientError) as error:
            raise Unavailable("sandbox aws", str(error)) from error

    def _facts(self, instance: Mapping[str, Any]) -> InstanceFacts:
        state = instance["State"]["Name"]
        return InstanceFacts(
            instance_id=instance["InstanceId"],
            state=state,
            instance_type=instance["InstanceType"],
            lifecycle=instance.get("InstanceLifecycle", "on-demand"),
            region=self._region,
            zone=instance["Placement"]["AvailabilityZone"],
            private_ip=instance.get("PrivateIpAddress", ""),
            private_dns_name=instance.get("PrivateDnsName", ""),
            image_id=instance.get("ImageId", ""),
            user_data=self._boot_data(instance["InstanceId"]) if state == "running" else "",
            tags={tag["Key"]: tag["Value"] for tag in instance.get("Tags", ())},
        )

    def _boot_data(self, instance_id: str) -> str:
        """User data never changes on a running instance: asked once."""
        if instance_id not in self._user_data:
            answer = self._ec2.describe_instance_attribute(
                InstanceId=instance_id, Attribute="userData"
            )
            self._user_data[instance_id] = answer.get("UserData", {}).get("Value", "")
        return self._user_data[instance_id]
