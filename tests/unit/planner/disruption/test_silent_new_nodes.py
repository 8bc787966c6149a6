"""Silent nodes of a version that may not work are no sign of an outage."""

import pytest

from reconciler.model.actions import TerminateInstance
from reconciler.model.cluster import Node, Pod
from tests.builders import ago, make_node
from tests.unit.planner.disruption.scale_in.scene import full, kept, make_scene_fleet, told
from tests.unit.planner.disruption.updated_fleet import (
    made_of,
    node,
    remembered,
    state,
)

DAY = 86_400
OLD_NAMES = [f"o{number}" for number in range(6)]
HEALTHY: list[Node | Pod] = [*(node(name, DAY) for name in OLD_NAMES), *map(full, OLD_NAMES)]


def dead(count: int) -> list[Node]:
    """New nodes that have never been Ready, 20 minutes old."""
    return [node(f"n{number}", 1200, ready=False) for number in range(count)]


@pytest.mark.parametrize("count", [1, 4, 5, 8, 40])
def test_version_of_which_many_nodes_are_dead_halts(count: int) -> None:
    """Demand had launched eight at once, and nobody was told for hours that none worked."""
    new = dead(count)
    made = made_of(*HEALTHY, *new, new=" ".join(n.name for n in new), relists=2)
    assert state(made) == "halted"
    assert "has not been Ready for 20m" in made.updates[0].because


def test_dead_nodes_of_a_halted_version_are_ended() -> None:
    """They were kept for an outage that there was not, and their part of the target with them."""
    new = dead(8)
    made = made_of(*HEALTHY, *new, new=" ".join(n.name for n in new), relists=2)
    assert told(made, TerminateInstance) == [n.name for n in new][:5]
    assert [(h.node, h.code) for h in made.held] == [(n.name, "stuck-cap") for n in new[5:]]
    assert all(a.decrement for a in made.actions if isinstance(a, TerminateInstance))


def test_dead_nodes_of_two_new_versions_are_no_outage() -> None:
    """One image went to all fleets, and each took the dead nodes of the others for an outage."""
    other = make_scene_fleet(size="large")
    more = [node(f"x{number}", 1200, ready=False, fleet=other) for number in range(8)]
    old = node("y", DAY, fleet=other)
    new = [*dead(8), *more]
    names = " ".join(n.name for n in new)
    made = made_of(*HEALTHY, *new, old, full("y"), new=names, beside=(other,), relists=2)
    assert [update.state for update in made.updates] == ["halted", "halted"]


@pytest.mark.parametrize("relists", [1, 2])
def test_outage_of_a_small_fleet_halts_nothing(relists: int) -> None:
    """Three old nodes are as silent as the new one: their network is to blame."""
    old = [node(n, DAY, ready=False, ready_changed_at=None) for n in ("a", "b", "p")]
    made = made_of(*old, *dead(1), new="n0", relists=relists)
    assert state(made) == "canary"
    assert told(made, TerminateInstance) == []


def test_silent_nodes_of_a_proven_version_are_an_outage() -> None:
    """All but two nodes had been replaced when the network failed, and the silent were ended."""
    proven = remembered(canary_version="8", canary_proven=True)
    new = [node(f"n{n}", 3000, ready=False, ready_changed_at=None) for n in range(8)]
    old: list[Node | Pod] = [node("a", DAY), node("b", DAY), full("a"), full("b")]
    names = " ".join(n.name for n in new)
    made = made_of(*old, *new, new=names, fleet_states=proven, relists=2)
    assert told(made, TerminateInstance) == []
    assert kept(made)["n0"] == "not-ready"


def test_new_nodes_that_have_worked_for_hours_may_be_in_an_outage() -> None:
    """One pod had halted the update; then a switch failed, and all nodes behind it were ended."""
    halted = remembered(halted_version="8", halted_because="a pod crashed")
    new = [node(f"n{n}", DAY, ready=False, ready_changed_at=ago(1200)) for n in range(8)]
    names = " ".join(n.name for n in new)
    made = made_of(*HEALTHY, *new, new=names, fleet_states=halted, relists=2)
    assert told(made, TerminateInstance) == []
    assert kept(made)["n0"] == "not-ready"


def test_version_is_judged_where_only_nodes_of_others_are_ready() -> None:
    """The old version never worked either, and the new one was not judged, as if in an outage."""
    old = [node(f"o{number}", 5000, ready=False) for number in range(3)]
    made = made_of(*old, *dead(3), make_node("managed"), new="n0 n1 n2", relists=2)
    assert state(made) == "halted"
    assert "has not been Ready for 20m" in made.updates[0].because


def test_version_is_not_judged_where_nodes_of_others_are_silent_too() -> None:
    """Nothing shows whose fault it is while no node of the region answers."""
    old = [node(f"o{number}", 5000, ready=False) for number in range(3)]
    made = made_of(*old, *dead(3), make_node("managed", ready=False), new="n0 n1 n2", relists=2)
    assert state(made) == "canary"
