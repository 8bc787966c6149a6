"""Describes a launch template as variables of the eks_fleet module, completely or not; pure.

Each entry of EC2's launch template data has its variable here. Data without a variable is named, so
that nothing of a template is dropped silently.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reconciler.model.fleet_description import LaunchTemplateDescription
from reconciler.records.untrusted_json import Data, mapping, mappings

_OWN_DEVICES: Final = {"BOTTLEROCKET": "/dev/xvdb"}
_ROOT_DEVICE: Final = "/dev/xvda"
_OWN_METADATA: Final = {
    "http_endpoint": "enabled",
    "http_tokens": "required",
    "instance_metadata_tags": "disabled",
}
"""What the module states next to the hop limit when no metadata options are given."""

_TEXTS: Final = {
    "ImageId": "ami",
    "InstanceInitiatedShutdownBehavior": "instance_initiated_shutdown_behavior",
    "InstanceType": "launch_template_instance_type",
    "KeyName": "ssh_key_name",
}
_VOLUME: Final = {
    "VolumeSize": "size",
    "VolumeType": "type",
    "Iops": "iops",
    "Throughput": "throughput",
    "Encrypted": "encrypted",
    "KmsKeyId": "kms_key_id",
    "SnapshotId": "snapshot_id",
    "DeleteOnTermination": "delete_on_termination",
}
_INTERFACE: Final = {
    "DeviceIndex": "device_index",
    "NetworkCardIndex": "network_card_index",
    "InterfaceType": "interface_type",
    "Description": "description",
    "SubnetId": "subnet_id",
    "Groups": "security_groups",
    "AssociatePublicIpAddress": "associate_public_ip_address",
    "DeleteOnTermination": "delete_on_termination",
    "Ipv4PrefixCount": "ipv4_prefix_count",
    "Ipv6PrefixCount": "ipv6_prefix_count",
    "SecondaryPrivateIpAddressCount": "ipv4_address_count",
    "Ipv6AddressCount": "ipv6_address_count",
}
_METADATA: Final = {
    "HttpEndpoint": "http_endpoint",
    "HttpTokens": "http_tokens",
    "HttpPutResponseHopLimit": "http_put_response_hop_limit",
    "HttpProtocolIpv6": "http_protocol_ipv6",
    "InstanceMetadataTags": "instance_metadata_tags",
}
_PLACEMENT: Final = {
    "Affinity": "affinity",
    "AvailabilityZone": "availability_zone",
    "GroupName": "group_name",
    "HostId": "host_id",
    "HostResourceGroupArn": "host_resource_group_arn",
    "PartitionNumber": "partition_number",
    "Tenancy": "tenancy",
}
_NESTED: Final = {
    "CreditSpecification": {"CpuCredits"},
    "IamInstanceProfile": {"Arn", "Name"},
    "MetadataOptions": {*_METADATA, "State"},
    "Monitoring": {"Enabled"},
    "Placement": set(_PLACEMENT),
}
_LISTED: Final = {
    "BlockDeviceMappings": {"DeviceName", "Ebs"},
    "NetworkInterfaces": set(_INTERFACE),
    "TagSpecifications": {"ResourceType", "Tags"},
}
_OTHERS: Final = {"EbsOptimized", "SecurityGroupIds", "UserData"}


def user_data_of(template: LaunchTemplateDescription) -> str | None:
    """Return the user data as text, empty without any; None when it is not text."""
    try:
        return base64.b64decode(str(template.data.get("UserData", "")), validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def without_a_variable(template: LaunchTemplateDescription) -> tuple[str, ...]:
    """Return EC2's names of settings for which the module has no variable; sorted."""
    return tuple(sorted(set(_without_a_variable(template.data))))


def _without_a_variable(data: Data) -> Iterator[str]:
    for key, value in data.items():
        if key in _NESTED:
            yield from _others(key, value, _NESTED[key])
        elif key in _LISTED:
            for each in mappings(value):
                yield from _others(key, each, _LISTED[key])
                yield from _others(f"{key}.Ebs", mapping(each.get("Ebs")), set(_VOLUME))
        elif key not in {*_TEXTS, *_OTHERS} and _says_something(value):
            yield key


def _others(key: str, value: Any, known: set[str]) -> Iterator[str]:
    stated = mapping(value).items()
    return (f"{key}.{each}" for each, part in stated if each not in known and _says_something(part))


def _says_something(value: Any) -> bool:
    """Return whether a value differs from EC2's default: False is the default of every switch."""
    if isinstance(value, Mapping):
        return any(map(_says_something, value.values()))
    return value not in (None, False, "", [])


