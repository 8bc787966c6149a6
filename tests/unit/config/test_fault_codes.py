"""Each fault code: what it refuses, at which place, and what stands just this side of it."""

import pytest

from reconciler.config.faults import ALL_CODES
from tests.unit.config.documents import COMPLETE, config_of, found, with_fleets

GPU_SIZE = "sizes: {big: {kind: gpu, cpu: 4, memory: 16Gi, instance_types: [g5.xlarge]}}\n"
GROUP = "provider: asg, auto_scaling_group: w"
LONG = "x" * 64
TEXTS_OF_A_FORM = [f"pod_namespace: {each}" for each in ("''", "'Bad NS'", LONG)]
TEXTS_OF_A_FORM += [f"listen: {each}" for each in ("foo", "localhost:99999", "''", "a:b@c:80")]
SMALL = with_fleets("{size: small}")


def subnets(count: int) -> str:
    """So many subnets as a flow mapping."""
    return "{" + ", ".join(f"z{n}: subnet-{n}" for n in range(count)) + "}"


def many_labels(count: int) -> str:
    """So many labels of 80 bytes as a flow mapping."""
    return "{" + ", ".join(f"{'k' * 16}{n:03}: {'v' * 60}" for n in range(count)) + "}"


REJECTED = [
    ("config/syntax", "a: b: c\n", "", 1, 5),
    ("config/syntax", "cluster: a\nregions: []\ncluster: b\n", "cluster", 3, 1),
    ("config/syntax", "", "", 1, 1),
    ("config/syntax", "# nothing but a comment\n", "", 1, 1),
    ("config/syntax", "---\n...\n", "", 1, 1),
    ("config/syntax", "[a, b]\n", "", 1, 1),
    ("config/syntax", "cluster: a\n---\ncluster: b\n", "", 2, 1),
    ("config/syntax", "scale_in: &a {type_spares: 1, x: *a}\n", "", 1, 34),
    ("config/syntax", "cluster: *missing\n", "", 1, 10),
    ("config/syntax", "cluster: !!python/name:os.system x\n", "cluster", 1, 10),
    ("config/syntax", "? [a, b]\n: c\n", "?", 1, 3),
    ("config/syntax", "scale_in: {<<: text}\n", "scale_in", 1, 16),
    ("config/unknown-key", "expandr: cost\n", "expandr", 1, 1),
    ("config/unknown-key", "scale_in:\n  idle: 1\n", "scale_in.idle", 2, 3),
    (
        "config/unknown-key",
        with_fleets("{size: small, mincap: 1}"),
        "sectors.primary.fleets[0].mincap",
        1,
        58,
    ),
    (
        "config/unknown-key",
        "terraform: {node_pool_size: small}\n",
        "terraform.node_pool_size",
        1,
        13,
    ),
    ("config/type", "regions: us-west-2\n", "regions", 1, 1),
    ("config/type", "regions:\n- us-west-2\n- here\n", "regions[1]", 3, 3),
    ("config/type", "sectors: [a]\n", "sectors", 1, 1),
    ("config/type", "sectors: {a: }\n", "sectors.a", 1, 11),
    ("config/type", "expander: cheapest\n", "expander", 1, 1),
    ("config/type", "reserved_memory: 2.5gi\n", "reserved_memory", 1, 1),
    ("config/type", "sleep_interval: soon\n", "sleep_interval", 1, 1),
    (
        "config/type",
        "inactive_grace_periods: [{starts: 25:00}]\n",
        "inactive_grace_periods[0].starts",
        1,
        27,
    ),
    (
        "config/type",
        with_fleets("{size: small, min_capacity: 1.5}"),
        "sectors.primary.fleets[0].min_capacity",
        1,
        58,
    ),
    ("config/type", with_fleets("{min_capacity: 1}"), "sectors.primary.fleets[0].size", 1, 44),
    (
        "config/type",
        with_fleets("{size: small, provider: asg}"),
        "sectors.primary.fleets[0].provider",
        1,
        58,
    ),
    *(
        ("config/type", f"cluster: a\n{stated}\n", stated.split(":")[0], 2, 1)
        for stated in TEXTS_OF_A_FORM
    ),
    *(
        (
            "config/range",
            f"sizes: {{a: {{cpu: 1, memory: 1, instance_types: [t3.a], extended: {{{name}: 1}}}}}}",
            f"sizes.a.extended.{name}",
            1,
            67,
        )
        for name in ("cpu", "memory", "pods", "ephemeral-storage")
    ),
    ("config/range", "sleep_interval: -1\n", "sleep_interval", 1, 1),
    ("config/range", "default_over_subscription: .nan\n", "default_over_subscription", 1, 1),
    ("config/range", "default_over_subscription: .inf\n", "default_over_subscription", 1, 1),
    ("config/range", "reserved_memory: -1Gi\n", "reserved_memory", 1, 1),
    (
        "config/range",
        "scale_in: {utilization_threshold: 1.1}\n",
        "scale_in.utilization_threshold",
        1,
        12,
    ),
    (
        "config/range",
        "inactive_grace_periods: [{days: [8]}]\n",
        "inactive_grace_periods[0].days[0]",
        1,
        34,
    ),
    (
        "config/range",
        with_fleets("{size: small, min_capacity: 3, max_capacity: 2}"),
        "sectors.primary.fleets[0].max_capacity",
        1,
        75,
    ),
    (
        "config/range",
        with_fleets("{size: small, initial_node_count: 3, max_capacity: 2}"),
        "sectors.primary.fleets[0].initial_node_count",
        1,
        58,
    ),
    ("config/range", "cluster: a\nbalancing_labels: [team]\n", "balancing_labels", 2, 1),
    ("config/range", "balancing_ignore_labels: [team]\n", "balancing_ignore_labels", 1, 1),
    (
        "config/range",
        with_fleets("{size: small, terminate_after: 48h}"),
        "sectors.primary.fleets[0].terminate_after",
        1,
        58,
    ),
    (
        "config/range",
        with_fleets("{size: small, min_capacity: 1, capacity_min: 2}"),
        "sectors.primary.fleets[0].capacity_min",
        1,
        75,
    ),
    ("config/range", "cluster: a\ncluster_name: b\n", "cluster_name", 2, 1),
    (
        "config/range",
        "sizes: {small: {cpu: 1, memory: 1Gi, instance_types: [t3.small]}}\n",
        "sizes.small",
        1,
        9,
    ),
    (
        "config/range",
        "sizes: {tiny: {cpu: 1, memory: 1Gi, instance_types: []}}\n",
        "sizes.tiny.instance_types",
        1,
        37,
    ),
    ("config/range", "regions: [us-west-2, us-west-2]\n", "regions[1]", 1, 22),
    ("sector/kind", "sectors: {a: {fleets: []}}\n", "sectors.a", 1, 11),
    ("sector/kind", "sectors: {a: {kind: disk, fleets: []}}\n", "sectors.a.kind", 1, 15),
    (
        "sector/kind",
        GPU_SIZE + with_fleets("{size: small}, {size: big}"),
        "sectors.primary.fleets[1].size",
        2,
        60,
    ),
    (
        "sector/kind",
        GPU_SIZE + "sectors: {g: {kind: gpu, fleets: [{size: small}]}}\n",
        "sectors.g.fleets[0].size",
        2,
        36,
    ),
    (
        "sector/duplicate-fleet",
        with_fleets("{size: small}, {size: small}"),
        "sectors.primary.fleets[1]",
        1,
        59,
    ),
    (
        "sector/duplicate-fleet",
        with_fleets("{size: small}, {size: small, zone: us-west-2a}"),
        "sectors.primary.fleets[1]",
        1,
        59,
    ),
    (
        "sector/duplicate-fleet",
        with_fleets("{size: small, zone: us-west-2a}, {size: small}"),
        "sectors.primary.fleets[1]",
        1,
        77,
    ),
    *(
        (
            "sector/duplicate-fleet",
            (
                f"{top}sectors: {{a: {{kind: cpu, fleets: [\n"
                f"  {{size: small, {group}{first}}},\n  {{size: large, {group}{second}}}]}}}}\n"
            ),
            "sectors.a.fleets[1].auto_scaling_group",
            3 + top.count("\n"),
            32,
        )
        for top, group, first, second in (
            ("", GROUP, "", ""),
            ("regions: [us-west-2, us-east-1]\n", GROUP, "", ", regions: [us-east-1]"),
            ("regions: [us-west-2]\n", GROUP, ", zone: us-west-2a", ", zone: us-west-2b"),
        )
    ),
    ("sector/unknown-size", with_fleets("{size: huge}"), "sectors.primary.fleets[0].size", 1, 45),
    ("tags/reserved", "terraform: {tags: {Name: x}}\n", "terraform.tags.Name", 1, 20),
    ("tags/reserved", "terraform: {tags: {aws:x: y}}\n", "terraform.tags.aws:x", 1, 20),
    (
        "tags/reserved",
        "cluster: a\nterraform: {tags: {kubernetes.io/cluster/a: y}}\n",
        "terraform.tags.kubernetes.io/cluster/a",
        2,
        20,
    ),
    (
        "tags/limit",
        f"terraform: {{tags: {{{'k' * 129}: x}}}}\n",
        f"terraform.tags.{'k' * 129}",
        1,
        20,
    ),
    ("tags/limit", f"terraform: {{tags: {{k: {'v' * 257}}}}}\n", "terraform.tags.k", 1, 20),
    ("tags/limit", 'terraform: {tags: {k: "a\\x07b"}}\n', "terraform.tags.k", 1, 20),
    ("tags/limit", "terraform: {tags: {'': b}}\n", "terraform.tags.", 1, 20),
    ("tags/limit", "terraform: {tags: {'%a': b}}\n", "terraform.tags.%a", 1, 20),
    ("name/label", "cluster: -a\n", "cluster", 1, 1),
    ("name/label", f"cluster: {LONG}\n", "cluster", 1, 1),
    ("name/label", "sectors: {a b: {kind: cpu, fleets: []}}\n", "sectors.a b", 1, 11),
    (
        "name/label",
        "sizes: {a_: {cpu: 1, memory: 1Gi, instance_types: [t3.small]}}\n",
        "sizes.a_",
        1,
        9,
    ),
    (
        "name/label",
        f"sectors: {{{'s' * 58}: {{kind: cpu, fleets: [{{size: small}}]}}}}\n",
        f"sectors.{'s' * 58}.fleets[0].size",
        1,
        93,
    ),
    (
        "labels/reserved",
        with_fleets("{size: small, labels: {lifecycle: x}}"),
        "sectors.primary.fleets[0].labels.lifecycle",
        1,
        67,
    ),
    (
        "labels/reserved",
        "sectors: {a: {kind: cpu, labels: {sector: x}, fleets: []}}\n",
        "sectors.a.labels.sector",
        1,
        35,
    ),
    ("default-sector/unknown", "default_sector: nowhere\n", "default_sector", 1, 1),
    ("name/label", "allow_destroy: [../../x]\n", "allow_destroy[0]", 1, 17),
    ("name/label", "allow_destroy: [a-small, '']\n", "allow_destroy[1]", 1, 26),
    (
        "config/range",
        with_fleets("{size: small, instance_types: [m5.large, m5.large]}"),
        "sectors.primary.fleets[0].instance_types[1]",
        1,
        85,
    ),
    *(
        ("config/type", f"terraform: {{{text}}}\n", f"terraform.{text.split(':')[0]}", 1, 13)
        for text in (
            "cluster_endpoint: 'http://a'",
            "cluster_endpoint: 'https://a b'",
            "cluster_ca: 'not base64!'",
            "service_cidr: 10.100.0.0",
            "service_cidr: 10.100.0.0/255.255.0.0",
            "ebs_kms_key_id: alias/mine",
            "kube_reserved: {cpus: 1}",
            "system_reserved: {memory: 1GB}",
            "eviction_hard: {memory.free: 5%}",
        )
    ),
    *(
        ("terraform/value", f"terraform: {{{text}}}\n" + SMALL, f"terraform.{key}", 1, column)
        for key, column, text in (
            ("ebs_type", 13, "ebs_type: io1"),
            ("ebs_iops", 28, "ebs_type: gp2, ebs_iops: 3000"),
            ("ebs_throughput", 44, "ebs_type: io2, ebs_iops: 3000, ebs_throughput: 125"),
            ("cluster_endpoint", 13, "cluster_endpoint: 'https://a', cluster_ca: YQ=="),
            ("cluster_endpoint", 13, "cluster_endpoint: 'https://a', service_cidr: 10.0.0.0/16"),
            ("ami_type", 13, "ami_type: BOTTLEROCKET"),
        )
    ),
    (
        "terraform/value",
        with_fleets("{size: small, spot: false, terraform: {max_price: 1}}"),
        "sectors.primary.fleets[0].terraform.max_price",
        1,
        83,
    ),
    (
        "terraform/limit",
        f"terraform: {{private_subnet_ids: {subnets(76)}}}\n" + SMALL,
        "sectors.primary.fleets[0]",
        2,
        44,
    ),
    (
        "terraform/limit",
        f"terraform: {{node_labels: {many_labels(200)}}}\n" + SMALL,
        "sectors.primary.fleets[0]",
        2,
        44,
    ),
]


