"""Each fault code: what it refuses, at which place, and what stands just this side of it."""

import pytest

from reconciler.config.faults import ALL_CODES
from tests.unit.config.documents import COMPLETE, config_of, found, problems_of, with_fleets

GPU_SIZE = "sizes: {big: {kind: gpu, cpu: 4, memory: 16Gi, instance_types: [g5.xlarge]}}\n"
LONG = "x" * 64

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
    "config/type": "reserved_memory: 2.5Gi\nsleep_interval: 1m\nregions: [us-gov-west-1]\n",
    "config/range": with_fleets(
        "{size: small, min_capacity: 2, initial_node_count: 2, max_capacity: 2}"
    ),
    "sector/kind": GPU_SIZE + "sectors: {g: {kind: gpu, fleets: [{size: big}]}}\n",
    "sector/duplicate-fleet": with_fleets(
        "{size: small, zone: us-west-2a}, {size: small, zone: us-west-2b}, {size: large}"
    ),
    "sector/unknown-size": with_fleets("{size: xlarge}"),
    "tags/reserved": "cluster: a\n"
    "terraform: {tags: {NAME: x, spot: y, kubernetes.io/cluster/b: z}}\n",
    "tags/limit": f"terraform: {{tags: {{{'k' * 128}: {'v' * 256}, 'a=b ${{x}} %{{y}}': ''}}}}\n",
    "name/label": f"cluster: {'c' * 63}\n"
    f"sectors: {{{'s' * 57}: {{kind: cpu, fleets: [{{size: small}}]}}}}\n",
    "labels/reserved": with_fleets("{size: small, labels: {Sector: x, team.example/fleet: y}}"),
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


def test_all_faults_come_in_one_go_in_file_order() -> None:
    """Fixing a config one CI run per fault would cost an afternoon."""
    text = (
        "sleep_interval: -1\n"
        "bogus: 1\n"
        "default_sector: nowhere\n"
        "terraform: {tags: {Name: x, Spot: y, name: z}}\n"
        "sectors:\n"
        "  a:\n"
        "    fleets:\n"
        "    - {size: huge, min_capacity: many}\n"
        "  b c:\n"
        "    kind: cpu\n"
        "    labels: {fleet: x}\n"
        "    fleets: []\n"
        "  b c:\n"
        "    kind: cpu\n"
    )
    assert [(code, line) for code, _, line, _ in found(text)] == [
        ("config/range", 1),
        ("config/unknown-key", 2),
        ("default-sector/unknown", 3),
        ("tags/reserved", 4),
        ("tags/reserved", 4),
        ("tags/reserved", 4),
        ("sector/kind", 6),
        ("sector/unknown-size", 8),
        ("config/type", 8),
        ("name/label", 9),
        ("labels/reserved", 11),
        ("config/syntax", 13),
    ]


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("slep_interval: 1\n", "did you mean sleep_interval?"),
        ("Cluster: a\n", "did you mean cluster?"),
        ("scale_in: {idle_treshold: 1}\n", "did you mean idle_threshold?"),
        (with_fleets("{size: small, max_capacty: 1}"), "did you mean max_capacity?"),
        ("descheduler: {policies: {RemoveDuplicate: {}}}\n", "did you mean RemoveDuplicates?"),
    ],
)
def test_unknown_key_message_names_the_nearest_known_key(text: str, nearest: str) -> None:
    """A typo would take a look into the documentation instead of a glance."""
    (problem,) = problems_of(text)
    assert nearest in problem.message


