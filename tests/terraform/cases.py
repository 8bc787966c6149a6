"""Random fleets as a sector config and as the modules' variables, the same values in both.

Half of the values are right. A case has a few of them, so that rules over several keys are met too.
"""

import random  # noqa: TID251 - seeded with the number of the case
from dataclasses import dataclass
from typing import Any, Final

import yaml

from reconciler.config.resolve import OF_FLEETS

Values = dict[str, Any]

GROUP_EVERY: Final = 4

TYPES: Final = ("m5.xlarge", "r5.xlarge", "c5.2xlarge", "m5.2xlarge")
SMALL: Final = ("r5.xlarge", "r4.xlarge", "m5.2xlarge", "m4.2xlarge")
"""Instance types of the built-in size small of kind memory."""
ARN: Final = "arn:aws:kms:us-west-2:123456789012:"
POOLS: Final[dict[str, tuple[Any, ...]]] = {
    "ami": ("ami-0abc", "ami-0abc", "resolve:ssm:/a/b", "", "image", "ami-ABC"),
    "architecture": ("x86_64", "arm64", "amd64"),
    "kubernetes_version": ("", "1.35", "1.35.1", "35"),
    "ami_type": ("AL2023", "AL2", "BOTTLEROCKET", "AL1"),
    "security_group_id": ("sg-0abc", "sg-0abc", "", "default"),
    "private_subnet_ids": (
        {"us-west-2a": "subnet-0a", "us-west-2b": "subnet-0b"},
        {"us-west-2a": "subnet-0a"},
        {},
        {"us-west-2a": "vpc-0a"},
        {f"us-west-2-z{n}": f"subnet-{n}" for n in range(76)},
    ),
    "ssh_key_name": ("", "key", "a key ${x}"),
    "instance_profile_name": ("", "node"),
    "metadata_hop_limit": (1, 64, 0, 65, 1.5),
    "ebs_size": (1, 50, 65_536, 0, 65_537, 1.5),
    "ebs_type": ("gp3", "gp2", "io1", "io2", "st1"),
    "ebs_iops": (100, 2999, 3000, 64_000, 99, 3000.5),
    "ebs_throughput": (125, 1000, 124, 1001, 125.5),
    "ebs_encrypted": (True, False),
    "ebs_kms_key_id": ("", f"{ARN}key/a-b", f"{ARN}alias/a", "alias/a", "arn:aws:s3:::x"),
    "cluster_endpoint": (
        "",
        "https://a.example",
        "https://a.example:443",
        "http://a",
        "https://a b",
    ),
    "cluster_ca": ("", "YQ==", "YWJj", "not base64!"),
    "service_cidr": ("", "10.0.0.0/16", "10.0.0.1/16", "fd00::/108", "10.0.0.0", "10.0.0.0/40"),
    "max_pods": (0, 110, 737, -1, 738, 1.5),
    "kube_reserved": ({}, {"cpu": "100m", "memory": "1Gi"}, {"cpus": "1"}, {"memory": "1GB"}),
    "system_reserved": ({}, {"ephemeral-storage": "1Gi"}, {"pid": "100"}, {"cpu": "-1"}),
    "eviction_hard": (
        {},
        {"memory.available": "5%"},
        {"memory.free": "5%"},
        {"pid.available": "x"},
    ),
    "node_labels": (
        {},
        {"team": "data", "example.com/a": ""},
        {"sector": "x"},
        {"a b": "c"},
        {"kubernetes.io/role": "x"},
        {"team": "-x"},
        {f"{'k' * 20}{n:03}": "v" * 60 for n in range(150)},
        {f"{'k' * 20}{n:03}": "v" * 60 for n in range(200)},
    ),
    "node_taints": (
        [],
        [{"key": "a", "value": "", "effect": "NoSchedule"}],
        [{"key": "a", "value": "b", "effect": "Sometimes"}],
        [{"key": "a b", "value": "", "effect": "NoExecute"}],
        [{"key": "fleet-reconciler.io/draining", "value": "x", "effect": "NoSchedule"}],
    ),
    "tags": (
        {},
        {"team": "data", "Quote": '"${x}'},
        {"Name": "x"},
        {"aws:x": "y"},
        {"k": "v" * 257},
        {"k" * 129: "v"},
        {f"k{n}": "v" for n in range(42)},
        {f"k{n}": "v" for n in range(43)},
        {"%a": "b"},
    ),
    "max_price": ("0.25", "1", "0"),
    "spot_allocation_strategy": ("diversified", "lowestPrice", "cheapest"),
    "on_demand_prefer_no_schedule_taint": (True, False),
    "max_prices": ({"m5.xlarge": "0.25"}, {}, {"m5.xlarge": "0"}, {"m5.xlarge": "0.1"}),
    "overrides": (
        [{"instance_type": "m5.xlarge", "subnet_id": "subnet-0a", "weighted_capacity": 1}],
        [{"instance_type": each} for each in SMALL],
        [{"instance_type": "m5.xlarge", "weighted_capacity": 2}],
        [{"instance_type": "m5.xlarge", "subnet_id": "vpc-0a"}],
        [],
    ),
    "fleet_tags": (
        {"cluster": "analytics", "sector": "primary", "size": "small"},
        {"cluster": "other", "sector": "primary", "size": "small"},
        {"%a": "b", "cluster": "analytics", "sector": "primary", "size": "small"},
        {},
    ),
    "launch_template_name": ("nodes/of (a)", "ab", "a b%"),
    "launch_template_by_name": (True, False),
    "launch_template_version": ("$Latest", "$Default", "3", "0", "newest"),
    "launch_template_description": ("of ${x}", "", "x" * 255, "x" * 256),
    "launch_template_tags": ({}, {"team": "data"}, {"aws:x": "y"}, {"%a": "b"}, {"k" * 129: "v"}),
    "launch_template_instance_type": ("m5.xlarge", "r5.xlarge", "m5", ""),
    "tag_specifications": (
        [{"resource_type": "instance", "tags": {"team": "data"}}],
        [],
        [{"resource_type": "bucket", "tags": {}}],
        [{"resource_type": "volume", "tags": {"aws:x": "y"}}],
    ),
    "instance_profile_arn": (
        "arn:aws:iam::123456789012:instance-profile/node",
        "",
        "arn:aws:iam::123456789012:role/node",
    ),
    "security_group_ids": (["sg-0a", "sg-0b"], [], ["default"], ["sg-0a", "sg-0a"]),
    "network_interfaces": (
        [{"device_index": 0, "security_groups": ["sg-0a"]}],
        [{"device_index": 0, "ipv6_address_count": 1, "security_groups": ["sg-0a"]}],
        [],
        [{"device_index": 0, "security_groups": ["default"]}],
        [{"device_index": -1}],
        [{"device_index": 0.5}],
        [{"device_index": 0, "subnet_id": "vpc-0a"}],
    ),
    "volumes": (
        [{"device_name": "/dev/xvda", "size": 20, "type": "gp3"}],
        [],
        [{"device_name": "/dev/xvda"}, {"device_name": "/dev/xvda"}],
        [{"device_name": "/dev/xvda", "size": 0}],
        [{"device_name": "/dev/xvda", "size": 20.5}],
        [{"device_name": "/dev/xvda", "type": "floppy"}],
        [{"device_name": "/dev/xvda", "type": "gp2", "iops": 3000}],
        [{"device_name": "/dev/xvda", "type": "io2"}],
    ),
    "metadata_options": (
        {"http_tokens": "required", "http_put_response_hop_limit": 2},
        {"http_protocol_ipv6": "enabled"},
        {"http_protocol_ipv6": "on"},
        {"http_put_response_hop_limit": 65},
        {"http_put_response_hop_limit": 1.5},
        {"http_tokens": "never"},
    ),
    "monitoring": (True, False),
    "ebs_optimized": (True, False),
    "cpu_credits": ("standard", "unlimited", "some"),
    "instance_initiated_shutdown_behavior": ("stop", "terminate", "hibernate"),
    "placement": ({"tenancy": "dedicated"}, {"group_name": "a"}, {"tenancy": "mine"}, {}),
    "user_data": ("#!/bin/sh\necho ${x} %{y}\n", "", "x" * 16_384, "x" * 16_385),
    "bootstrap_arguments": ("--use-max-pods false", "", "a\nb"),
}
"""Values of module variables, as a config has them under `terraform`."""
GROUP_POOLS: Final[dict[str, tuple[Any, ...]]] = {
    **{key: values for key, values in POOLS.items() if key not in OF_FLEETS},
    "mixed_instances_policy": (True, False),
    "on_demand_base_capacity": (0, 2, -1, 1.5),
    "on_demand_percentage_above_base_capacity": (0, 99, 100, 1.5),
    "group_tags": (
        [],
        [{"key": "a", "value": "b", "propagate_at_launch": True}],
        [{"key": "a", "value": "b"}, {"key": "a", "value": ""}],
        [{"key": f"k{n}", "value": ""} for n in range(51)],
    ),
}
"""The same of Auto Scaling groups."""
GROUP_NAMES: Final = ("workers", "nodes of/web (a)", "a:b", "x" * 256)
OWN_KEYS: Final[dict[str, tuple[Any, ...]]] = {
    "spot": (True, False),
    "zone": ("us-west-2a", "us-west-2c"),
    "initial_node_count": (0, 10_000, -1, 10_001, 1.5),
    "instance_types": (
        ["m5.xlarge"],
        list(TYPES),
        ["m5.xlarge", "m5.xlarge"],
        ["m5"],
        [f"m5.{n}xlarge" for n in range(160)],
    ),
}
"""Values of the fleet's own keys, which the modules know by the same names."""
REQUIRED: Final[Values] = {
    "ami": "ami-0abc",
    "security_group_id": "sg-0abc",
    "private_subnet_ids": {"us-west-2a": "subnet-0a", "us-west-2b": "subnet-0b"},
}
COMPLEMENTS: Final[tuple[Values, ...]] = (
    {},
    {},
    {"cluster_endpoint": "https://a", "cluster_ca": "YQ==", "service_cidr": "10.0.0.0/16"},
    {"ami_type": "BOTTLEROCKET", "cluster_endpoint": "https://a", "cluster_ca": "YQ=="},
    {"ebs_type": "io2", "ebs_iops": 4000},
    {"ami_type": "AL2", "bootstrap_arguments": "--use-max-pods false"},
    {"ami_type": "AL2", "cluster_endpoint": "https://a", "cluster_ca": "YQ=="},
    {"cluster_endpoint": "https://a", "cluster_ca": "YQ==", "service_cidr": "fd00:a::/108"},
    {"user_data": "#!/bin/sh\n"},
)
"""Values that go together, so that a case is not refused for the lack of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One fleet."""

    own: Values
    variables: Values
    group: str = ""
    """Name of an Auto Scaling group; empty: an EC2 Fleet."""

    @property
    def config(self) -> str:
        """The sector config that has the fleet."""
        group = {"provider": "asg", "auto_scaling_group": self.group} if self.group else {}
        fleet = {"size": "small", **group, **self.own, "terraform": self.variables}
        document = {
            "cluster": "analytics",
            "regions": ["us-west-2"],
            "sectors": {"primary": {"kind": "memory", "fleets": [fleet]}},
        }
        text: str = yaml.safe_dump(document, width=10_000)
        return text

    @property
    def fleets(self) -> dict[str, Values]:
        """The same as the modules' variable `fleets`."""
        zone = self.own.get("zone", "")
        # As `render` does where the first size is more than the module's default.
        first = self.own.get("initial_node_count", 0)
        group = {"auto_scaling_group": self.group, "max_size": max(1000, first)}
        fleet = {
            "sector_label": "primary",
            "node_pool_size": "small",
            "node_pool_kind": "memory",
            **self.own,
            **self.variables,
            **(group if self.group else {}),
        }
        return {"-".join(filter(None, ("primary", "small", zone))): fleet}


def make_case(number: int) -> Case:
    """The case of a number: always the same; every fourth one is an Auto Scaling group."""
    rng = random.Random(number)
    is_group = number % GROUP_EVERY == 0
    pools = GROUP_POOLS if is_group else POOLS
    variables: Values = {**REQUIRED, **rng.choice(COMPLEMENTS)}
    own: Values = {}
    for _ in range(rng.randint(0, 4)):
        if rng.random() < 0.25:
            key = rng.choice(sorted(OWN_KEYS))
            own[key] = _value(rng, OWN_KEYS[key])
        else:
            key = rng.choice(sorted(pools))
            variables[key] = _value(rng, pools[key])
    if rng.random() < 0.08:
        variables.pop(rng.choice(sorted(REQUIRED)))
    group = _value(rng, GROUP_NAMES) if is_group else ""
    return Case(own=own, variables=variables, group=group)


def _value(rng: random.Random, pool: tuple[Any, ...]) -> Any:
    """One of the values; the first, which are right, somewhat more often."""
    return pool[min(rng.randrange(len(pool)), rng.randrange(len(pool)))]
