"""How faults are reported: all at once, with the key that was meant, without secrets."""

import pytest

from tests.unit.config.documents import config_of, found, problems_of, with_fleets


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
        (
            with_fleets("{size: small, idle_threshold: 1m}"),
            "'idle_threshold'; it belongs into scale_in",
        ),
        ("queue_url: x\n", "'queue_url'; it belongs into interruption"),
        ("descheduler: {policies: {RemoveDuplicate: {}}}\n", "did you mean RemoveDuplicates?"),
        ("idle_threshold: 3m\n", "'idle_threshold'; it belongs into scale_in"),
        ("sector: {}\n", "did you mean sectors?"),
        ("sleep: 3\n", "did you mean sleep_interval?"),
        ("min_capacity: 3\n", "it belongs into sectors.<name>.fleets[]"),
        (with_fleets("{size: small, min: 1}"), "did you mean min_capacity?"),
        (with_fleets("{size: small, kind: cpu}"), "'kind'; it belongs into sectors.primary"),
        (with_fleets("{size: small, default_sector: a}"), "it belongs to the top level"),
        ("disruption_budgets: [{nodes: 1, to: 3}]\n", "'to'; known here: days, duration, ends, "),
    ],
)
def test_unknown_key_message_names_the_nearest_known_key(text: str, nearest: str) -> None:
    """A typo would take a look into the documentation instead of a glance."""
    (problem,) = problems_of(text)
    assert nearest in problem.message


@pytest.mark.parametrize("key", ["name", "subnet", "on_demand"])
def test_unknown_key_without_a_likeness_gets_no_hint(key: str) -> None:
    """`managed` for `name`, and `disruption_budgets` for `subnet`, lead away from the fault."""
    (problem,) = problems_of(with_fleets(f"{{size: small, {key}: a}}"))
    assert problem.message == f"unknown key '{key}'"


def test_slack_hook_is_never_shown() -> None:
    """A webhook in a CI log lets anyone post to the team's channel."""
    (problem,) = problems_of("notifications: {slack_hook: secret-word}\n")
    assert "secret-word" not in problem.message
    config = config_of("notifications: {slack_hook: https://hooks.example/secret-word}\n")
    assert "secret-word" not in repr(config)
    hook = config.notifications.slack_hook.get_secret_value()
    assert hook == "https://hooks.example/secret-word"


@pytest.mark.parametrize("key", ["apiVersion", "kind", "metadata"])
def test_kubernetes_object_is_named_as_such(key: str) -> None:
    """The nearest key of a sector config to apiVersion is `interruption`, which helps little."""
    (problem,) = problems_of(f"{key}: v1\n")
    assert problem.message == f"unknown key '{key}'; a sector config is not a Kubernetes object"


def test_expression_that_cannot_be_read_is_reported_with_the_part_that_is_meant() -> None:
    """Cluster Autoscaler takes it: the message has to name the part that is refused."""
    (problem,) = problems_of(
        "expander_priorities: {10: ['\\pL+-spot']}\n" + with_fleets("{size: small}")
    )
    assert problem.message == (
        "must be a regular expression (RE2) of at most 200 characters:"
        " 'bad escape \\p at position 0'"
    )
