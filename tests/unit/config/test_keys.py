"""Every key of every section: a value that it takes, what becomes of it, and one it refuses."""

from datetime import time
from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from reconciler.config.json_schema import sections
from reconciler.config.schema import SectorConfig
from tests.unit.config.documents import config_of, found
from tests.unit.config.key_places import PLACES, TOGETHER
from tests.unit.config.launch_template_keys import (
    LAUNCH_TEMPLATE_KEYS,
    LAUNCH_TEMPLATE_VARIABLES,
)

TYPE, RANGE = "config/type", "config/range"
BOOLEAN = ("true", True, "'true'", TYPE)
COUNT = ("3", 3, "-1", RANGE)
OPTIONAL_COUNT = ("0", 0, "1.5", TYPE)
SECONDS = ("2m", 120.0, "-1s", RANGE)
POSITIVE_SECONDS = ("1h30m", 5400.0, "0", RANGE)
NAMES = ("[a, 1]", ("a", "1"), "a", TYPE)
QUEUE = "https://sqs.us-west-2.amazonaws.com/123456789012/interruptions"
TEXT = ("some", "some", "[a]", TYPE)
KEY_ARN = "arn:aws:kms:us-west-2:123456789012:key/a-b"
NAME = ("1234", "1234", "{a: b}", TYPE)
PRICE = ("0.25", Decimal("0.25"), "-1", RANGE)
SUBSECTION = ("{}", ..., "[]", TYPE)
POLICY = ("{enabled: true}", ..., "{enable: true}", "config/unknown-key")
TEXTS = ("{a: 1, b: true}", {"a": "1", "b": "true"}, "{a: [1]}", TYPE)
AMOUNTS = ("{cpu: 1500m, memory: 1Gi}", {"cpu": 1500, "memory": 2**30}, "{cpu: -1}", RANGE)

