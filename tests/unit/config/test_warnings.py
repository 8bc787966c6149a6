"""Each warning: what it is given for, where, and what stands just this side of it."""

import pytest
from botocore.session import Session
from pydantic import TypeAdapter

from reconciler.config.check import check_reading
from reconciler.config.loader import read_config
from reconciler.config.terraform import KmsKeyArn
from reconciler.config.types import Region
from reconciler.config.warnings.places import REGIONS
from tests.unit.config.documents import COMPLETE, with_fleets

MODULE = (
    "terraform: {ami: ami-1, security_group_id: sg-1, private_subnet_ids: {us-west-2a: subnet-1}"
)
ONE_CPU_GROUP = (
    "sizes: {own: {cpu: 1, memory: 4Gi, instance_types: [m7a.medium]}}\n"
    "sectors: {primary: {kind: memory, fleets: [{size: own, provider: asg,"
    " auto_scaling_group: web}]}}\n"
)
IDENTIFYING = "{cluster: c, sector: primary, size: small}"
SPECIFIED = "tag_specifications: [{resource_type: instance, tags: {cluster: c}}]"


def with_size(size: str, fleet: str = "{size: own}") -> str:
    """A config with one own size and one fleet."""
    return f"sizes: {{own: {{cpu: 4, memory: 16Gi, {size}}}}}\n" + with_fleets(fleet)


WARNED = [
    (
        "instance/unknown-type",
        "sizes.own.instance_types[1]",
        with_size("instance_types: [m5.xlarge, m5.xlrage]"),
    ),
    (
        "instance/unknown-type",
        "sectors.primary.fleets[0].instance_types[0]",
        with_fleets("{size: small, instance_types: [nope.large]}"),
    ),
    (
        "instance/size-claim",
        "sizes.own.cpu",
        "sizes: {own: {cpu: 96, memory: 16Gi, instance_types: [g5.2xlarge]}}\n",
    ),
    (
        "instance/size-claim",
        "sizes.own.memory",
        "sizes: {own: {cpu: 4, memory: 17Gi, instance_types: [m5.2xlarge, m5.xlarge]}}\n",
    ),
    (
        "instance/size-claim",
        "sizes.own.extended",
        with_size("extended: {nvidia.com/gpu: 1}, instance_types: [m5.xlarge]"),
    ),
    (
        "instance/architecture",
        "sectors.primary.fleets[0]",
        with_size("instance_types: [m5.xlarge, m6g.xlarge]"),
    ),
    (
        "instance/architecture",
        "sizes.own.arch",
        with_size("arch: arm64, instance_types: [m5.xlarge]"),
    ),
    (
        "instance/architecture",
        "sectors.primary.fleets[1]",
        f"{MODULE}}}\n" + with_size("instance_types: [m6g.xlarge]", "{size: small}, {size: own}"),
    ),
    ("region/unknown", "regions[0]", "regions: [us-west-9]\n"),
    (
        "region/other",
        "sectors.primary.fleets[0].zone",
        "regions: [us-west-2]\n" + with_fleets("{size: small, zone: eu-west-1a}"),
    ),
    (
        "region/other",
        "terraform.private_subnet_ids.us-west-2a",
        f"regions: [eu-west-1]\n{MODULE}}}\n" + with_fleets("{size: small}"),
    ),
    (
        "fleet/fallback-without-spot",
        "sectors.primary.fleets[0].spot_fallback",
        with_fleets("{size: small, spot: false, spot_fallback: on-demand}"),
    ),
    (
        "fleet/expiry",
        "sectors.primary.fleets[0].expire_after",
        with_fleets("{size: small, expire_after: 30m}"),
    ),
    (
        "fleet/expiry",
        "sectors.primary.fleets[0].expire_after",
        with_fleets("{size: small, expire_after: 720h, min_capacity: 3, max_capacity: 3}"),
    ),
    (
        "fleet/all-reserved",
        "reserved_cpus",
        "reserved_cpus: 4\n" + with_fleets("{size: small}, {size: large}"),
    ),
    ("fleet/all-reserved", "reserved_cpus", "reserved_cpus: 1\n" + ONE_CPU_GROUP),
    (
        "fleet/all-reserved",
        "reserved_memory",
        "reserved_memory: 1Ti\n" + with_fleets("{size: small}"),
    ),
    (
        "cost/below-one-node",
        "raise_limits.hourly_usd_per_cycle",
        "raise_limits: {hourly_usd_per_cycle: 0.01}\n" + with_fleets("{size: small}"),
    ),
    (
        "fleet/limit-below-minima",
        "max_hourly_usd",
        "max_hourly_usd: 0.01\n" + with_fleets("{size: small, min_capacity: 2}"),
    ),
    (
        "fleet/limit-below-minima",
        "sectors.a.max_hourly_usd",
        "sectors: {a: {kind: cpu, max_hourly_usd: 1, fleets: [{size: large, min_capacity: 9}]}}\n",
    ),
    (
        "terraform/arn-for-name",
        "terraform.instance_profile_name",
        f"{MODULE}, instance_profile_name: 'arn:aws:iam::1:instance-profile/node'}}\n"
        + with_fleets("{size: small}"),
    ),
    (
        "expander/unused-priorities",
        "expander_priorities",
        "expander_priorities: {10: [large]}\n" + with_fleets("{size: small}"),
    ),
    (
        "terraform/managed-node-group",
        "sectors.primary.fleets[0].auto_scaling_group",
        f"{MODULE}}}\n"
        + with_fleets("{size: small, provider: asg, auto_scaling_group: eks-web-12c7b5f4}"),
    ),
    (
        "terraform/tags-without-cluster",
        "terraform.tag_specifications",
        f"cluster: c\n{MODULE}, {SPECIFIED.replace('cluster', 'team')}}}\n"
        + with_fleets("{size: small}"),
    ),
    (
        "terraform/tags-without-cluster",
        "terraform.launch_template_tags",
        f"cluster: c\n{MODULE}, launch_template_tags: {{team: data}}}}\n"
        + with_fleets("{size: small}"),
    ),
    (
        "terraform/tags-without-fleet",
        "sectors.primary.fleets[0].terraform.fleet_tags",
        f"cluster: c\n{MODULE}}}\n"
        + with_fleets(f"{{size: small, terraform: {{fleet_tags: {IDENTIFYING}}}}}"),
    ),
]
NAMED = IDENTIFYING.replace("{", "{fleet: primary-small, ")
OF_VOLUMES = "tag_specifications: [{resource_type: volume, tags: {a: b}}]"
CLEAN = [
    f"cluster: c\n{MODULE}, {SPECIFIED}, launch_template_tags: {{cluster: c}}}}\n"
    + with_fleets("{size: small}"),
    f"cluster: c\n{MODULE}, {OF_VOLUMES}}}\n"
    + with_fleets("{size: small, provider: asg, auto_scaling_group: w}"),
    f"{MODULE}}}\n"
    + with_fleets("{size: small, provider: asg, auto_scaling_group: eks-web, managed: false}"),
    f"{MODULE}}}\n" + with_fleets("{size: small, provider: asg, auto_scaling_group: web-eks-1}"),
    f"cluster: c\n{MODULE}}}\n"
    + with_fleets(f"{{size: small, terraform: {{fleet_tags: {NAMED}}}}}"),
    with_fleets("{size: small, provider: asg, auto_scaling_group: eks-web}"),
    ONE_CPU_GROUP,
    COMPLETE,
    "expander_priorities: {10: [large]}\nexpander: priority\n" + with_fleets("{size: small}"),
    with_fleets("{size: small}").replace("kind:", "expander: priority, kind:")
    + "expander_priorities: {10: [large]}\n",
    with_fleets("{size: small}"),
    with_fleets("{size: small, expire_after: 720h, min_capacity: 3, max_capacity: 4}"),
    with_fleets("{size: small, spot: true, spot_fallback: on-demand}"),
    with_size("instance_types: [m5.xlarge]"),
    with_size("pods: 500, instance_types: [m5.xlarge]"),
    with_size("arch: arm64, instance_types: [m6g.xlarge]"),
    with_size("extended: {nvidia.com/gpu: 1}, instance_types: [g5.xlarge]"),
    "regions: [us-west-2]\n" + with_fleets("{size: small, zone: us-west-2-lax-1a}"),
    "max_hourly_usd: 100\n" + with_fleets("{size: small, min_capacity: 2}"),
    "terraform: {tags: {team: data}, ebs_size: 60}\n" + with_fleets("{size: small}"),
    f"regions: [us-west-2]\n{MODULE}, instance_profile_name: node}}\n"
    + with_fleets("{size: small}"),
]


