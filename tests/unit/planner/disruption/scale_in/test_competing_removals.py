"""A node is not replaced while others could leave onto it and save as much (docs/scale-in.md)."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import TaintNode
from reconciler.model.plan import Plan
from reconciler.planner.disruption.candidate import Candidate
from reconciler.planner.disruption.examined_nodes import EXAMINED_MAX
from reconciler.planner.disruption.replacement import removal_trials
from reconciler.planner.disruption.replacement.conflict import ReplacementConflict
from reconciler.planner.disruption_settings import DisruptionBudget, ScaleInSettings
from reconciler.planner.settings import FleetSettings
from tests.builders import make_fleet_settings, make_node
from tests.unit.planner.disruption.scale_in.consolidation import SMALL, planned, raised
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    kept,
    moves,
    on,
    told,
    unneeded,
)


def eight(price: str) -> FleetSettings:
    """A fleet of nodes of twice the size of small ones."""
    return make_fleet_settings("eight", cpu=8, memory="32Gi", price=price)


def half_used_and_full(large: FleetSettings, timers: tuple[float, ...] = ()) -> Plan:
    """A large node with room for the four pods of a full small one beside it."""
    made = unneeded if timers else make_node
    nodes = made("l", large, *timers[:1]), made("s", SMALL, *timers[1:])
    pods = [on(node.name, f"{node.name}-{n}", "900m") for node in nodes for n in range(4)]
    return planned(*nodes, *pods, small=1, fleets=(SMALL, large))


@pytest.mark.parametrize("price", ["0.19", "0.16", "0.11"])
def test_node_leaves_onto_one_that_would_else_be_replaced(price: str) -> None:
    """The new node would be the small one's like, and both be replaced by a large one next."""
    made = half_used_and_full(eight(price), (3600, 3600))
    assert raised(made) == []
    assert told(made, TaintNode) == ["s"]
    assert set(moves(made).values()) == {"l"}


def test_node_is_replaced_when_that_saves_more_than_what_could_leave_onto_it() -> None:
    """Fewer launches are not worth a more expensive cluster."""
    made = half_used_and_full(eight("0.25"), (3600, 3600))
    assert raised(made) == [("primary-small", 2, "consolidation")]
    assert told(made, TaintNode) == []


SIX = make_fleet_settings("six", cpu=6, memory="24Gi", price="0.12")


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("pairs", [2, 3])
def test_none_of_several_large_nodes_is_replaced_where_each_can_take_a_small_one(
    pairs: int, *, timed: bool
) -> None:
    """Each small one alone would go to the same large one, so that the others were replaced."""
    large, made = eight("0.20"), unneeded if timed else make_node
    nodes, pods = [], []
    for n in range(pairs):
        nodes += [made(f"l{n}", large), made(f"s{n}", SMALL)]
        pods += [on(f"l{n}", cpu="4200m"), *(on(f"s{n}", f"s{n}-{k}", "1250m") for k in range(3))]
    fleets = SMALL, SIX, large
    plan = planned(*nodes, *pods, small=pairs, fleets=fleets)
    assert raised(plan) == []
    assert told(plan, TaintNode) == (["s0"] if timed else [])
    started = {name for name, _, value in annotations_set(plan) if value is not None}
    assert timed or started == {f"s{n}" for n in range(pairs)}


def test_nodes_that_have_places_elsewhere_too_are_not_compared_with_more_expensive_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That takes most of the time of a plan, and each of the large nodes would ask it of ten."""
    asked: list[str] = []

    class Counted(ReplacementConflict):
        def conflicting_candidate(self, candidate: Candidate, *given: Any) -> Candidate | None:
            asked.append(candidate.node.name)
            return super().conflicting_candidate(candidate, *given)

    monkeypatch.setattr(removal_trials, "ReplacementConflict", Counted)
    many = ScaleInSettings(non_empty_at_once_max=EXAMINED_MAX)
    small, six, large = (replace(f, scale_in=many) for f in (SMALL, SIX, eight("0.20")))
    nodes, pods = [], []
    for n in range(40):
        nodes += [unneeded(f"l{n}", large), unneeded(f"s{n}", small)]
        pods += [on(f"l{n}", cpu="4200m"), *(on(f"s{n}", f"s{n}-{k}", "1250m") for k in range(3))]
    budgets = (DisruptionBudget(nodes=100, percent=True),)
    planned(*nodes, *pods, small=40, fleets=(small, six, large), disruption_budgets=budgets)
    assert 0 < len(asked) <= 2 * EXAMINED_MAX


@pytest.mark.parametrize("timers", [(), (300, 300), (3600, 300)])
def test_timer_runs_for_the_node_that_needs_no_new_one(timers: tuple[float, ...]) -> None:
    """The other one's would begin, and be stopped, with every plan; or a node be bought for it."""
    made = half_used_and_full(eight("0.19"), timers)
    assert raised(made) == []
    assert told(made, TaintNode) == []
    changed = {(name, value is None) for name, key, value in annotations_set(made)}
    assert changed == ({("l", True)} if timers else {("s", False)})
    assert kept(made)["l"] == "consolidation"