KEYS: dict[str, dict[str, tuple[str, Any, str, str]]] = {
    "SectorConfig": {
        "cluster": ("a", "a", "1234", TYPE),
        "regions": ("[us-west-2]", ("us-west-2",), "[mars]", TYPE),
        "sleep_interval": ("20", 20.0, "0", RANGE),
        "default_over_subscription": ("0.3", 0.3, "11", RANGE),
        "reserved_cpus": ("250m", 250, "half", TYPE),
        "reserved_memory": ("2.5Gi", 2_684_354_560, "2.5Gig", TYPE),
        "default_sector": ("~", None, "[a]", TYPE),
        "expander": ("least-waste", "least-waste", "cheap", TYPE),
        "expander_priorities": ("{10: [spot, '^a']}", {10: ("spot", "^a")}, "{10: ['(']}", TYPE),
        "balance_similar_groups": ("yes", True, "maybe", TYPE),
        "balancing_ignore_labels": ("[a.b/c]", ("a.b/c",), "[a=b]", TYPE),
        "balancing_labels": ("[team]", ("team",), "[a b]", TYPE),
        "instance_init_time": POSITIVE_SECONDS,
        "startup_taints": ("[a.b/c]", ("a.b/c",), "[a=b]", TYPE),
        "unready_time": SECONDS,
        "stuck_ends": SUBSECTION,
        "inactive_grace_periods": ("[{value: 60}]", ..., "{value: 60}", TYPE),
        "timezone": ("UTC", "UTC", "Mars/Olympus", TYPE),
        "maintenance_windows": ("[{days: [sat, 7]}]", ..., "[{days: [someday]}]", TYPE),
        "sizes": ("{}", {}, "[]", TYPE),
        "scale_in": SUBSECTION,
        "consolidation": ("yes", True, "maybe", TYPE),
        "spot_rescheduler": SUBSECTION,
        "descheduler": SUBSECTION,
        "rolling_update": SUBSECTION,
        "interruption": SUBSECTION,
        "spot_return": SUBSECTION,
        "disruption_budgets": ("[{nodes: 10%}]", ..., "[{nodes: many}]", TYPE),
        "blast_radius": ("{pods_per_controller: 2}", ..., "25%", TYPE),
        "headroom": ("[{sector: s, nodes: 1}]", ..., "[{nodes: 1}]", TYPE),
        "notifications": SUBSECTION,
        "recording": SUBSECTION,
        "tracing": SUBSECTION,
        "leader_election": SUBSECTION,
        "max_hourly_usd": PRICE,
        "raise_limits": SUBSECTION,
        "allow_destroy": NAMES,
        "terraform": SUBSECTION,
        "sectors": ("{}", {}, "none", TYPE),
        "critical_error_threshold": ("7", 7, "0", RANGE),
        "max_logging_interval": SECONDS,
        "config_refresh_interval": POSITIVE_SECONDS,
        "kubeconfig": TEXT,
        "kube_context": TEXT,
        "catalogue": ("prices.json", "prices.json", "''", TYPE),
        "pod_namespace": TEXT,
        "dry_run": BOOLEAN,
        "verbosity": ("3", 3, "4", RANGE),
        "listen_hosts": ("[status.example]", ("status.example",), "['a b']", TYPE),
        "listen_token_file": TEXT,
        "listen": ("0.0.0.0:80", "0.0.0.0:80", "80", TYPE),
    },
    "GracePeriod": {
        "starts": ("8:00", time(8), "8.30", TYPE),
        "ends": ("24:00", time(0), "24:01", RANGE),
        "days": ("[mon, 7, Friday]", (1, 7, 5), "[0]", RANGE),
        "value": ("900", 900.0, "later", TYPE),
    },
    "LeaderElection": {
        "enabled": BOOLEAN,
        "lease_duration": ("30s", 30.0, "10s", RANGE),
        "renew_deadline": ("12s", 12.0, "15s", RANGE),
        "retry_period": ("3s", 3.0, "0", RANGE),
        "namespace": TEXT,
    },
    "RaiseLimits": dict.fromkeys(("nodes_per_cycle", "nodes_per_hour"), COUNT)
    | dict.fromkeys(("hourly_usd_per_cycle", "hourly_usd_per_hour"), PRICE),
    "MaintenanceWindow": {
        "starts": ("'22:30'", time(22, 30), "x", TYPE),
        "ends": ("6:15", time(6, 15), "6:60", TYPE),
        "days": ("[sun]", (7,), "sun", TYPE),
    },
    "ScaleIn": {
        "idle_threshold": SECONDS,
        "type_idle_threshold": SECONDS,
        "type_spares": COUNT,
        "utilization_threshold": ("0.4", 0.4, "1.01", RANGE),
        "unneeded_time": SECONDS,
        "settle_time": SECONDS,
        "consolidate_after": SECONDS,
        "move_cost_usd": PRICE,
        "max_empty_at_once": COUNT,
        "max_non_empty_at_once": COUNT,
        "pod_eviction_timeout": SECONDS,
        "max_graceful_termination": SECONDS,
        "move_bare_pods": BOOLEAN,
        "move_local_storage": BOOLEAN,
        "move_system_pods": BOOLEAN,
    },
    "StuckEnds": {
        "per_cycle": ("0", 0, "201", RANGE),
        "per_hour": ("100", 100, "-1", RANGE),
    },
    "SpotRescheduler": {
        "enabled": BOOLEAN,
        "housekeeping_interval": POSITIVE_SECONDS,
        "node_drain_delay": SECONDS,
        "pod_eviction_timeout": SECONDS,
        "max_graceful_termination": SECONDS,
        "on_demand_node_label": ("a=b", "a=b", "[a]", TYPE),
        "spot_node_label": ("a", "a", "true", TYPE),
        "delete_non_replicated_pods": BOOLEAN,
    },
    "RollingUpdate": {
        "enabled": BOOLEAN,
        "min_in_service": OPTIONAL_COUNT,
        "max_batch": ("2", 2, "0", RANGE),
        "pause": SECONDS,
        "canary_time": SECONDS,
    },
    "SpotReturn": {"enabled": BOOLEAN, "stable_for": SECONDS},
    "DisruptionBudget": {
        "nodes": ("10%", "10%", "101%", RANGE),
        "starts": ("8:00", time(8), "25:00", TYPE),
        "ends": ("8:00", time(8), "25:00", TYPE),
        "days": ("[mon]", (1,), "[8]", RANGE),
        "reasons": ("[empty]", ("empty",), "empty", TYPE),
        "schedule": ("0 2 * * 6", "0 2 * * 6", "0 2 * *", TYPE),
        "duration": POSITIVE_SECONDS,
    },
    "BlastRadiusLimit": {
        "pods_per_controller": ("25%", "25%", "0", RANGE),
        "per": POSITIVE_SECONDS,
    },
    "Headroom": {
        "sector": ("s", "s", "[a]", TYPE),
        "cpu": ("4", 4000, "four", TYPE),
        "memory": ("16Gi", 2**34, "-1", RANGE),
        "nodes": ("1", 1, "0", RANGE),
        "percent": ("10", 10.0, "101", RANGE),
    },
    "Interruption": {
        "queue_url": (QUEUE, QUEUE, "https://sqs.us-west-2.amazonaws.com/queue", TYPE),
        "rebalance": ("ignore", "ignore", "wait", TYPE),
    },
    "Notifications": {"slack_hook": ("https://h/x", SecretStr("https://h/x"), "hook", TYPE)},
    "Recording": {
        "path": ("/recorded", "/recorded", "recorded", TYPE),
        "keep": POSITIVE_SECONDS,
    },
    "Tracing": {"endpoint": ("http://c:4318", "http://c:4318", "c:4318", TYPE)},
    "OwnSize": {
        "cpu": ("3.5", 3500, "four", TYPE),
        "memory": ("16Gi", 2**34, "-1", RANGE),
        "instance_types": ("[t3.small]", ("t3.small",), "[small]", TYPE),
        "kind": NAME,
        "pods": ("20", 20, "0", RANGE),
        "ephemeral_storage": ("20Gi", 20 * 2**30, "x", TYPE),
        "extended": ("{nvidia.com/gpu: 2}", {"nvidia.com/gpu": 2}, "{nvidia.com/gpu: x}", TYPE),
        "arch": ("arm64", "arm64", "arm", TYPE),
        "price_usd_per_hour": PRICE,
        "spot_price_usd_per_hour": PRICE,
        "allocatable": AMOUNTS,
    },
    "FleetEntry": {
        "size": ("small", "small", "[small]", TYPE),
        "min_capacity": ("3", 3, "-1", RANGE),
        "max_capacity": ("200", 200, "100001", RANGE),
        "initial_node_count": ("0", 0, "x", TYPE),
        "spot": ("off", False, "2", TYPE),
        "lifecycle": ("on-demand", "on-demand", "OnDemand", TYPE),
        "spot_fallback": ("on-demand", "on-demand", "spot", TYPE),
        "zone": ("us-west-2a", "us-west-2a", "[a]", TYPE),
        "regions": ("[eu-central-1]", ("eu-central-1",), "eu-central-1", TYPE),
        "labels": TEXTS,
        "taints": ("[{key: a, effect: NoExecute}]", ..., "[{key: a, effect: No}]", TYPE),
        "priority": ("-5", -5, "high", TYPE),
        "provider": ("ec2-fleet", "ec2-fleet", "gce", TYPE),
        "managed": BOOLEAN,
        "auto_scaling_group": ("~", None, "[a]", RANGE),
        "instance_types": ("[m5.large]", ("m5.large",), "[1]", TYPE),
        "allocatable": AMOUNTS,
        "price_usd_per_hour": PRICE,
        "inactive_grace_period": SECONDS,
        "inactive_grace_periods": ("[]", (), "900", TYPE),
        "bounce_deployment_pods": BOOLEAN,
        "expire_after": ("720h", 2_592_000.0, "0s", RANGE),
        "terminate_after": ("48h", 172_800.0, "-1s", RANGE),
        "scale_in": SUBSECTION,
        "disruption_budgets": ("[{nodes: 0}]", ..., "[{nodes: x}]", TYPE),
        "terraform": SUBSECTION,
    },
    "SectorEntry": {
        "kind": ("memory", "memory", "disk", "sector/kind"),
        "fleets": ("[]", (), "{}", TYPE),
        "over_subscription": ("0", 0.0, "-0.1", RANGE),
        "expander": ("random", "random", "none", TYPE),
        "labels": TEXTS,
        "taints": ("[]", (), "a=b:NoSchedule", TYPE),
        "max_hourly_usd": PRICE,
        "inactive_grace_periods": ("[]", (), "{}", TYPE),
        "scale_in": SUBSECTION,
        "disruption_budgets": ("[{nodes: 0}]", ..., "[{nodes: x}]", TYPE),
        "terraform": SUBSECTION,
        "regions": ("[us-east-1]", ("us-east-1",), "[x]", TYPE),
    },
    "Taint": {
        "key": ("a.example/b", "a.example/b", "[a]", TYPE),
        "value": ("1234", "1234", "[a]", TYPE),
        "effect": ("PreferNoSchedule", "PreferNoSchedule", "Prefer", TYPE),
    },
    "TerraformVariables": {
        "ami": ("al2023@latest", "al2023@latest", "image", TYPE),
        "architecture": ("arm64", "arm64", "amd64", TYPE),
        "kubernetes_version": ("1.35", "1.35", "1.35.1", TYPE),
        "ami_type": ("AL2", "AL2", "WINDOWS", TYPE),
        "security_group_id": ("sg-0", "sg-0", "0", TYPE),
        "security_group_tags": TEXTS,
        "subnet_tags": TEXTS,
        "private_subnet_ids": ("{a: subnet-0}", {"a": "subnet-0"}, "{a: b}", TYPE),
        "ssh_key_name": NAME,
        "instance_profile_name": NAME,
        "metadata_hop_limit": ("2", 2, "65", RANGE),
        "ebs_size": ("50", 50, "0", RANGE),
        "ebs_type": ("gp2", "gp2", "st1", TYPE),
        "ebs_iops": ("3000", 3000, "99", RANGE),
        "ebs_throughput": ("125", 125, "1001", RANGE),
        "ebs_encrypted": BOOLEAN,
        "ebs_kms_key_id": (KEY_ARN, KEY_ARN, "alias/a", TYPE),
        "max_price": ("0.25", Decimal("0.25"), "0", RANGE),
        "spot_allocation_strategy": ("diversified", "diversified", "best", TYPE),
        "cluster_endpoint": (
            "https://a, cluster_ca: YQ==, service_cidr: 10.0.0.0/8",
            "https://a",
            "a",
            TYPE,
        ),
        "cluster_ca": ("YQ==", "YQ==", "a b", TYPE),
        "service_cidr": ("10.100.0.0/16", "10.100.0.0/16", "[]", TYPE),
        "max_pods": ("110", 110, "738", RANGE),
        "kube_reserved": ("{cpu: 1}", {"cpu": "1"}, "1", TYPE),
        "system_reserved": ("{cpu: 1}", {"cpu": "1"}, "1", TYPE),
        "eviction_hard": ("{memory.available: 5%}", {"memory.available": "5%"}, "5%", TYPE),
        "node_labels": TEXTS,
        "node_taints": ("a=b:NoSchedule,c:NoExecute", ..., "a=b", TYPE),
        "on_demand_prefer_no_schedule_taint": BOOLEAN,
        "tags": TEXTS,
    },
    "Backend": {
        "bucket": ("states", "states", "s3://states", TYPE),
        "key": ("a.tfstate", "a.tfstate", "/a.tfstate", TYPE),
        "region": ("us-east-1", "us-east-1", "here", TYPE),
        "use_lockfile": BOOLEAN,
        "encrypt": BOOLEAN,
        "kms_key_id": ("alias/a", "alias/a", "hello", TYPE),
        "endpoint": ("http://127.0.0.1:5000", "http://127.0.0.1:5000", "s3", TYPE),
    },
    "Descheduler": {
        "enabled": BOOLEAN,
        "interval": POSITIVE_SECONDS,
        "policies": SUBSECTION,
        "policy_file": TEXT,
        "max_evictions_per_node": OPTIONAL_COUNT,
        "max_evictions_per_namespace": OPTIONAL_COUNT,
        "max_evictions_per_cycle": OPTIONAL_COUNT,
    },
    "Policies": {
        "RemoveDuplicates": POLICY,
        "LowNodeUtilization": ("{thresholds: {cpu: 20}}", ..., "{thresholds: {cpu: 101}}", RANGE),
        "HighNodeUtilization": ("{enabled: true, thresholds: {cpu: 20}}", *POLICY[1:]),
        "RemovePodsViolatingInterPodAntiAffinity": POLICY,
        "RemovePodsViolatingNodeAffinity": ("{nodeAffinityType: []}", ..., "{nodeFit: 1}", TYPE),
        "RemovePodsViolatingNodeTaints": POLICY,
        "RemovePodsViolatingTopologySpreadConstraint": POLICY,
        "RemovePodsHavingTooManyRestarts": POLICY,
        "PodLifeTime": ("{maxPodLifeTimeSeconds: 60}", ..., "{maxPodLifeTimeSeconds: -1}", RANGE),
        "RemoveFailedPods": ("{exitCodes: [1]}", ..., "{exitCodes: [x]}", TYPE),
    },
}
KEYS |= LAUNCH_TEMPLATE_KEYS
KEYS["TerraformVariables"] |= LAUNCH_TEMPLATE_VARIABLES
KEYS["Terraform"] = {
    **KEYS["TerraformVariables"],
    "backend": ("~", None, "[]", TYPE),
    "by_region": ("{us-east-1: {ami: ami-1}}", ..., "{us-east-1: {ami: x}}", TYPE),
}
KEYS["Policies"]["RemovePodsViolatingNodeAffinity"] = (
    "{nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]}",
    ...,
    "{nodeAffinityType: [required]}",
    TYPE,
)


