"""Values of the keys that describe overrides and launch templates; see `test_keys`."""

from typing import Any

Values = tuple[str, Any, str, str]
TYPE, RANGE = "config/type", "config/range"
BOOLEAN: Values = ("true", True, "'true'", TYPE)
COUNT: Values = ("3", 3, "-1", RANGE)
NAME: Values = ("1234", "1234", "{a: b}", TYPE)
TAGS: Values = ("{a: 1}", {"a": "1"}, "{a: [1]}", TYPE)
LISTED: Values = ("[]", (), "{}", TYPE)
ON_OFF: Values = ("enabled", "enabled", "maybe", TYPE)
SUBNET: Values = ("subnet-0a", "subnet-0a", "vpc-0a", TYPE)
GROUPS: Values = ("[sg-0a]", ("sg-0a",), "[default]", TYPE)
PRICE: Values = ("0.25", ..., "0", RANGE)
_ARN = "'arn:aws:iam::123456789012:instance-profile/node'"
_SMALL = ("r5.xlarge", "r4.xlarge", "m5.2xlarge", "m4.2xlarge")
_OVERRIDES = "[" + ", ".join(f"{{instance_type: {each}}}" for each in _SMALL) + "]"

LAUNCH_TEMPLATE_VARIABLES: dict[str, Values] = {
    "max_prices": ("{m5.large: 0.25}", ..., "{m5.large: 0}", RANGE),
    "overrides": (_OVERRIDES, ..., "{}", TYPE),
    "fleet_tags": TAGS,
    "launch_template_name": ("nodes-1", "nodes-1", "a b", TYPE),
    "launch_template_by_name": BOOLEAN,
    "launch_template_version": ("3", "3", "latest", TYPE),
    "launch_template_description": ("some", "some", "[a]", TYPE),
    "launch_template_tags": TAGS,
    "launch_template_instance_type": ("m5.large", "m5.large", "large", TYPE),
    "tag_specifications": LISTED,
    "instance_profile_arn": (_ARN, _ARN.strip("'"), "node", TYPE),
    "security_group_ids": GROUPS,
    "network_interfaces": LISTED,
    "volumes": LISTED,
    "metadata_options": ("{}", ..., "[]", TYPE),
    "monitoring": BOOLEAN,
    "ebs_optimized": BOOLEAN,
    "cpu_credits": ("unlimited", "unlimited", "many", TYPE),
    "instance_initiated_shutdown_behavior": ("terminate", "terminate", "hibernate", TYPE),
    "placement": ("{}", ..., "[]", TYPE),
    "user_data": ("'#!/bin/sh'", "#!/bin/sh", "[a]", TYPE),
    "bootstrap_arguments": ("''", "", '"a\\nb"', TYPE),
    "mixed_instances_policy": BOOLEAN,
    "on_demand_base_capacity": COUNT,
    "on_demand_percentage_above_base_capacity": ("99", 99, "100", RANGE),
    "group_tags": LISTED,
}
LAUNCH_TEMPLATE_KEYS: dict[str, dict[str, Values]] = {
    "Override": {
        "instance_type": ("m5.large", "m5.large", "large", TYPE),
        "subnet_id": SUBNET,
        "availability_zone": NAME,
        "max_price": PRICE,
        "priority": COUNT,
        "weighted_capacity": ("1", 1, "2", TYPE),
    },
    "GroupTag": {
        "key": ("team", "team", "{a: b}", TYPE),
        "value": NAME,
        "propagate_at_launch": BOOLEAN,
    },
    "TagSpecification": {
        "resource_type": ("volume", "volume", "fleet", TYPE),
        "tags": TAGS,
    },
    "NetworkInterface": {
        "device_index": COUNT,
        "network_card_index": COUNT,
        "interface_type": NAME,
        "description": NAME,
        "subnet_id": SUBNET,
        "security_groups": GROUPS,
        "associate_public_ip_address": BOOLEAN,
        "delete_on_termination": BOOLEAN,
        "ipv4_prefix_count": COUNT,
        "ipv6_prefix_count": COUNT,
        "ipv4_address_count": COUNT,
        "ipv6_address_count": COUNT,
    },
    "Volume": {
        "device_name": ("/dev/xvda", "/dev/xvda", "[a]", TYPE),
        "size": ("30", 30, "0", RANGE),
        "type": ("gp3", "gp3", "floppy", TYPE),
        "iops": COUNT,
        "throughput": COUNT,
        "encrypted": BOOLEAN,
        "kms_key_id": NAME,
        "snapshot_id": NAME,
        "delete_on_termination": BOOLEAN,
    },
    "MetadataOptions": {
        "http_endpoint": ON_OFF,
        "http_tokens": ("optional", "optional", "none", TYPE),
        "http_put_response_hop_limit": ("2", 2, "65", RANGE),
        "http_protocol_ipv6": ON_OFF,
        "instance_metadata_tags": ON_OFF,
    },
    "Placement": {
        "affinity": NAME,
        "availability_zone": NAME,
        "group_name": NAME,
        "host_id": NAME,
        "host_resource_group_arn": NAME,
        "partition_number": ("3", 3, "0", RANGE),
        "tenancy": ("dedicated", "dedicated", "shared", TYPE),
    },
}
LAUNCH_TEMPLATE_PLACES: dict[str, tuple[str, str, tuple[str | int, ...]]] = {
    "Override": ("terraform: {overrides: [BODY]}", "", ("terraform", "overrides", 0)),
    "TagSpecification": (
        "terraform: {tag_specifications: [BODY]}",
        "resource_type: volume, tags: {}",
        ("terraform", "tag_specifications", 0),
    ),
    "NetworkInterface": (
        "terraform: {network_interfaces: [BODY]}",
        "",
        ("terraform", "network_interfaces", 0),
    ),
    "Volume": (
        "terraform: {volumes: [BODY]}",
        "device_name: /dev/xvda",
        ("terraform", "volumes", 0),
    ),
    "MetadataOptions": (
        "terraform: {metadata_options: BODY}",
        "",
        ("terraform", "metadata_options"),
    ),
    "GroupTag": ("terraform: {group_tags: [BODY]}", "key: a", ("terraform", "group_tags", 0)),
    "Placement": ("terraform: {placement: BODY}", "", ("terraform", "placement")),
}