@pytest.mark.parametrize(("code", "text", "path", "line", "column"), REJECTED)
def test_fault_is_reported_once_at_its_key(
    code: str, text: str, path: str, line: int, column: int
) -> None:
    """An operator would look at the wrong line, or fix one fault and meet the next."""
    assert found(text) == [(code, path, line, column)]


ACCEPTED = {
    "config/syntax": "cluster: &c a\nsizes: {}\ndefault_sector: ~\npod_namespace: *c\n",
    "config/unknown-key": "expander: cost\n",
    "config/type": "reserved_memory: 2.5Gi\nsleep_interval: 1m\nregions: [us-gov-west-1]\n"
    "listen: '[::1]:0'\n",
    "config/range": with_fleets(
        "{size: small, min_capacity: 2, initial_node_count: 2, max_capacity: 2}"
    ),
    "sector/kind": GPU_SIZE + "sectors: {g: {kind: gpu, fleets: [{size: big}]}}\n",
    "sector/duplicate-fleet": with_fleets(
        "{size: small, zone: us-west-2a}, {size: small, zone: us-west-2b}, {size: large},"
        f"{{size: medium, regions: [us-west-2], {GROUP}}},"
        f"{{size: xlarge, regions: [us-east-1], {GROUP}}}"
    ),
    "sector/unknown-size": with_fleets("{size: xlarge}"),
    "tags/reserved": "cluster: a\n"
    "terraform: {tags: {NAME: x, spot: y, kubernetes.io/cluster/b: z}}\n",
    "tags/limit": f"terraform: {{tags: {{{'k' * 128}: {'v' * 256}, 'a=b ${{x}} %{{y}}': ''}}}}\n",
    "name/label": f"cluster: {'c' * 61}\n"
    "allow_destroy: [old-small, 'module.a[\"b\"].aws_ec2_fleet.this']\n"
    f"sectors: {{{'s' * 57}: {{kind: cpu, fleets: [{{size: small}}]}}}}\n",
    "labels/reserved": with_fleets("{size: small, labels: {Sector: x, team.example/fleet: y}}"),
    "terraform/value": "terraform: {ebs_type: io2, ebs_iops: 3000, max_price: 1, ami_type: "
    "BOTTLEROCKET, cluster_endpoint: 'https://a', cluster_ca: YQ==}\n"
    + with_fleets("{size: small, spot: false}"),
    "terraform/limit": f"terraform: {{private_subnet_ids: {subnets(75)}}}\n" + SMALL,
    "default-sector/unknown": "default_sector: primary\n" + with_fleets("{size: small}"),
}


