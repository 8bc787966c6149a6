"""Nodes of a replacement set that are to be replaced anyway leave as their own reason allows."""

from dataclasses import replace

from reconciler.model.actions import REPLACEMENT_SET, TaintNode
from reconciler.planner.disruption_settings import DisruptionBudget
from tests.builders import make_node
from tests.unit.planner.disruption import updated_fleet
from tests.unit.planner.disruption.scale_in.consolidation import planned
from tests.unit.planner.disruption.scale_in.scene import on, told
from tests.unit.planner.disruption.scale_in.set_under_way import (
    EXPIRED,
    MID,
    came,
    decided,
    nodes,
    pods,
)

NO_CONSOLIDATION = DisruptionBudget(nodes=0, reasons=frozenset({"consolidation"}))


def test_an_expired_node_of_a_set_does_not_leave_a_fleet_at_its_minimum() -> None:
    """The next plan gave it back and drained the next one, in turn, and evicted pods each time."""
    least = replace(EXPIRED, min_capacity=3)
    made = planned(*nodes(1000), *pods(), came(900), on("new"), small=1, fleets=(MID, least))
    assert told(made, TaintNode) == []


def test_a_node_of_a_batch_waits_for_its_new_node_in_a_set_too() -> None:
    """It was drained before the first node of the new version had come."""
    own = {REPLACEMENT_SET: decided(1000, "gone")}
    old = [
        updated_fleet.node("a", mark=1, annotations=own),
        updated_fleet.node("b", annotations=own),
    ]
    placed = on("a"), on("b"), on("room")
    made = updated_fleet.made_of(
        *old, make_node("room", MID), *placed, target=3, new="room", beside=(MID,),
        settings={"consolidation": True},
    )  # fmt: skip
    assert "a" not in told(made, TaintNode)


def test_a_budget_for_consolidation_keeps_no_expired_node_that_is_in_a_set() -> None:
    """It was kept for a day, as none but the set may drain it."""
    made = planned(
        *nodes(1000)[:2], *pods()[:2], came(900), on("new"), small=1, fleets=(MID, EXPIRED),
        disruption_budgets=(NO_CONSOLIDATION,),
    )  # fmt: skip
    assert told(made, TaintNode) == ["a"]


def test_a_budget_for_consolidation_keeps_no_batch_whose_new_node_has_come() -> None:
    """The update stood still, and its new node idle, for a day."""
    own = {REPLACEMENT_SET: decided(2000, "gone")}
    old = [
        updated_fleet.node("a", mark=1, annotations=own),
        updated_fleet.node("b", annotations=own),
    ]
    made = updated_fleet.made_of(
        *old, updated_fleet.node("new", age=300), on("a", cpu="2500m"), on("b", cpu="2500m"),
        new="new", settings={"consolidation": True, "disruption_budgets": (NO_CONSOLIDATION,)},
    )  # fmt: skip
    assert told(made, TaintNode) == ["a"]
