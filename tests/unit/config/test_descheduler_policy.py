"""DeschedulerPolicy files of descheduler/v1alpha2."""

from pathlib import Path

import pytest

from reconciler.config.descheduler import Policies
from reconciler.config.loader import load_config
from reconciler.config.schema import SectorConfig
from reconciler.model.errors import ConfigError

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
      targetThresholds: {cpu: 50, memory: 50}
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


def load(tmp_path: Path, policy: str, extra: str = "") -> SectorConfig:
    """A config with a policy file beside it."""
    (tmp_path / "policy.yaml").write_text(policy)
    file = tmp_path / "sectors.yaml"
    file.write_text(f"descheduler:\n  enabled: true\n  policy_file: policy.yaml\n{extra}")
    return load_config(file)


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


def test_missing_policy_file_is_a_fault_beside_the_others(tmp_path: Path) -> None:
    """All faults in one go, those of the config too."""
    file = tmp_path / "sectors.yaml"
    file.write_text("descheduler: {policy_file: none.yaml}\nbogus: 1\n")
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert [p.code for p in caught.value.problems] == ["config/type", "config/unknown-key"]