CASES = [(section, key) for section, keys in KEYS.items() for key in keys]


def document(section: str, key: str, value: str) -> str:
    """A config in which one key has a value and nothing else is wrong."""
    template, needed, _ = PLACES[section]
    others = [part for part in _split(needed) if not part.startswith(f"{key}:")]
    if value and (section, key) in TOGETHER:
        others.append(TOGETHER[section, key])
    body = "{" + ", ".join([*others, f"{key}: {value}"]) + "}"
    return template.replace("BODY", body) + "\n"


def _split(needed: str) -> list[str]:
    """The entries of a flow mapping without nested commas."""
    return [part.strip() for part in needed.split(", ")] if needed else []


def section_of(config: SectorConfig, section: str) -> Any:
    """The model of a section in a config."""
    current: Any = config
    for step in PLACES[section][2]:
        if isinstance(step, int) or isinstance(current, dict):
            current = current[step]
        else:
            current = getattr(current, str(step))
    return current


@pytest.mark.parametrize(("section", "key"), CASES)
def test_key_takes_a_good_value_in_its_final_type(section: str, key: str) -> None:
    """A value that arrives in another unit or type would be acted on in that unit."""
    good, expected, _, _ = KEYS[section][key]
    text = document(section, key, good)
    assert found(text) == []
    model = section_of(config_of(text), section)
    fields = {field.alias or name: name for name, field in type(model).model_fields.items()}
    if expected is not ...:
        assert getattr(model, fields[key]) == expected