def template_variables(
    template: LaunchTemplateDescription, ami_type: str, *, own_tags: Data
) -> dict[str, Any]:
    """Return the module variables for such a template, without those at the module's defaults.

    Args:
        template: The template; each of its settings has a variable.
        ami_type: How its image is configured, by the module's name.
        own_tags: The tags that the module would give instances and volumes.
    """
    data = template.data
    return {
        **{variable: str(data[key]) for key, variable in _TEXTS.items() if key in data},
        **_network(data),
        **_instance_profile(mapping(data.get("IamInstanceProfile"))),
        **_volumes(mappings(data.get("BlockDeviceMappings")), ami_type),
        **_metadata(mapping(data.get("MetadataOptions"))),
        **_tag_specifications(mappings(data.get("TagSpecifications")), own_tags),
        **_switches(data),
    }


def _network(data: Data) -> dict[str, Any]:
    interfaces = [_renamed(each, _INTERFACE) for each in mappings(data.get("NetworkInterfaces"))]
    groups = [str(each) for each in data.get("SecurityGroupIds") or ()]
    if interfaces:
        return {"network_interfaces": interfaces}
    if len(groups) == 1:
        return {"security_group_id": groups[0]}
    return {"security_group_ids": groups}


def _instance_profile(profile: Data) -> dict[str, Any]:
    if profile.get("Name"):
        return {"instance_profile_name": profile["Name"]}
    return {"instance_profile_arn": profile["Arn"]} if profile.get("Arn") else {}


def _volumes(mappings: Sequence[Data], ami_type: str) -> dict[str, Any]:
    """Return the one volume of the `ebs_` variables, or all volumes as they are."""
    volumes = [
        {"device_name": each.get("DeviceName", ""), **_renamed(mapping(each.get("Ebs")), _VOLUME)}
        for each in mappings
    ]
    if len(volumes) == 1 and _is_own(volumes[0], ami_type):
        (volume,) = volumes
        defaults = {"size": 50, "type": "gp3", "encrypted": True, "delete_on_termination": True}
        return {
            f"ebs_{key}": value
            for key, value in volume.items()
            if key != "device_name" and defaults.get(key) != value
        }
    return {"volumes": volumes}


def _is_own(volume: Data, ami_type: str) -> bool:
    """Return whether the `ebs_` variables can describe a volume within the module's rules."""
    kind, iops = volume.get("type"), volume.get("iops")
    return (
        volume["device_name"] == _OWN_DEVICES.get(ami_type, _ROOT_DEVICE)
        and volume.get("delete_on_termination") is True
        and "encrypted" in volume
        and "size" in volume
        and "snapshot_id" not in volume
        and kind in {"gp2", "gp3", "io1", "io2"}
        and _iops_fit(str(kind), iops)
        and (kind == "gp3" or "throughput" not in volume)
        and (str(volume.get("kms_key_id", "arn:")).startswith("arn:"))
    )


def _iops_fit(kind: str, iops: Any) -> bool:
    """Return whether the rules of `ebs_iops` allow this many operations per second."""
    if iops is None:
        return not kind.startswith("io")
    return isinstance(iops, int) and iops >= {"gp2": iops + 1, "gp3": 3000}.get(kind, 100)


def _metadata(options: Data) -> dict[str, Any]:
    stated = _renamed(options, _METADATA)
    hops = stated.get("http_put_response_hop_limit")
    if stated == {**_OWN_METADATA, "http_put_response_hop_limit": hops} and hops is not None:
        return {} if hops == 1 else {"metadata_hop_limit": hops}
    return {"metadata_options": stated}


def _tag_specifications(specifications: Sequence[Data], own: Data) -> dict[str, Any]:
    stated = [
        {
            "resource_type": specification.get("ResourceType", ""),
            "tags": tags_as_mapping(specification.get("Tags")),
        }
        for specification in specifications
    ]
    made = [{"resource_type": each, "tags": dict(own)} for each in ("instance", "volume")]
    return {} if stated == made else {"tag_specifications": stated}


def cpu_credits(data: Data) -> str | None:
    """Return the CPU credits that a template states."""
    stated = mapping(data.get("CreditSpecification")).get("CpuCredits")
    return str(stated) if stated else None


def _is_burstable(data: Data) -> bool:
    """Return whether the template names a burstable type.

    For other types Terraform's AWS provider (5.100) reads no CPU credits, so stating them would be
    planned as a change each time.
    """
    return str(data.get("InstanceType", "")).startswith("t")


def _switches(data: Data) -> dict[str, Any]:
    placement = _renamed(mapping(data.get("Placement")), _PLACEMENT)
    found = {
        "cpu_credits": cpu_credits(data) if _is_burstable(data) else None,
        "ebs_optimized": data.get("EbsOptimized"),
        "monitoring": mapping(data.get("Monitoring")).get("Enabled"),
        "placement": placement or None,
    }
    return {key: value for key, value in found.items() if value is not None}


def tags_as_mapping(tags: Any) -> dict[str, str]:
    """Return EC2's list of tags as a mapping."""
    return {str(each.get("Key", "")): str(each.get("Value") or "") for each in mappings(tags)}


def _renamed(stated: Data, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        variable: stated[key]
        for key, variable in names.items()
        if stated.get(key) not in (None, "")
    }
