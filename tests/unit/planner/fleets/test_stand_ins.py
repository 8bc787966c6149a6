"""On-demand nodes that were bought because a spot fleet was unavailable."""

from dataclasses import replace

import pytest

from reconciler.model.actions import FALLBACK_FROM, AnnotateNode
from reconciler.model.cluster import Node, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan, StandIns
from reconciler.model.saved_state import SavedFleetState
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    HOME,
    ago,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.fleets.stand_ins import SPOT, STEADY

OTHER = make_fleet_settings("steady", "other", spot=False, price="0.3")


def rest(begun_ago: float = 240, left: float = 60, failures: int = 1) -> SavedFleetState:
    """The spot fleet after a capacity error."""
    return SavedFleetState(
        fleet=SPOT.name,
        region=HOME,
        failures=failures,
        last_error_at=ago(begun_ago),
        unavailable_until=ago(-left),
    )


def joined(name: str = "a", age: float = 60, fleet: FleetSettings = STEADY, mark: str = "") -> Node:
    """A node of so many seconds, marked or not."""
    annotations = FrozenMap({FALLBACK_FROM: mark}) if mark else FrozenMap()
    return make_node(name, fleet, created_at=ago(age), annotations=annotations)


def busy(node: Node) -> Pod:
    """A pod that fills it."""
    return make_pod(f"on-{node.name}", node=node.name, cpu="3")


def planned(
    *nodes: Node,
    saved: SavedFleetState | None = None,
    spot: FleetSettings = SPOT,
    minimum: int = 0,
) -> Plan:
    """The plan with full nodes."""
    steady = replace(STEADY, min_capacity=minimum)
    own = [n for n in nodes if n.labels["fleet"] == STEADY.name]
    fleets = make_fleet(spot), make_fleet(steady, len(own)), make_fleet(OTHER, len(nodes))
    pods = [busy(node) for node in nodes]
    return plan(
        make_snapshot(
            *nodes,
            *pods,
            cloud=make_cloud_of(nodes, *fleets),
            fleet_states=(saved,) if saved else (),
        ),
        make_settings(spot, steady, OTHER),
    )


def marks(made: Plan) -> list[tuple[str, str | None]]:
    """Nodes that are marked, and with what."""
    found = [a for a in made.actions if isinstance(a, AnnotateNode)]
    return [(a.node, a.value) for a in found if a.key == FALLBACK_FROM]


def test_node_that_was_bought_while_spot_was_unavailable_says_so() -> None:
    """Nobody would know afterwards which nodes are on demand for want of spot capacity."""
    made = planned(joined(), saved=rest())
    assert marks(made) == [("a", SPOT.name)]
    assert made.stand_ins == (
        StandIns(
            fleet=STEADY.name, region=HOME, instead_of=SPOT.name, nodes=1, extra_hourly_usd=0.2
        ),
    )


def test_node_that_joins_after_the_rest_counts_by_its_launch() -> None:
    """A boot takes minutes, and the fleet is available again by then."""
    assert marks(planned(joined(age=200), saved=rest(left=-100))) == [("a", SPOT.name)]
    assert marks(planned(joined(age=50), saved=rest(left=-100))) == []


def test_marked_node_is_counted_after_the_spot_fleet_has_recovered() -> None:
    """A restart, or the end of the shortage, would hide what it still costs."""
    made = planned(joined(age=86400, mark=SPOT.name))
    assert marks(made) == []
    assert [(f.nodes, f.extra_hourly_usd) for f in made.stand_ins] == [(1, 0.2)]


@pytest.mark.parametrize("mark", ["primary-none", STEADY.name, "x" * 1000])
def test_mark_that_names_no_such_spot_fleet_is_passed_over(mark: str) -> None:
    """Whoever may annotate a node could make up money that was spent."""
    made = planned(joined(mark=mark), saved=rest())
    assert (made.stand_ins, marks(made)) == ((), [])


@pytest.mark.parametrize(
    ("node", "changed"),
    [
        pytest.param(joined(age=1000), {"saved": rest(begun_ago=2000)}, id="older than a launch"),
        pytest.param(joined(age=500), {"saved": rest()}, id="launched before the error"),
        pytest.param(joined(), {}, id="spot is available"),
        pytest.param(joined(), {"saved": rest(), "minimum": 1}, id="held by the minimum"),
        pytest.param(joined(fleet=OTHER), {"saved": rest()}, id="of another sector"),
        pytest.param(
            joined(),
            {"saved": rest(), "spot": replace(SPOT, spot_fallback=False)},
            id="no fallback is allowed",
        ),
    ],
)
def test_other_on_demand_nodes_are_not_marked(node: Node, changed: dict[str, object]) -> None:
    """Nodes that are meant to be on demand would be counted as a cost of the shortage."""
    made = planned(node, **changed)  # type: ignore[arg-type]
    assert (made.stand_ins, marks(made)) == ((), [])