@pytest.mark.parametrize(("section", "key"), CASES)
def test_key_refuses_a_bad_value_at_its_place(section: str, key: str) -> None:
    """A bad value that is let through surfaces as an outage instead of a red pull request."""
    _, _, bad, code = KEYS[section][key]
    text = document(section, key, bad)
    faults = found(text)
    assert [fault[0] for fault in faults][:1] == [code]
    assert all(key in path for _, path, _, _ in faults)


@pytest.mark.parametrize(("section", "key"), CASES)
def test_key_without_a_value_is_as_good_as_no_key(section: str, key: str) -> None:
    """`max_capacity:` with nothing behind it is how people switch a limit off."""
    if section == "Headroom":
        # It would keep nothing, so one of its other keys is needed.
        codes = [RANGE, TYPE] if key == "sector" else [RANGE]
        assert [fault[0] for fault in found(document(section, key, ""))] == codes
    elif f"{key}:" in PLACES[section][1]:
        code = "sector/kind" if key == "kind" else TYPE
        assert [fault[0] for fault in found(document(section, key, ""))] == [code]
    else:
        assert found(document(section, key, "")) == []


def test_table_covers_every_key_of_the_schema() -> None:
    """A key that nobody tested is a key that nobody knows."""
    arguments = {"Namespaces", "LabelSelector", "LabelExpression", "EvictableNamespaces"}
    for model in sections():
        name = model.__name__
        if name in KEYS:
            assert set(KEYS[name]) == {f.alias or k for k, f in model.model_fields.items()}, name
        else:
            assert model.__module__ == "reconciler.config.descheduler" or name in arguments, name
