"""Fleets that EC2 has and the config has not (docs/scale-in.md)."""

from typing import Any

from reconciler.model.actions import (
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.scale_in.scene import drained, full, moves, on, told, unneeded

STAYS = make_fleet_settings()
OLD = make_fleet_settings("old")


def planned(*objects: Any, allowed: bool = True, target: int | None = None) -> Plan:
    """The plan of a config that names only one of the two fleets that EC2 has."""
    nodes = [o for o in objects if isinstance(o, Node)]
    lives = {}
    for fleet in (STAYS, OLD):
        count = sum(n.labels["fleet"] == fleet.name for n in nodes)
        wanted = target if fleet is OLD and target is not None else count
        tags = FrozenMap({"sector": fleet.sector, "fleet": fleet.name})
        lives[fleet.name] = make_fleet(fleet, wanted, tags=tags)
    cloud = make_cloud_of(nodes, *lives.values())
    destroy = frozenset({OLD.name, STAYS.name} if allowed else ())
    return plan(make_snapshot(*objects, cloud=cloud), make_settings(STAYS, allow_destroy=destroy))


def test_fleet_that_the_config_lost_is_left_alone() -> None:
    """A fleet dropped from the config by mistake would be emptied at once."""
    made = planned(make_node("o", OLD), allowed=False)
    assert made.actions == ()


def test_allowed_fleet_is_emptied_however_much_it_is_used() -> None:
    """Removing a fleet would end in nodes that nothing ever empties."""
    made = planned(make_node("o", OLD), make_node("s", STAYS), on("o", cpu="3"), full("s", "1"))
    assert told(made, TaintNode) == ["o"]
    assert moves(made) == {"on-o": "s"}


def test_allowed_fleet_is_emptied_by_the_usual_rules() -> None:
    """Approval of a removal is no approval to kill jobs."""
    made = planned(make_node("o", OLD), make_node("s", STAYS), on("o", owner="Job"))
    assert told(made, TaintNode) + told(made, EvictPod) == []


def test_empty_node_of_an_allowed_fleet_goes_at_once() -> None:
    """A drained fleet would cost another idle time."""
    assert told(planned(make_node("o", OLD), make_node("s", STAYS), full("s")), TaintNode) == ["o"]
    made = planned(make_node("o", OLD, draining=True), make_node("s", STAYS), full("s"))
    assert told(made, TerminateInstance) == ["o"]


def test_node_is_given_back_when_the_approval_is_withdrawn() -> None:
    """Nobody would ever end it or take our taint off: it would cost money and take no pods."""
    made = planned(
        make_node("o", OLD, draining=True), make_node("s", STAYS), full("s"), allowed=False
    )
    assert told(made, UntaintNode) == ["o"]
    assert told(made, TerminateInstance) == []


def test_allowed_fleet_takes_no_new_capacity() -> None:
    """A fleet would grow while it is being removed."""
    made = planned(make_node("s", STAYS), full("s"), make_pod(cpu="3", memory="1Gi"), target=2)
    raised = {a.fleet: a.to_capacity for a in made.actions if isinstance(a, SetCapacity)}
    assert raised == {STAYS.name: 2, OLD.name: 0}


def test_fleet_that_the_config_names_is_not_emptied_by_allow_destroy() -> None:
    """A list that was written ahead of the change would empty a fleet in use."""
    made = planned(make_node("s", STAYS), on("s"))
    assert made.actions == ()


def replaced(*objects: Any, spot_tag: str, allowed: bool = True) -> Plan:
    """The plan of a config that wants its fleet `old` on demand, of whatever EC2 has."""
    nodes = [o for o in objects if isinstance(o, Node)]
    wanted = make_fleet_settings("old", spot=False, min_capacity=1)
    lives = {}
    for fleet, tag in ((STAYS, "true"), (wanted, spot_tag)):
        count = sum(n.labels["fleet"] == fleet.name for n in nodes)
        tags = FrozenMap({"sector": fleet.sector, "fleet": fleet.name, "Spot": tag})
        lives[fleet.name] = make_fleet(fleet, count, tags=tags)
    cloud = make_cloud_of(nodes, *lives.values())
    destroy = frozenset({wanted.name} if allowed else ())
    settings = make_settings(STAYS, wanted, allow_destroy=destroy)
    return plan(make_snapshot(*objects, cloud=cloud), settings)


def test_fleet_of_another_capacity_type_is_emptied_for_its_replacement() -> None:
    """The apply waits for an empty fleet; nobody else would ever empty one in use."""
    scene = (make_node("o", OLD), make_node("s", STAYS), on("o", cpu="3"), full("s", "1"))
    made = replaced(*scene, spot_tag="true")
    assert told(made, TaintNode) == ["o"]
    assert moves(made) == {"on-o": "s"}
    assert told(replaced(*scene, spot_tag="true", allowed=False), TaintNode) == []
    assert told(replaced(*scene, spot_tag="false"), TaintNode) == []


def test_fleet_that_waits_for_its_replacement_gets_no_new_nodes() -> None:
    """Its minimum and its demand would fill it up again for ever."""
    made = replaced(make_node("s", STAYS), full("s"), make_pod(cpu="3"), spot_tag="true")
    raised = {a.fleet for a in made.actions if isinstance(a, SetCapacity)}
    assert raised == {STAYS.name}


def test_nothing_is_moved_onto_a_fleet_that_is_to_go() -> None:
    """Its nodes would fill as fast as they are emptied, and the removal would never end."""
    made = planned(unneeded("s", STAYS), make_node("o", OLD), on("s"), full("o", "1"))
    assert moves(made) == {"full-o": "s"}


def test_draining_node_of_a_fleet_that_is_to_go_is_not_taken_back() -> None:
    """Other fleets can launch for the pod; here it would stay for good."""
    made = planned(drained("o", OLD), make_pod(cpu="3"))
    assert told(made, UntaintNode) == []
    assert [(p.fleet, p.new_node) for p in made.placements] == [(STAYS.name, 0)]
