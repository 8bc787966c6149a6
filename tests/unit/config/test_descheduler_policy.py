"""DeschedulerPolicy files of descheduler/v1alpha2."""

import os
from pathlib import Path

import pytest

from reconciler.config.descheduler import Policies
from reconciler.config.loader import load_config, read_config
from reconciler.config.planning.descheduler import descheduler_settings
from reconciler.model.errors import ConfigError
from reconciler.planner.descheduler_settings import EvictorSettings, FailedPods, NodeTaints
from tests.unit.config.documents import config_of, load

POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictPerNode: 5
maxNoOfPodsToEvictTotal: 20
profiles:
- name: default
  pluginConfig:
  - name: DefaultEvictor
    args: {nodeFit: true, evictLocalStoragePods: true}
  - name: LowNodeUtilization
    args:
      thresholds: {cpu: 20, memory: 20, pods: 20}
      targetThresholds: {cpu: 50, memory: 50, pods: 50}
      evictableNamespaces: {exclude: [kube-system]}
  - name: RemovePodsHavingTooManyRestarts
    args: {podRestartThreshold: 10, includingInitContainers: true}
  plugins:
    filter: {enabled: [DefaultEvictor]}
    balance: {enabled: [LowNodeUtilization, RemoveDuplicates]}
    deschedule:
      enabled:
      - RemovePodsHavingTooManyRestarts
"""


def test_policy_file_enables_its_policies_with_their_arguments(tmp_path: Path) -> None:
    """Thresholds that are lost make the descheduler evict at its defaults."""
    descheduler = load(tmp_path, POLICY).descheduler
    policies = descheduler.policies
    enabled = [n for n in Policies.model_fields if getattr(policies, n).enabled]
    assert enabled == [
        "remove_duplicates",
        "low_node_utilization",
        "remove_pods_having_too_many_restarts",
    ]
    assert policies.low_node_utilization.thresholds == {"cpu": 20, "memory": 20, "pods": 20}
    assert policies.remove_pods_having_too_many_restarts.pod_restart_threshold == 10
    assert (descheduler.max_evictions_per_node, descheduler.max_evictions_per_cycle) == (5, 20)


def test_pod_protections_say_the_same_as_the_older_arguments(tmp_path: Path) -> None:
    """The chart's default policy names them; refused, the file's other arguments were lost too."""
    lists = (
        "{podProtections: {defaultDisabled: [PodsWithLocalStorage], extraEnabled: [PodsWithPVC]}}"
    )
    chart = POLICY.replace("{nodeFit: true, evictLocalStoragePods: true}", lists)
    older = POLICY.replace("nodeFit: true,", "ignorePvcPods: true,")
    made, same = (descheduler_settings(load(tmp_path, each).descheduler) for each in (chart, older))
    assert made == same
    assert made is not None
    assert made.profiles[0].evictor.local_storage
    assert made.profiles[0].evictor.claims_stay


@pytest.mark.parametrize(
    ("protections", "message"),
    [
        ("defaultDisabled: [DaemonSetPods]", "DaemonSet pods are never evicted"),
        ("extraEnabled: [PodsWithResourceClaims]", "ResourceClaims are not read"),
        ("extraEnabled: [PodsWithLocalStorage]", "must be 'PodsWithPVC' or"),
    ],
)
def test_protections_that_cannot_be_kept_are_refused(
    protections: str, message: str, tmp_path: Path
) -> None:
    """A protection that is passed over evicts what the file protects."""
    policy = POLICY.replace("nodeFit: true,", f"podProtections: {{{protections}}},")
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, policy)


def test_limit_of_the_config_wins_over_the_file(tmp_path: Path) -> None:
    """The config is what was reviewed last."""
    config = load(tmp_path, POLICY, "  max_evictions_per_node: 1\n")
    assert config.descheduler.max_evictions_per_node == 1


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (POLICY.replace("v1alpha2", "v1alpha1"), "policy.yaml:1:1: not a DeschedulerPolicy"),
        (POLICY.replace("cpu: 50", "cpu: 500"), "policy.yaml:13:26: LowNodeUtilization.target"),
        (POLICY.replace("RemoveDuplicates]", "Shuffle]"), "policy.yaml:19:45: unknown policy"),
        (POLICY.replace("podRestartThreshold", "restarts"), "policy.yaml:16:12: RemovePods"),
        ("a: b: c\n", "policy.yaml:1:5: not YAML"),
        ("", "policy.yaml:1:1: the file is empty"),
    ],
)
def test_unusable_policy_file_is_a_fault_of_its_key_with_the_file_place(
    tmp_path: Path, policy: str, message: str
) -> None:
    """The fault is in the other file; the config only says which."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, policy)
    (problem,) = caught.value.problems
    assert (problem.code, problem.line, problem.column) == ("config/type", 3, 3)
    assert message in problem.message


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (POLICY.replace("nodeFit: true", "nodeFit: false"), "9:12: DefaultEvictor.nodeFit"),
        (POLICY.replace("nodeFit: true", "evictDaemonSetPods: true"), "9:12: DefaultEvictor.evict"),
        (POLICY.replace("nodeFit: true", "noEvictionPolicy: x"), "9:12: DefaultEvictor.noEvict"),
        (POLICY.replace("nodeFit: true", "priorityThreshold: {name: high}"), "PriorityClasses"),
        (POLICY.replace("nodeFit: true", "nodeSelector: 'a in (b)'"), "is not `key=value`"),
        (f"{POLICY}metricsCollector: {{enabled: true}}\n", "1: key 'metricsCollector' is not"),
        (POLICY.replace("filter:", "score:"), "18:5: extension point 'score' is not"),
        (POLICY.replace("filter: {enabled", "filter: {disabled"), "18:5: nothing is enabled by"),
        (POLICY.replace("DefaultEvictor\n", "Evictor\n"), "8:5: unknown plugin 'Evictor'"),
        (POLICY.replace("cpu: 50,", "disk: 50,"), "must be of the same resources"),
        (POLICY.replace("cpu: 20,", "cpu: 60,"), "thresholds of cpu are above"),
        (POLICY.replace("RemoveDuplicates]", "HighNodeUtilization]"), "thresholds are missing"),
        (POLICY.replace("[LowNodeUtil", "[PodLifeTime, LowNodeUtil"), "maxPodLifeTimeSeconds is"),
        (
            POLICY.replace("Threshold: 10,", "Threshold: 10, states: [Crashed],"),
            "no pod or container is ever",
        ),
    ],
)
def test_what_would_not_be_done_is_refused_at_its_place(
    tmp_path: Path, policy: str, message: str
) -> None:
    """An argument that is passed over evicts pods that somebody meant to protect."""
    assert policy != POLICY
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, policy)
    (problem,) = caught.value.problems
    assert message in problem.message