def warned(text: str, *, strict: bool = False) -> list[tuple[str, str]]:
    """Code and path of every warning; there are no faults."""
    problems = check_reading(read_config(text), strict=strict)
    assert {p.severity for p in problems} <= {"warning"}, problems
    return [(p.code, p.path) for p in problems]


@pytest.mark.parametrize(("code", "path", "text"), WARNED)
def test_probable_mistake_is_a_warning_at_its_place(code: str, path: str, text: str) -> None:
    """Without it, `ci apply` or the first node tells, hours later."""
    assert warned(text) == [(code, path)]


@pytest.mark.parametrize("text", CLEAN)
def test_config_without_mistakes_is_not_warned_of(text: str) -> None:
    """A warning that everybody gets is read by few."""
    assert warned(text) == []


def test_what_many_configs_can_live_with_is_reported_to_the_strict_alone() -> None:
    """A config without a `terraform` block is clean; whoever wants to render asks --strict."""
    plain = with_fleets("{size: small}")
    missing = [("terraform/missing", "sectors")] * 3
    assert sorted(warned(plain, strict=True)) == [("cost/no-limit", "max_hourly_usd"), *missing]
    rendered = f"max_hourly_usd: 9\nregions: [us-west-2, us-east-1]\n{MODULE}}}\n" + plain
    assert warned(rendered) == []
    assert warned(rendered, strict=True) == [
        ("terraform/region-not-rendered", "regions[1]"),
        ("terraform/no-backend", "terraform"),
    ]


def test_config_without_any_limit_of_cost_is_reported_to_the_strict() -> None:
    """Who never thought of a limit learns what holds without one."""
    plain = with_fleets("{size: small}")
    code = ("cost/no-limit", "max_hourly_usd")
    for limit in ("", "max_hourly_usd: 50\n", "raise_limits: {nodes_per_hour: 10}\n"):
        assert (code in warned(limit + plain, strict=True)) is (limit == "")


def test_regions_of_botocore_are_known() -> None:
    """A region that AWS opened must not be called a typing mistake."""
    session = Session()
    known = {
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("ec2", partition, allow_non_regional=False)
    }
    assert known <= REGIONS


@pytest.mark.parametrize("region", sorted(REGIONS))
def test_region_that_aws_has_may_be_named(region: str) -> None:
    """A whole partition was refused as no Region: the name of the newest has four letters first."""
    assert TypeAdapter(Region).validate_python(region) == region
    key = f"arn:aws:kms:{region}:123456789012:key/a-b"
    assert TypeAdapter(KmsKeyArn).validate_python(key) == key
