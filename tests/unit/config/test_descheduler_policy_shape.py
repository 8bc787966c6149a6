"""DeschedulerPolicy files of another shape: what would be lost without a word is refused."""

from pathlib import Path

import pytest

from reconciler.config.planning.descheduler import descheduler_settings
from reconciler.model.errors import ConfigError
from reconciler.planner.descheduler_settings import TopologySpread
from tests.unit.config.documents import load

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles:\n"
RUN = "- plugins: {deschedule: {enabled: [RemoveFailedPods]}}\n"
ENTRY = f"{HEAD}{RUN}  pluginConfig:\n  - {{name: DefaultEvictor, "
PROTECTS = "args: {ignorePvcPods: true}}\n"


def refusal(tmp_path: Path, policy: str) -> str:
    """The one message with which a policy file is refused, its file name left out."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, policy)
    (problem,) = caught.value.problems
    return problem.message.removeprefix("policy.yaml:")


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            f"{ENTRY}arg: {{ignorePvcPods: true}}}}\n",
            "6:28: key 'arg' is not acted on here: take it out; known are args, name",
        ),
        (f"{ENTRY}args: [ignorePvcPods]}}\n", "6:28: args must be a mapping: write `args: {"),
        (f"{ENTRY}args: ignorePvcPods}}\n", "6:28: args must be a mapping: write `args: {"),
        (
            f"{HEAD}{RUN}  pluginConfig:\n    DefaultEvictor: {{ignorePvcPods: true}}\n",
            "5:3: pluginConfig must be a list: write `pluginConfig: [",
        ),
        (
            f"{ENTRY}{PROTECTS}  - {{name: DefaultEvictor, args: {{minReplicas: 2}}}}\n",
            "7:5: a second pluginConfig entry of DefaultEvictor: state all its args in one",
        ),
    ],
)
def test_arguments_of_another_shape_are_refused(tmp_path: Path, policy: str, message: str) -> None:
    """Protections that are lost without a word evict the pods that the file protects."""
    assert refusal(tmp_path, policy).startswith(message)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("- plugins: {deschedule: [RemoveFailedPods]}\n", "4:13: deschedule must be a mapping"),
        (
            "- plugins: {deschedule: {enabled: RemoveFailedPods}}\n",
            "4:26: enabled must be a list: write `enabled: [ITEM]`",
        ),
        (
            "- plugins: {deschedule: {disabled: RemoveFailedPods}}\n",
            "4:26: disabled must be a list",
        ),
        ("- plugins: [RemoveFailedPods]\n", "4:3: plugins must be a mapping"),
        ("  name: default\n", "3:1: profiles must be a list"),
        ("- default\n", "4:3: a profile must be a mapping: write `- name: NAME`"),
    ],
)
def test_plugins_of_another_shape_are_refused(tmp_path: Path, rest: str, message: str) -> None:
    """Policies that are lost without a word never run, and `validate` finds no fault."""
    assert refusal(tmp_path, HEAD + rest).startswith(message)


def test_empty_parts_of_a_policy_file_are_no_faults(tmp_path: Path) -> None:
    """A key without a value states nothing, as upstream reads it."""
    policy = f"{HEAD}- plugins: {{deschedule: , balance: {{enabled: , disabled: []}}}}\n"
    policy += "  pluginConfig:\n  - {name: DefaultEvictor, args: }\n- pluginConfig:\n  plugins:\n"
    assert load(tmp_path, policy).descheduler.enabled


@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize("rest", [RUN, "- name: default\n"])
def test_enabled_is_no_argument_of_a_policy_file(tmp_path: Path, value: str, rest: str) -> None:
    """Upstream has none: a policy ran that `plugins` does not list, and one that said false."""
    entry = f"  - {{name: RemoveFailedPods, args: {{enabled: {value}}}}}\n"
    message = refusal(tmp_path, f"{HEAD}{rest}  pluginConfig:\n{entry}")
    assert message.startswith(
        "6:37: RemoveFailedPods has no argument 'enabled': list what runs under `plugins`"
    )


@pytest.mark.parametrize(
    "text",
    ["gen>3", "gen<3", "!old=x", "a in (b)", "!", "=x", "a=b=c", "!a!=b", "a b", "a,,b"],
)
def test_node_selector_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    """Kubectl reads `gen>3` as a comparison; a label of that name is on no node at all."""
    policy = f"{HEAD}{RUN}nodeSelector: '{text}'\n"
    expected = "is not `key=value`, `key!=value`, `key` or `!key` of a label"
    assert expected in refusal(tmp_path, policy)


def test_node_selector_is_read_as_kubectl_reads_it(tmp_path: Path) -> None:
    """Spaces around a part count for nothing, and `==` is `=`."""
    text = "example.com/a == b, c != d , ! old, gpu"
    policy = f"{HEAD}{RUN}nodeSelector: '{text}'\n"
    settings = descheduler_settings(load(tmp_path, policy).descheduler)
    assert settings is not None
    assert settings.nodes is not None
    chosen = {"example.com/a": "b", "gpu": ""}
    assert settings.nodes.matches(chosen)
    for changed in ({"example.com/a": "x"}, {"c": "d"}, {"old": ""}):
        assert not settings.nodes.matches({**chosen, **changed})


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("operator: NotIn", "NotIn needs values: state at least one"),
        ("operator: In, values: []", "In needs values: state at least one"),
        ("operator: Exists, values: [x]", "Exists has no values: state In or NotIn, or no values"),
        ("operator: DoesNotExist, values: [x]", "DoesNotExist has no values"),
    ],
)
def test_label_expression_that_kubernetes_refuses_is_refused(
    tmp_path: Path, expression: str, message: str
) -> None:
    """NotIn whose values were forgotten chooses every pod, and all of them may go."""
    selector = f"labelSelector: {{matchExpressions: [{{key: team, {expression}}}]}}"
    assert message in refusal(tmp_path, f"{ENTRY}args: {{{selector}}}}}\n")


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("RemovePodsHavingTooManyRestarts", "podRestartThreshold: 0", "must be 1 or more, not 0"),
        ("RemovePodsViolatingNodeAffinity", "nodeAffinityType: []", "state at least one type"),
        (
            "RemovePodsViolatingNodeTaints",
            "excludedTaints: [a], includedTaints: [b]",
            "state `excludedTaints` or `includedTaints`, not both",
        ),
    ],
)
def test_arguments_that_upstream_refuses_are_refused(
    tmp_path: Path, name: str, args: str, message: str
) -> None:
    """A threshold of 0 evicts every pod, and without a type of affinity the policy does nothing."""
    entry = f"  pluginConfig:\n  - {{name: {name}, args: {{{args}}}}}\n"
    assert message in refusal(tmp_path, f"{HEAD}{RUN}{entry}")


def test_empty_list_of_constraints_is_the_default(tmp_path: Path) -> None:
    """Upstream takes DoNotSchedule then; a policy that looks at nothing is never meant."""
    name = "RemovePodsViolatingTopologySpreadConstraint"
    policy = f"{HEAD}- plugins: {{balance: {{enabled: [{name}]}}}}\n"
    policy += f"  pluginConfig:\n  - {{name: {name}, args: {{constraints: []}}}}\n"
    settings = descheduler_settings(load(tmp_path, policy).descheduler)
    assert settings is not None
    assert settings.profiles[0].policies == (TopologySpread(hard=True, soft=False),)
