"""On-demand nodes that stand in for spot nodes go back once spot is available again."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.actions import (
    DRAIN_STARTED,
    SPOT_RETURN,
    EvictPod,
)
from reconciler.model.frozen import FrozenMap
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import DisruptionBudget, ScaleInSettings, SpotReturn
from reconciler.planner.planner import plan
from tests.builders import (
    HOME,
    NOW,
    ago,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.fleets.stand_ins import (
    HOUR,
    SPOT,
    STEADY,
    busy,
    drained,
    error,
    marked,
    planned,
    stand_in,
)
from tests.unit.planner.placed import raised


def test_batch_is_as_large_as_the_budget_allows_and_cheapest_first() -> None:
    """Every node at once would be an outage, and the most expensive moves buy the same saving."""
    nodes = [stand_in(name) for name in "abc"]
    pods = [*busy(nodes[0], 3), *busy(nodes[1], 1), *busy(nodes[2], 2)]
    made = planned(*nodes, pods=pods)
    assert marked(made) == [("b", rfc3339(NOW)), ("c", rfc3339(NOW))]
    assert (raised(made), drained(made)) == ([], [])


def test_no_set_is_chosen_beside_a_batch() -> None:
    """The node would be in both, and a full spot node would be replaced with it by its like."""
    nodes = stand_in("a"), make_node("s", SPOT, created_at=ago(6 * HOUR))
    pods = [pod for node in nodes for pod in busy(node)]
    made = planned(*nodes, pods=pods, consolidation=True)
    assert marked(made) == [("a", rfc3339(NOW))]
    assert raised(made) == []


def test_spot_node_is_asked_for_before_a_pod_moves() -> None:
    """Its pods would wait for a launch that EC2 may refuse."""
    made = planned(stand_in("a", batch=10))
    assert raised(made) == [(SPOT.name, 0, 1)]
    assert drained(made) == []
    assert [each.code for each in made.kept if each.node == "a"] == ["replacement"]
    assert [(f.nodes, f.going_back) for f in made.stand_ins] == [(1, 1)]


def test_node_is_drained_when_the_spot_node_has_come() -> None:
    """That is the whole point."""
    made = planned(stand_in("a", batch=200), make_node("new", SPOT, created_at=ago(60)))
    assert drained(made) == [("a", "spot-return")]
    assert [a.pod.name for a in made.actions if isinstance(a, EvictPod)] == ["on-a-0"]
    assert {a.policy for a in made.actions if isinstance(a, EvictPod)} == {"spot-return"}


def test_nothing_happens_while_it_is_off() -> None:
    """By default nodes stay where they are."""
    made = planned(stand_in("a"), spot_return=None)
    assert (marked(made), raised(made)) == ([], [])


@pytest.mark.parametrize(
    ("saved", "stable_seconds", "begins"),
    [
        pytest.param(error(600), 1800.0, False, id="an error ten minutes ago"),
        pytest.param(error(1801), 1800.0, True, id="long enough ago"),
        pytest.param(error(5400), 7200.0, False, id="longer than errors matter otherwise"),
        pytest.param(error(7201), 7200.0, True, id="and longer still"),
    ],
)
def test_spot_must_have_been_stable(
    saved: SavedFleetState, stable_seconds: float, begins: bool
) -> None:
    """Pods that go to and fro between spot and on-demand are worse off than on either."""
    made = planned(
        stand_in("a"), saved=saved, spot_return=SpotReturn(stable_seconds=stable_seconds)
    )
    assert bool(marked(made)) is begins
    assert any(each.code == "spot-return" for each in made.kept) is not begins
    (kept,) = [m for m in made.fleet_states if m.fleet == SPOT.name]
    assert kept.last_error_at == (saved.last_error_at if not begins else kept.last_error_at)


def test_next_batch_begins_an_hour_after_the_last() -> None:
    """The first one shows whether spot holds."""
    last = SavedFleetState(fleet=SPOT.name, region=HOME, spot_return_at=ago(3000))
    made = planned(stand_in("a"), saved=last)
    assert marked(made) == []
    assert made.stand_ins[0].waits == "the next batch begins in 10m"
    over = replace(last, spot_return_at=ago(3601))
    assert [name for name, _ in marked(planned(stand_in("a"), saved=over))] == ["a"]


def test_time_of_the_batch_outlives_its_nodes() -> None:
    """Nodes that have left carry no annotation any more."""
    made = planned(stand_in("a", batch=60), stand_in("b"))
    assert [m.spot_return_at for m in made.fleet_states if m.fleet == SPOT.name] == [ago(60)]
    assert marked(made) == []


def test_node_that_could_not_leave_within_the_hour_leaves_its_batch() -> None:
    """Others have their turn."""
    guarded = busy(stand_in("a"), annotations=FrozenMap({"karpenter.sh/do-not-disrupt": "true"}))
    made = planned(stand_in("a", batch=3601), pods=guarded)
    assert marked(made) == [("a", None)]


def test_batch_is_over_when_spot_runs_out_again() -> None:
    """No pod moves towards capacity that is not to be had."""
    made = planned(stand_in("a", batch=60), saved=error(30))
    assert marked(made) == [("a", None)]
    assert raised(made) == []


def test_drain_that_has_begun_is_finished_all_the_same() -> None:
    """Its pods have places, and half of them have moved."""
    a = stand_in("a", batch=300, draining=True)
    a = replace(a, annotations=FrozenMap({**a.annotations, DRAIN_STARTED: rfc3339(ago(20))}))
    a = replace(a, taints=tuple(replace(t, value="spot-return") for t in a.taints))
    room = make_node("new", SPOT, created_at=ago(200))
    made = planned(a, room, saved=error(30))
    assert marked(made) == []
    assert {x.policy for x in made.actions if isinstance(x, EvictPod)} == {"spot-return"}


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        pytest.param({"steady": {"min_capacity": 1}}, "min-capacity", id="at its minimum"),
        pytest.param(
            {"steady": {"scale_in": ScaleInSettings(move_cost_usd=Decimal(1))}},
            "move-cost",
            id="too dear",
        ),
        pytest.param(
            {"disruption_budgets": (DisruptionBudget(nodes=0),)}, "disruption-budget", id="budget"
        ),
    ],
)
def test_limits_hold(changed: dict[str, Any], code: str) -> None:
    """A move that saves money has no right of way."""
    made = planned(stand_in("a"), **changed)
    assert marked(made) == []
    assert [each.code for each in made.kept if each.node == "a"] == [code]


def test_no_on_demand_node_comes_in_its_place() -> None:
    """One that costs less would save money too, and the pods would move once more later."""
    cheap = make_fleet_settings("cheap", spot=False, price="0.2")
    node = stand_in("a", batch=10)
    pods = busy(node)
    settings = make_settings(
        replace(SPOT, max_capacity=0),
        STEADY,
        cheap,
        spot_return=SpotReturn(),
        disruption_budgets=(DisruptionBudget(nodes=2),),
    )
    fleets = make_fleet(SPOT, 0), make_fleet(STEADY, 1), make_fleet(cheap, 0)
    made = plan(make_snapshot(node, *pods, cloud=make_cloud_of((node,), *fleets)), settings)
    assert raised(made) == []
    (why,) = [each for each in made.kept if each.node == "a"]
    assert why.code == "no-destination"
    assert why.detail.endswith("; its pods fit on no other node")


@pytest.mark.parametrize("text", ["soon", "9999-01-01T00:00:00Z", ""])
def test_annotation_by_somebody_else_breaks_nothing(text: str) -> None:
    """Whoever may annotate nodes must not stop spot return for good."""
    node = stand_in("a")
    node = replace(node, annotations=FrozenMap({**node.annotations, SPOT_RETURN: text}))
    made = planned(node)
    assert all(m.spot_return_at in {None, NOW} for m in made.fleet_states)


def test_node_that_can_never_leave_takes_no_place_in_a_batch() -> None:
    """It took the only one of every hour, and the others never went back to spot."""
    nodes = [stand_in("a"), stand_in("b")]
    selecting = busy(nodes[0], node_selector={"lifecycle": "OnDemand"})
    pods = [*selecting, *busy(nodes[1], 2)]
    made = planned(*nodes, pods=pods, disruption_budgets=(DisruptionBudget(nodes=1),))
    assert [name for name, _ in marked(made)] == ["b"]
    assert [each.code for each in made.kept if each.node == "a"] == ["no-destination"]
