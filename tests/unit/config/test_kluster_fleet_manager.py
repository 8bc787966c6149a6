"""Configs of Kluster Fleet Manager load unchanged and mean what they meant."""

from datetime import time

from tests.unit.config.documents import config_of, found

DOCUMENTED = """\
sleep_interval: 15
default_over_subscription: 0.25
reserved_cpus: 0.5
reserved_memory: 2Gi
sectors:
  control:
    kind: memory
    fleets:
    - size: small
      min_capacity: 2
  batch:
    kind: cpu
    fleets:
    - size: medium
      min_capacity: 0
    - size: large
      min_capacity: 0
      bounce_deployment_pods: yes
"""

COMPLETE = """\
cluster_name: lake
default_sector: batch
critical_error_threshold: 50
sleep_interval: 20
default_over_subscription: 0.2
reserved_cpus: 400m
reserved_memory: 3000000000
config_refresh_interval: 60
max_logging_interval: 120
inactive_grace_periods:
- starts: 8:00
  ends: 19:30
  days: [1, 2, 3, 4, 5]
  value: 1800
- starts: "22:00"
  ends: "6"
  value: 60
- starts: 0
  ends: 86400
sectors:
  batch:
    kind: cpu
    fleets:
    - size: small
      capacity_min: 3
      inactive_grace_period: 120
"""


def test_documented_config_means_what_it_meant() -> None:
    """Migration must be a change of the image and nothing else."""
    assert found(DOCUMENTED) == []
    config = config_of(DOCUMENTED)
    assert config.cluster is None
    assert config.sleep_interval_seconds == 15
    assert config.default_over_subscription == 0.25
    assert (config.reserved_cpu_milli, config.reserved_memory_bytes) == (500, 2 * 2**30)
    assert config.sectors["control"].fleets[0].min_capacity == 2
    assert [f.bounce_deployment_pods for f in config.sectors["batch"].fleets] == [False, True]


def test_every_key_that_its_code_reads_is_read() -> None:
    """A key that is only accepted but ignored changes the cluster silently."""
    assert found(COMPLETE) == []
    config = config_of(COMPLETE)
    assert (config.cluster, config.default_sector) == ("lake", "batch")
    assert config.critical_error_threshold == 50
    assert (config.reserved_cpu_milli, config.reserved_memory_bytes) == (400, 3_000_000_000)
    assert config.config_refresh_interval_seconds == 60
    assert config.max_logging_interval_seconds == 120
    fleet = config.sectors["batch"].fleets[0]
    assert (fleet.min_capacity, fleet.inactive_grace_period_seconds) == (3, 120)


def test_grace_periods_are_times_of_day_and_the_default_is_ten_minutes() -> None:
    """8:00 read as 480 s ends the working day's grace before it began."""
    periods = config_of(COMPLETE).inactive_grace_periods
    assert [(p.starts, p.ends, p.days, p.seconds) for p in periods] == [
        (time(8), time(19, 30), (1, 2, 3, 4, 5), 1800),
        (time(22), time(6), (), 60),
        (time(0), time(0), (), 600),
    ]


def test_both_names_of_the_minimum_may_agree() -> None:
    """People write both, because its documents and its code disagree."""
    text = "sectors: {a: {kind: cpu, fleets: [{size: small, min_capacity: 2, capacity_min: 2}]}}\n"
    assert found(text) == []
    assert config_of(text).sectors["a"].fleets[0].min_capacity == 2


def test_fault_under_the_older_name_points_at_it() -> None:
    """The fault must stand where the value was written, not where it would be now."""
    text = "sectors:\n  a:\n    kind: cpu\n    fleets:\n    - size: small\n      capacity_min: -2\n"
    assert found(text) == [("config/range", "sectors.a.fleets[0].capacity_min", 6, 7)]
    assert found("cluster_name: [x]\n") == [("config/type", "cluster_name", 1, 1)]
