"""On which nodes headroom lies, and when it moves to cheaper ones (docs/scale-up.md)."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import FALLBACK_FROM, TaintNode, begins_drain
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedFleetState
from reconciler.planner.disruption_settings import DisruptionBudget, ScaleInSettings, SpotReturn
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, Headroom
from tests.builders import (
    HOME,
    ago,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import on, unneeded
from tests.unit.planner.placed import raised

SPOT = make_fleet_settings(cpu=4, price="0.1", spot_fallback=True)
STEADY = make_fleet_settings("steady", cpu=4, price="0.3", spot=False)
ONE_NODE = Headroom(sector="primary", nodes=1)


def planned(
    *objects: Node | Pod,
    fleets: tuple[FleetSettings, FleetSettings] = (SPOT, STEADY),
    launching: int = 0,
    headroom: Headroom = ONE_NODE,
    saved: tuple[SavedFleetState, ...] = (),
    **changed: Any,
) -> Plan:
    """The plan for these empty nodes; so many more of the first fleet launch."""
    server_time = changed.pop("server_time", None)
    nodes = [each for each in objects if isinstance(each, Node)]
    counts = [sum(node.labels["fleet"] == fleet.name for node in nodes) for fleet in fleets]
    counts[0] += launching
    clouds = [make_fleet(fleet, count) for fleet, count in zip(fleets, counts, strict=True)]
    settings = make_settings(*fleets, headroom=(headroom,), **changed)
    cloud = make_cloud_of(nodes, *clouds)
    snapshot = make_snapshot(*objects, cloud=cloud, fleet_states=saved, server_time=server_time)
    return plan(snapshot, settings)


def stand_in(name: str = "dear", **changed: Any) -> Node:
    """An empty on-demand node that stands in for a spot node."""
    noted = FrozenMap({FALLBACK_FROM: SPOT.name})
    return make_node(name, STEADY, annotations=noted, created_at=ago(20_000), **changed)


def begun(made: Plan) -> list[str]:
    """Nodes whose drain begins."""
    return [a.node for a in made.actions if isinstance(a, TaintNode) and begins_drain(a)]


def test_headroom_lies_on_nodes_that_the_minimum_keeps() -> None:
    """An on-demand node was paid for beside them for as long as headroom was asked for."""
    least = replace(SPOT, min_capacity=1)
    nodes = unneeded("a-dear", STEADY), make_node("b-kept", SPOT)
    for fleets in ((least, STEADY), (STEADY, least)):
        assert begun(planned(*nodes, fleets=fleets)) == ["a-dear"]


def test_headroom_lies_on_the_cheaper_of_two_empty_nodes() -> None:
    """The more expensive one, by the order of their names, was kept."""
    nodes = unneeded("a-dear", STEADY), unneeded("b-cheap", SPOT)
    assert begun(planned(*nodes)) == ["a-dear"]
    assert begun(planned(unneeded("a-dear", STEADY), launching=1)) == ["a-dear"]


@pytest.mark.parametrize(
    ("changed", "asks"),
    [
        ({}, False),
        ({"consolidation": True}, True),
        ({"consolidation": True, "fleets": (replace(SPOT, max_capacity=0), STEADY)}, False),
        ({"consolidation": True, "fleets": (SPOT, replace(STEADY, min_capacity=1))}, False),
        (
            {
                "consolidation": True,
                "fleets": (SPOT, replace(STEADY, scale_in=ScaleInSettings(empty_at_once_max=0))),
            },
            False,
        ),
        (
            {
                "consolidation": True,
                "fleets": (SPOT, make_fleet_settings("steady", cpu=4, price="0.104", spot=False)),
            },
            False,
        ),
    ],
    ids=["off", "on", "at its maximum", "at its minimum", "nothing leaves", "under 5 %"],
)
def test_consolidation_moves_headroom_to_a_cheaper_node(
    changed: dict[str, Any], asks: bool
) -> None:
    """Nothing else ends a node that holds headroom alone: it cost three times as much for good."""
    made = planned(make_node("dear", STEADY), **changed)
    assert raised(made) == ([(SPOT.name, 0, 1)] if asks else [])
    assert [headroom_plan.missing for headroom_plan in made.headroom] == [0]


def test_a_node_that_may_not_be_ended_keeps_the_headroom() -> None:
    """A cheaper one would be paid for beside it."""
    keeps = FrozenMap({"karpenter.sh/do-not-disrupt": "true"})
    made = planned(make_node("dear", STEADY, annotations=keeps), consolidation=True)
    assert raised(made) == []


FREEZE = DisruptionBudget(nodes=0, reasons=frozenset({"empty"}))
DAEMON = on(
    "dear",
    cpu="10m",
    owner="DaemonSet",
    annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
)


@pytest.mark.parametrize(
    ("beside", "changed"),
    [
        ((), {"disruption_budgets": (FREEZE,)}),
        ((DAEMON,), {}),
        ((), {"server_time": ago(3600)}),
    ],
    ids=["a-freeze", "a-daemon's-pod", "clocks-differ"],
)
def test_headroom_stays_where_something_else_keeps_its_node(
    beside: tuple[Pod, ...], changed: dict[str, Any]
) -> None:
    """A cheaper node was paid for beside it, for as long as that lasted."""
    made = planned(make_node("dear", STEADY), *beside, consolidation=True, **changed)
    assert raised(made) == []
    assert [headroom_plan.missing for headroom_plan in made.headroom] == [0]


def test_as_many_pieces_move_as_the_cheaper_fleet_has_room_for() -> None:
    """With room for one of two nothing moved at all."""
    nodes = make_node("a", STEADY), make_node("b", STEADY)
    limited = replace(SPOT, max_capacity=1)
    two = Headroom(sector="primary", nodes=2)
    for fleet, most in ((SPOT, 2), (limited, 1)):
        made = planned(*nodes, fleets=(fleet, STEADY), headroom=two, consolidation=True)
        assert raised(made) == [(SPOT.name, 0, most)]
        assert [headroom_plan.missing for headroom_plan in made.headroom] == [0]


def error(seconds: float) -> tuple[SavedFleetState, ...]:
    """The spot fleet had an error so long ago."""
    return (SavedFleetState(fleet=SPOT.name, region=HOME, last_error_at=ago(seconds), failures=1),)


def test_a_stand_in_that_holds_headroom_goes_back_to_spot() -> None:
    """Batches took nodes with pods only: an empty one stayed on-demand without an end."""
    made = planned(stand_in(), spot_return=SpotReturn())
    assert raised(made) == [(SPOT.name, 0, 1)]
    assert [each.waits for each in made.stand_ins] == [""]
    waits = planned(stand_in(), spot_return=SpotReturn(), saved=error(60))
    assert raised(waits) == []
    (stand_ins,) = waits.stand_ins
    assert stand_ins.waits == "primary-small had its last error 1m ago: 29m to go"


def test_what_a_stand_in_with_headroom_waits_for_is_reported() -> None:
    """Its spot fleet was back, and nothing said why the node still ran."""
    full = replace(SPOT, max_capacity=0)
    made = planned(stand_in(), fleets=(full, STEADY), spot_return=SpotReturn())
    assert raised(made) == []
    text = "it holds headroom, and may not be removed now or replaced by a cheaper node"
    assert [each.waits for each in made.stand_ins] == [text]
    assert [(k.code, k.detail) for k in made.kept] == [
        ("spot-return", f"it stands in for a node of primary-small; {text}")
    ]