def test_every_fault_of_a_policy_file_is_reported(tmp_path: Path) -> None:
    """Whoever moves a file here would run `validate` once for each of its faults."""
    policy = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
foo: 1
gracePeriodSeconds: soon
profiles:
- name: one
  pluginConfig:
  - name: DefaultEvictor
    args: {nodeFit: false, bar: 2}
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: -1, x: 2}
  - name: Other
  plugins:
    deschedule: {enabled: [PodLifeTime, Shuffle]}
- name: two
  pluginConfig:
  - name: LowNodeUtilization
    args: {thresholds: {cpu: 200}, targetThresholds: {cpu: 50}}
  plugins:
    score: {enabled: []}
    balance: {enabled: [LowNodeUtilization], disabled: [RemoveDuplicates]}
- 3
"""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, policy)
    messages = [problem.message.split(":", 3) for problem in caught.value.problems]
    assert [f"{line}:{column}" for _, line, column, _ in messages] == [
        "3:1",
        "4:1",
        "9:12",
        "9:28",
        "11:12",
        "11:39",
        "12:5",
        "14:41",
        "18:25",
        "20:5",
        "21:5",
        "22:3",
    ]
    assert {problem.line for problem in caught.value.problems} == {3}


def test_unknown_argument_of_a_policy_file_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    """Pydantic's own words ("Extra inputs are not permitted") do not say what to change."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, POLICY.replace("podRestartThreshold", "podRestartTreshold"))
    (problem,) = caught.value.problems
    assert problem.message == (
        "policy.yaml:16:12: RemovePodsHavingTooManyRestarts.podRestartTreshold: unknown key"
        " 'podRestartTreshold'; did you mean podRestartThreshold?"
    )


def test_profiles_keep_their_own_evictors(tmp_path: Path) -> None:
    """Two teams have two profiles; one evictor for both would evict the other's pods."""
    policy = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
nodeSelector: pool=web
gracePeriodSeconds: 20
profiles:
- name: one
  pluginConfig:
  - name: DefaultEvictor
    args:
      labelSelector: {matchLabels: {team: a}}
      priorityThreshold: {value: 10}
      nodeSelector: disk!=slow,!old
      minReplicas: 2
      minPodAge: 1h
  plugins: {deschedule: {enabled: [RemoveFailedPods]}}