@pytest.mark.parametrize("code", ALL_CODES)
def test_config_just_inside_the_rule_is_accepted(code: str) -> None:
    """A rule that is too strict would keep a working cluster from being managed."""
    assert found(ACCEPTED[code]) == []


def test_every_code_has_a_rejected_config() -> None:
    """A code that nothing raises would be a promise of the contract that is not kept."""
    assert {code for code, *_ in REJECTED} == set(ALL_CODES)


def test_contract_example_loads_without_faults() -> None:
    """The example that users start from must work as it stands."""
    config = config_of(COMPLETE)
    assert config.cluster == "analytics"
    assert [fleet.size for fleet in config.sectors["primary"].fleets] == [
        "small",
        "medium",
        "large",
    ]


def test_size_without_cpu_or_memory_is_out_of_range() -> None:
    """A node that offers nothing would be asked for again and again."""
    text = "sizes: {a: {cpu: 0, memory: 0, instance_types: [t3.small]}}\n"
    assert [(code, path) for code, path, _, _ in found(text)] == [
        ("config/range", "sizes.a.cpu"),
        ("config/range", "sizes.a.memory"),
    ]


def test_empty_default_sector_is_none() -> None:
    """Kluster Fleet Manager takes an empty name for none."""
    assert found('default_sector: ""\n') == []
