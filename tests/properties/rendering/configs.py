"""Random sector configs: valid ones over the whole schema, and texts that hope to be code."""

from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

Document = dict[str, Any]

CODE = (
    '${file("/etc/passwd")}',
    "%{ for x in [1] }${x}%{ endfor }",
    "$${escaped} %%{escaped}",
    '" } resource "aws_iam_user" "x" { name = "x',
    '"\n}\nprovider "aws" { profile = "x" }\n',
    '\\${x} \\" \\u0041 \\n',
    '", "injected": "yes',
    "{{ 7 * 7 }} {% raw %} {# note #}",
    "$(id) `id` ; rm -rf / | x & < >",
    "<<EOT\nx\nEOT\n",
    "# comment // /* */",
    "*/ 'single' null true 1e3 ~",
    "ünïcode 日本語 😀 \u202e\u2028\u2029\ufeff",
    "line\r\nbreak\ttab",
)
"""What HCL, JSON, YAML, Jinja or a shell would give a meaning to."""
ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
TYPES = ("m5.xlarge", "r5.large", "c6i.2xlarge", "r6g.xlarge", "g4dn.xlarge", "u-6tb1.metal")
_CONTROL = st.characters(exclude_categories=("Cc", "Cs"))
_LABEL = st.from_regex(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?", fullmatch=True)
_PRINTABLE_CODE = tuple(text for text in CODE if text.isprintable() or text.isascii() is False)


def _may_be_in_a_key(code: str) -> bool:
    """Whether S3 and Terraform take it in the name of an object."""
    return code.isprintable() and "//" not in code


def _tag_text(longest: int) -> st.SearchStrategy[str]:
    usable = [c for c in CODE if not any(ord(x) < 32 for x in c)]
    drawn = st.one_of(st.text(_CONTROL, max_size=longest), st.sampled_from(usable))
    long = st.integers(longest - 2, longest).map(lambda n: ("ü${x}" * n)[:n])
    return st.one_of(drawn, long).map(lambda text: text[:longest])


def _tag_key() -> st.SearchStrategy[str]:
    taken = {"Name", "Spot", "cluster", "fleet", "sector", "kind", "size", "name", "managed"}
    return _tag_text(128).filter(
        lambda key: (
            bool(key)
            and key not in taken
            and not key.lower().startswith(("aws:", "kubernetes.io", "%"))
        )
    )


TAGS = st.dictionaries(_tag_key(), _tag_text(256), max_size=4)
LABELS = st.dictionaries(
    st.one_of(_LABEL, _LABEL.map(lambda name: f"example.com/{name}")).filter(
        lambda key: key not in {"sector", "fleet", "size", "pool_size", "kind", "lifecycle"}
    ),
    st.one_of(st.just(""), _LABEL),
    max_size=3,
)
TAINTS = st.lists(
    st.fixed_dictionaries(
        {
            "key": _LABEL.map(lambda name: f"example.com/{name}"),
            "value": st.one_of(st.just(""), _LABEL),
            "effect": st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
        }
    ),
    max_size=2,
    unique_by=lambda taint: (taint["key"], taint["effect"]),
)


def _optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries({}, optional=fields)


_VOLUMES: st.SearchStrategy[Document] = st.sampled_from(
    [
        {},
        {"ebs_type": "gp3", "ebs_iops": 4000, "ebs_throughput": 250},
        {"ebs_type": "gp2"},
        {"ebs_type": "io1", "ebs_iops": 100, "ebs_encrypted": False},
        {"ebs_kms_key_id": "arn:aws:kms:us-west-2:123456789012:key/a-b"},
    ]
)
_ENDPOINTS: st.SearchStrategy[Document] = st.sampled_from(
    [
        {},
        {
            "cluster_endpoint": "https://a.example:443",
            "cluster_ca": "YQ==",
            "service_cidr": "10.0.0.0/16",
        },
        {
            "ami_type": "BOTTLEROCKET",
            "cluster_endpoint": "https://b.example",
            "cluster_ca": "YQ==",
        },
    ]
)
_RESERVED: st.SearchStrategy[Document] = st.sampled_from(
    [{}, {"cpu": "100m", "memory": "1Gi"}, {"ephemeral-storage": "2Gi"}]
)
_VARIABLES: st.SearchStrategy[Document] = _optional(
    tags=TAGS,
    node_labels=LABELS,
    node_taints=TAINTS,
    ssh_key_name=st.sampled_from(["", *_PRINTABLE_CODE]),
    instance_profile_name=st.sampled_from(["", "node", "nodes+=,.@-_"]),
    metadata_hop_limit=st.integers(1, 64),
    ebs_size=st.integers(1, 65_536),
    max_pods=st.integers(0, 737),
    kube_reserved=_RESERVED,
    system_reserved=_RESERVED,
    eviction_hard=st.sampled_from([{}, {"memory.available": "5%", "nodefs.available": "1Gi"}]),
    on_demand_prefer_no_schedule_taint=st.booleans(),
    spot_allocation_strategy=st.sampled_from(
        ["price-capacity-optimized", "capacity-optimized", "diversified", "lowestPrice"]
    ),
)


@st.composite
def _fleet(draw: st.DrawFn, size: str, zone: str | None) -> Document:
    lowest = draw(st.integers(0, 50))
    spot = draw(st.booleans())
    fleet: Document = {"size": size, "spot": spot, "min_capacity": lowest}
    fleet |= draw(
        _optional(
            max_capacity=st.integers(lowest + 50, 1000),
            initial_node_count=st.integers(lowest, lowest + 50),
            labels=LABELS,
            taints=TAINTS,
            priority=st.integers(-5, 5),
            instance_types=st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
            spot_fallback=st.sampled_from(["none", "on-demand"]),
            expire_after=st.sampled_from(["24h", "90m", 3600]),
            inactive_grace_period=st.sampled_from(["10m", 0]),
            scale_in=st.just({"utilization_threshold": 0.4}),
            terraform=_optional(
                tags=TAGS,
                ebs_size=st.integers(1, 500),
                **({"max_price": st.just(0.25)} if spot else {}),
            ),
        )
    )
    return fleet | ({} if zone is None else {"zone": zone})


@st.composite
def _sector(draw: st.DrawFn, own_sizes: list[str]) -> Document:
    sizes = st.sampled_from(["xsmall", "small", "medium", "large", "xlarge", *own_sizes])
    chosen = draw(st.lists(sizes, min_size=1, max_size=3, unique=True))
    fleets: list[Document] = []
    for size in chosen:
        zones = draw(st.lists(st.sampled_from(ZONES), max_size=2, unique=True))
        chosen_zones: list[str | None] = [*zones] or [None]
        fleets += [draw(_fleet(size, zone)) for zone in chosen_zones]
    sector: Document = {"kind": draw(st.sampled_from(["memory", "cpu"])), "fleets": fleets}
    return sector | draw(
        _optional(
            labels=LABELS,
            taints=TAINTS,
            over_subscription=st.floats(0, 10),
            expander=st.sampled_from(["cost", "least-waste", "most-pods", "random", "priority"]),
            max_hourly_usd=st.integers(1, 10_000),
            terraform=_optional(tags=TAGS, node_labels=LABELS),
        )
    )


@st.composite
def valid_configs(draw: st.DrawFn) -> Document:
    """A config that keeps every rule, with texts that only look as if they did not."""
    own = draw(st.lists(_LABEL.map(lambda n: f"o{n}"), max_size=2, unique=True))
    names = draw(st.lists(_LABEL, min_size=1, max_size=3, unique=True))
    subnets = {zone: f"subnet-{zone[-1]}0a" for zone in ZONES}
    terraform: Document = {
        "ami": "ami-0aa",
        "security_group_id": "sg-0aa",
        "private_subnet_ids": subnets,
        **draw(_VARIABLES),
        **draw(_VOLUMES),
        **draw(_ENDPOINTS),
    }
    if draw(st.booleans()):
        key = st.sampled_from([f"a/{code}.tfstate" for code in CODE if _may_be_in_a_key(code)])
        bucket = st.from_regex(r"[a-z0-9][-a-z0-9.]{1,20}[a-z0-9]", fullmatch=True)
        terraform["backend"] = {"bucket": draw(bucket), "key": draw(key), "region": "us-west-2"}
        more = _optional(
            use_lockfile=st.booleans(),
            encrypt=st.booleans(),
            kms_key_id=st.sampled_from(["", "alias/a", f"mrk-{'0a' * 16}"]),
            endpoint=st.sampled_from(['https://s3.example/${x}"', "http://127.0.0.1:1"]),
        )
        terraform["backend"] |= draw(more)
    document: Document = {
        "cluster": draw(_LABEL),
        "regions": ["us-west-2"],
        "terraform": terraform,
        "sectors": {name: draw(_sector(own)) for name in names},
    }
    if own:
        document["sizes"] = {
            name: {"cpu": "2", "memory": "16Gi", "instance_types": ["r5.large"]} for name in own
        }
    return document | draw(
        _optional(
            sleep_interval=st.sampled_from([1, "30s"]),
            default_over_subscription=st.floats(0, 10),
            reserved_memory=st.sampled_from(["1Gi", 1000]),
            timezone=st.sampled_from(["UTC", "Europe/Berlin"]),
            consolidation=st.booleans(),
            scale_in=st.just({"idle_threshold": "5m"}),
            max_hourly_usd=st.integers(100, 10_000),
            allow_destroy=st.lists(_LABEL, max_size=2, unique=True),
            rolling_update=st.just({"enabled": True}),
        )
    )


def drawn(count: int) -> tuple[str, ...]:
    """So many different valid configs as YAML, the same ones each time."""
    found: dict[str, None] = {}

    @settings(
        max_examples=2 * count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(valid_configs())
    def collect(document: Document) -> None:
        if len(found) < count:
            text: str = yaml.safe_dump(document, allow_unicode=True, width=10_000, sort_keys=False)
            found.setdefault(text)

    collect()
    assert len(found) == count
    return tuple(found)