- name: two
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
"""
    config = load(tmp_path, policy, "  interval: 60\n")
    settings = descheduler_settings(config.descheduler)
    assert settings is not None
    one, two = settings.profiles
    assert (one.policies, two.policies) == ((FailedPods(),), (NodeTaints(),))
    assert (one.evictor.priority_below, one.evictor.replicas_min) == (10, 2)
    assert one.evictor.age_min_seconds == 3600
    assert one.evictor.selector is not None
    assert one.evictor.selector.matches({"team": "a"})
    assert one.evictor.destinations is not None
    assert one.evictor.destinations.matches({"disk": "fast"})
    assert not one.evictor.destinations.matches({"disk": "slow"})
    assert not one.evictor.destinations.matches({"old": ""})
    assert two.evictor == EvictorSettings()
    assert settings.nodes is not None
    assert settings.nodes.matches({"pool": "web"})
    assert (settings.interval_seconds, settings.grace_seconds_max) == (60, 20)


def test_policies_of_the_config_are_one_profile() -> None:
    """All ten but one of the two that undo each other."""
    policies = ", ".join(
        f"{name}: {{enabled: true}}"
        for name in (field.alias for field in Policies.model_fields.values())
        if name not in {"HighNodeUtilization", "LowNodeUtilization", "PodLifeTime"}
    )
    more = "PodLifeTime: {enabled: true, maxPodLifeTimeSeconds: 60}, LowNodeUtilization: "
    more += "{enabled: true, thresholds: {cpu: 1}, targetThresholds: {cpu: 2}}"
    text = f"descheduler: {{enabled: true, policies: {{{policies}, {more}}}}}\n"
    settings = descheduler_settings(config_of(text).descheduler)
    assert settings is not None
    (profile,) = settings.profiles
    assert len(profile.policies) == 9
    assert descheduler_settings(config_of("sectors: {}\n").descheduler) is None


def test_policies_that_undo_each_other_are_refused() -> None:
    """Pods would go back and forth."""
    both = "{enabled: true, thresholds: {cpu: 1}, targetThresholds: {cpu: 2}}"
    high = "{enabled: true, thresholds: {cpu: 1}}"
    text = f"descheduler: {{policies: {{LowNodeUtilization: {both}, HighNodeUtilization: {high}}}}}"
    (problem,) = read_config(text).problems
    assert "undo each other" in problem.message


def test_policies_of_two_profiles_that_undo_each_other_are_refused(tmp_path: Path) -> None:
    """In profiles of their own they would do so as well."""
    policy = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: low
  pluginConfig:
  - name: LowNodeUtilization
    args: {thresholds: {cpu: 20}, targetThresholds: {cpu: 50}}
  plugins: {balance: {enabled: [LowNodeUtilization]}}
- name: high
  pluginConfig:
  - name: HighNodeUtilization
    args: {thresholds: {cpu: 20}}
  plugins: {balance: {enabled: [HighNodeUtilization]}}
"""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, policy)
    (problem,) = caught.value.problems
    assert "3:1: LowNodeUtilization and HighNodeUtilization undo each other" in problem.message


def test_missing_policy_file_is_a_fault_beside_the_others(tmp_path: Path) -> None:
    """All faults in one go, those of the config too."""
    file = tmp_path / "sectors.yaml"
    file.write_text("descheduler: {policy_file: none.yaml}\nbogus: 1\n")
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert [p.code for p in caught.value.problems] == ["config/type", "config/unknown-key"]


def test_policy_file_that_is_a_pipe_or_a_device_is_a_fault(tmp_path: Path) -> None:
    """`validate` waited for ever for what nobody writes, or read what never ends."""
    os.mkfifo(tmp_path / "pipe")
    for named in ("pipe", "/dev/zero"):
        file = tmp_path / "sectors.yaml"
        file.write_text(f"descheduler: {{policy_file: {named}}}\n")
        with pytest.raises(ConfigError) as caught:
            load_config(file)
        (problem,) = caught.value.problems
        assert "is not a regular file" in problem.message


def test_policy_file_of_a_mounted_config_map_is_read(tmp_path: Path) -> None:
    """The kubelet mounts each file of a ConfigMap as a link."""
    (tmp_path / "..data").mkdir()
    policy = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
    (tmp_path / "..data" / "policy.yaml").write_text(policy)
    (tmp_path / "policy.yaml").symlink_to(Path("..data") / "policy.yaml")
    file = tmp_path / "sectors.yaml"
    file.write_text("descheduler: {policy_file: policy.yaml}\n")
    assert load_config(file).descheduler.policy_file == "policy.yaml"
