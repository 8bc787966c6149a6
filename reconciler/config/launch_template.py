"""What a config may say of overrides and launch templates: parts of the module's variables.

`reconciler import` writes them for fleets that others made; few other configs need them.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator

from reconciler.config import scalars
from reconciler.config.base import Section
from reconciler.config.types import (
    Boolean,
    Count,
    EbsSize,
    InstanceTypeName,
    IntegerTo64,
    Name,
    PositiveCount,
    PositivePrice,
    Tags,
    Text,
    text_like,
)

SubnetId: TypeAlias = Annotated[Text, text_like(r"subnet-[0-9a-z]+", "a subnet id (subnet-…)")]
SecurityGroupId: TypeAlias = Annotated[
    Text, text_like(r"sg-[0-9a-z]+", "a security group id (sg-…)")
]
InstanceProfileArn: TypeAlias = Annotated[
    Name,
    text_like(
        r"(arn:[^:]+:iam::[0-9]{12}:instance-profile/.+)?", "the ARN of an IAM instance profile"
    ),
]
TemplateInstanceType: TypeAlias = Annotated[
    Name,
    text_like(r"([a-z0-9-]+\.[a-z0-9-]+)?", "an EC2 instance type such as m5.xlarge"),
]
TemplateName: TypeAlias = Annotated[
    Name,
    text_like(r"([a-zA-Z0-9().\-/_]{3,125})?", "3 to 125 letters, digits or ( ) . - / _"),
]
TemplateVersion: TypeAlias = Annotated[
    Name,
    text_like(r"\$Latest|\$Default|[1-9][0-9]{0,9}", "$Latest, $Default or a number from 1"),
]
Description: TypeAlias = Annotated[Name, text_like(r".{0,255}", "one line of at most 255")]
OneLine: TypeAlias = Annotated[Name, text_like(r"[^\r\n]*", "a text on one line")]
OnOff: TypeAlias = Annotated[Literal["enabled", "disabled"], BeforeValidator(scalars.any_text)]
VolumeType: TypeAlias = Annotated[
    Literal["gp3", "gp2", "io1", "io2", "st1", "sc1", "standard"], BeforeValidator(scalars.any_text)
]
Tokens: TypeAlias = Annotated[Literal["required", "optional"], BeforeValidator(scalars.any_text)]
CpuCredits: TypeAlias = Annotated[
    Literal["", "standard", "unlimited"], BeforeValidator(scalars.any_text)
]
ShutdownBehavior: TypeAlias = Annotated[
    Literal["", "stop", "terminate"], BeforeValidator(scalars.any_text)
]
Tenancy: TypeAlias = Annotated[
    Literal["default", "dedicated", "host"], BeforeValidator(scalars.any_text)
]
TaggedResource: TypeAlias = Annotated[
    Literal["instance", "volume", "network-interface", "spot-instances-request", "elastic-gpu"],
    BeforeValidator(scalars.any_text),
]
OneUnit: TypeAlias = Annotated[Literal[1], BeforeValidator(scalars.integer)]


class Override(Section):
    """One override of a fleet: what it may launch, where and for how much."""

    instance_type: InstanceTypeName | None = None
    """Instance type; default: the launch template's."""
    subnet_id: SubnetId | None = None
    """Subnet; default: the launch template's."""
    availability_zone: Name | None = None
    """Availability zone, where it is stated next to the subnet or instead of it."""
    max_price: PositivePrice | None = None
    """Most to pay for one spot node, USD per hour; default: the on-demand price."""
    priority: Count | None = None
    """For allocation strategies that have priorities: lower first."""
    weighted_capacity: OneUnit | None = None
    """1 where it is stated: targets count nodes."""


class TagSpecification(Section):
    """The tags that a launch gives resources of one kind."""

    resource_type: TaggedResource
    """instance, volume, network-interface or spot-instances-request."""
    tags: Tags
    """All their tags. Instances need `cluster`: only those may be ended."""


class NetworkInterface(Section):
    """One network interface of a node."""

    device_index: Count | None = None
    """Position of the interface; 0 is the first."""
    network_card_index: Count | None = None
    """Network card, for instance types with several."""
    interface_type: Name | None = None
    """interface, efa or efa-only."""
    description: Name | None = None
    """Description of the interface."""
    subnet_id: SubnetId | None = None
    """Subnet; default: the override's."""
    security_groups: tuple[SecurityGroupId, ...] | None = None
    """Security groups of the interface."""
    associate_public_ip_address: Boolean | None = None
    """Whether it has a public address; default: the subnet's setting."""
    delete_on_termination: Boolean | None = None
    """Whether it goes with the instance."""
    ipv4_prefix_count: Count | None = None
    """IPv4 prefixes that it is given."""
    ipv6_prefix_count: Count | None = None
    """IPv6 prefixes that it is given."""
    ipv4_address_count: Count | None = None
    """Secondary IPv4 addresses that it is given."""
    ipv6_address_count: Count | None = None
    """IPv6 addresses that it is given."""


class Volume(Section):
    """One volume of a node; what it leaves out is the image's."""

    device_name: Text
    """Device, such as /dev/xvda."""
    size: EbsSize | None = None
    """Size in GiB."""
    type: VolumeType | None = None
    """gp3, gp2, io1, io2, st1, sc1 or standard."""
    iops: Count | None = None
    """Provisioned operations per second."""
    throughput: Count | None = None
    """Provisioned throughput of a gp3 volume in MiB/s."""
    encrypted: Boolean | None = None
    """Whether it is encrypted; default: the snapshot's and the account's setting."""
    kms_key_id: Name | None = None
    """KMS key of that encryption."""
    snapshot_id: Name | None = None
    """Snapshot that it is made from."""
    delete_on_termination: Boolean | None = None
    """Whether it goes with the instance."""


class GroupTag(Section):
    """One tag of an Auto Scaling group."""

    key: Text
    """Its key."""
    value: Name = ""
    """Its value."""
    propagate_at_launch: Boolean = False
    """Whether instances that the group launches get it too."""


class MetadataOptions(Section):
    """Instance metadata options; what they leave out is the image's or the account's default."""

    http_endpoint: OnOff | None = None
    """Whether instances have a metadata service."""
    http_tokens: Tokens | None = None
    """`required`: IMDSv2 only; `optional`: IMDSv1 too, by which a pod can take the node's role."""
    http_put_response_hop_limit: IntegerTo64 | None = None
    """Network hops an answer may travel, 1 to 64."""
    http_protocol_ipv6: OnOff | None = None
    """Whether it is reached by IPv6."""
    instance_metadata_tags: OnOff | None = None
    """Whether it shows an instance's tags; EC2 then forbids `/` in tag keys."""


class Placement(Section):
    """Where instances are placed."""

    affinity: Name | None = None
    """Affinity to a dedicated host."""
    availability_zone: Name | None = None
    """Availability zone."""
    group_name: Name | None = None
    """Placement group."""
    host_id: Name | None = None
    """Dedicated host."""
    host_resource_group_arn: Name | None = None
    """Host resource group."""
    partition_number: PositiveCount | None = None
    """Partition of the placement group."""
    tenancy: Tenancy | None = None
    """default, dedicated or host."""
