"""Nodes that are to be replaced in a fleet at its minimum."""

from dataclasses import replace

import pytest

from reconciler.config.planning.settings import DEFAULT_BUDGETS
from reconciler.model.actions import SetCapacity
from tests.builders import make_node
from tests.unit.planner.disruption.scale_in.consolidation import planned
from tests.unit.planner.disruption.scale_in.scene import on
from tests.unit.planner.disruption.scale_in.set_under_way import EXPIRED


@pytest.mark.parametrize("least", [0, 12])
def test_no_more_nodes_are_asked_for_at_a_minimum_than_can_be_drained_at_once(least: int) -> None:
    """Twelve were bought at once; eleven stood idle, as one node is drained at a time."""
    fleet = replace(EXPIRED, min_capacity=least)
    old = [make_node(f"n{n:02}", fleet) for n in range(12)]
    made = planned(*old, *(on(n.name, cpu="2500m") for n in old), small=12, fleets=(fleet,))
    assert [a.to_capacity for a in made.actions if isinstance(a, SetCapacity)] == [13]


def test_the_default_budget_lets_no_more_be_asked_for_either() -> None:
    """It allows ten nodes to be disrupted, but only one is drained at a time."""
    fleet = replace(EXPIRED, min_capacity=100)
    old = [make_node(f"n{n:03}", fleet) for n in range(100)]
    made = planned(
        *old, *(on(n.name, cpu="2500m") for n in old), small=100, fleets=(fleet,),
        disruption_budgets=DEFAULT_BUDGETS,
    )  # fmt: skip
    assert [a.to_capacity for a in made.actions if isinstance(a, SetCapacity)] == [101]