def test_tags_of_three_levels_count_together_where_the_limit_is_crossed() -> None:
    """EC2 would refuse the fleet's 51st tag in the middle of an apply."""

    def tags(prefix: str, count: int) -> str:
        return "{tags: {" + ", ".join(f"{prefix}{n}: x" for n in range(count)) + "}}"

    def text(top: int, sector: int, fleet: int) -> str:
        return (
            f"terraform: {tags('t', top)}\n"
            "sectors:\n  a:\n    kind: cpu\n"
            f"    terraform: {tags('s', sector)}\n"
            f"    fleets:\n    - size: small\n      terraform: {tags('f', fleet)}\n"
        )

    assert found(text(20, 20, 2)) == []
    path = "sectors.a.fleets[0].terraform.tags"
    assert [(code, where) for code, where, _, _ in found(text(20, 20, 3))] == [("tags/limit", path)]
    assert found(text(20, 23, 1))[0][1] == "sectors.a.terraform.tags"
    assert found(text(43, 1, 1))[0][1] == "terraform.tags"


def test_same_tag_key_on_three_levels_counts_once() -> None:
    """An override must not be taken for one more tag."""
    keys = "{tags: {" + ", ".join(f"k{n}: x" for n in range(42)) + "}}"
    text = (
        f"terraform: {keys}\nsectors:\n  a:\n    kind: cpu\n    terraform: {keys}\n"
        f"    fleets:\n    - size: small\n      terraform: {keys}\n"
    )
    assert found(text) == []


def test_cluster_name_from_command_line_makes_its_tag_reserved() -> None:
    """A config without a cluster would smuggle the ownership tag past the check."""
    text = "terraform: {tags: {kubernetes.io/cluster/prod: owned}}\n"
    assert found(text) == []
    assert [code for code, *_ in found(text, cluster_name="prod")] == ["tags/reserved"]


def test_two_sectors_whose_fleets_share_a_full_name_are_duplicates() -> None:
    """Two fleets with one `fleet` tag would be taken for one."""
    size = "sizes: {b-small: {cpu: 1, memory: 1Gi, instance_types: [t3.small]}}\n"
    text = size + (
        "sectors: {a-b: {kind: cpu, fleets: [{size: small}]},"
        " a: {kind: cpu, fleets: [{size: b-small}]}}\n"
    )
    assert [code for code, *_ in found(text)] == ["sector/duplicate-fleet"]


def test_slack_hook_is_never_shown() -> None:
    """A webhook in a CI log lets anyone post to the team's channel."""
    (problem,) = problems_of("notifications: {slack_hook: secret-word}\n")
    assert "secret-word" not in problem.message
    config = config_of("notifications: {slack_hook: https://hooks.example/secret-word}\n")
    assert "secret-word" not in repr(config)
    hook = config.notifications.slack_hook.get_secret_value()
    assert hook == "https://hooks.example/secret-word"


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


@pytest.mark.parametrize("key", ["aws:name", "AWS:name", "Aws:"])
def test_aws_prefix_is_reserved_in_any_case(key: str) -> None:
    """EC2 refuses it in any case, in the middle of an apply."""
    text = f"terraform: {{tags: {{'{key}': x}}}}\n"
    assert [code for code, *_ in found(text)] == ["tags/reserved"]


def test_label_that_the_kubelet_refuses_is_reserved() -> None:
    """Nodes with it never join: the kubelet ends at once."""
    refused = "{size: small, labels: {node-role.kubernetes.io/batch: x}}"
    assert [code for code, *_ in found(with_fleets(refused))] == ["labels/reserved"]
    allowed = "{size: small, labels: {node.kubernetes.io/pool: x, team.io/a: ''}}"
    assert found(with_fleets(allowed)) == []


@pytest.mark.parametrize(
    "part",
    [
        "labels: {-bad: x}",
        "labels: {good: bad value}",
        "taints: [{key: 'a b', effect: NoSchedule}]",
        "taints: [{key: a, value: 'b c', effect: NoSchedule}]",
        "taints: [{key: fleet-reconciler.io/draining, effect: NoSchedule}]",
    ],
)
def test_malformed_label_or_taint_is_a_name_fault(part: str) -> None:
    """The API server would refuse the node."""
    assert [c for c, *_ in found(with_fleets(f"{{size: small, {part}}}"))] == ["name/label"]
