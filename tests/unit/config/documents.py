"""Sector configs for tests, and what was found in them."""

from pathlib import Path

from reconciler.config.loader import load_config, parse_config
from reconciler.config.schema import SectorConfig
from reconciler.model.errors import ConfigError, Problem

COMPLETE = """\
cluster: analytics
regions: [us-west-2, us-east-1]
sleep_interval: 20
default_over_subscription: 0.2
reserved_cpus: 1.0
reserved_memory: 2.5Gi
default_sector: primary
expander: cost
instance_init_time: 900
inactive_grace_periods:
- {starts: "07:00", ends: "19:00", days: [mon, tue, wed, thu, fri], value: 900}
sizes:
  gpu-small: {kind: gpu, cpu: 4, memory: 16Gi, extended: {nvidia.com/gpu: 1},
              instance_types: [g5.xlarge]}
scale_in:
  idle_threshold: 10m
  utilization_threshold: 0.5
spot_rescheduler: {enabled: false, node_drain_delay: 10m}
descheduler: {enabled: false, policies: {}}
interruption: {queue_url: ""}
notifications: {slack_hook: ""}
terraform:
  ami: ami-0123456789abcdef0
  ebs_size: 50
  security_group_id: sg-0123456789abcdef0
  private_subnet_ids: {us-west-2a: subnet-aaa, us-west-2b: subnet-bbb}
  ssh_key_name: ""
  instance_profile_name: analytics-node
  tags: {environment: production}
sectors:
  coordinate:
    kind: memory
    fleets:
    - {size: small, min_capacity: 2, spot: false, initial_node_count: 2}
  primary:
    kind: memory
    over_subscription: 0.3
    fleets:
    - {size: small, min_capacity: 0, max_capacity: 200}
    - {size: medium, min_capacity: 0, terraform: {tags: {team: data}}}
    - {size: large, min_capacity: 0}
"""


def with_fleets(fleets: str) -> str:
    """A config with one sector, on one line; its first fleet begins in column 44."""
    return f"sectors: {{primary: {{kind: memory, fleets: [{fleets}]}}}}\n"


def config_of(text: str) -> SectorConfig:
    """The config that a text is."""
    return parse_config(text)


def problems_of(text: str | bytes, cluster_name: str | None = None) -> tuple[Problem, ...]:
    """Every fault of a text; none when it is clean."""
    try:
        parse_config(text, cluster_name=cluster_name)
    except ConfigError as error:
        return error.problems
    return ()


def found(text: str | bytes, cluster_name: str | None = None) -> list[tuple[str, str, int, int]]:
    """Code, path, line and column of every fault."""
    problems = problems_of(text, cluster_name)
    return [(p.code, p.path, p.line, p.column) for p in problems]


def load(tmp_path: Path, policy: str, extra: str = "") -> SectorConfig:
    """A config with a policy file beside it."""
    (tmp_path / "policy.yaml").write_text(policy)
    file = tmp_path / "sectors.yaml"
    file.write_text(f"descheduler:\n  enabled: true\n  policy_file: policy.yaml\n{extra}")
    return load_config(file)
