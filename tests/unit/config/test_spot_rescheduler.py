"""The section `spot_rescheduler` of a config."""

import pytest

from reconciler.config.check import check_reading
from reconciler.config.loader import read_config
from reconciler.config.planning.spot_rescheduler import spot_rescheduler
from reconciler.planner.disruption_settings import NodeLabel
from tests.unit.config.documents import config_of


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("lifecycle=OnDemand", NodeLabel(key="lifecycle", value="OnDemand")),
        ("node-role.kubernetes.io/worker", NodeLabel(key="node-role.kubernetes.io/worker")),
        ("worker=", NodeLabel(key="worker", value="")),
    ],
)
def test_label_is_a_key_or_a_key_and_its_value(text: str, label: NodeLabel) -> None:
    """As the flags of the program that it replaces."""
    stated = config_of(f"spot_rescheduler: {{enabled: true, on_demand_node_label: {text}}}\n")
    rules = spot_rescheduler(stated.spot_rescheduler)
    assert rules is not None
    assert rules.on_demand == label
    assert str(label) == text


@pytest.mark.parametrize("text", ["a=b=c", "=b", "''", "a b", "-a"])
def test_other_texts_are_faults(text: str) -> None:
    """Two `=` would name no node, and the program would do nothing without a word."""
    config = f"spot_rescheduler: {{spot_node_label: {text}}}\n"
    (problem,) = check_reading(read_config(config))
    assert (problem.code, problem.path) == ("config/type", "spot_rescheduler.spot_node_label")


def test_it_is_off_unless_asked_for() -> None:
    """An upgrade moves no pod."""
    assert spot_rescheduler(config_of("spot_rescheduler: {}\n").spot_rescheduler) is None
