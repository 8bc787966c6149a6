"""Fleets that EC2 has and the config has not (docs/scale-in.md)."""

from dataclasses import replace
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
from reconciler.model.ids import FleetId, Region
from reconciler.model.plan import Plan
from reconciler.planner.disruption_settings import ScaleInSettings
from reconciler.planner.fleets.departing import regions_to_observe
from reconciler.planner.placement.kinds import REGION
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings, PlannerSettings, SectorSettings
from tests.builders import (
    HOME,
    amounts,
    make_cloud,
    make_cloud_of,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import drained, full, moves, on, told, unneeded

STAYS = make_fleet_settings()
OLD = make_fleet_settings("old")


def planned(
    *objects: Any, allowed: bool = True, target: int | None = None, old: FleetSettings = OLD
) -> Plan:
    """The plan of a config that names only one of the two fleets that EC2 has."""
    nodes = [o for o in objects if isinstance(o, Node)]
    lives = {}
    for fleet in (STAYS, old):
        count = sum(n.labels["fleet"] == fleet.name for n in nodes)
        wanted = target if fleet is old and target is not None else count
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


def test_allowed_group_is_emptied_and_its_desired_capacity_is_never_lowered_by_itself() -> None:
    """Auto Scaling would choose the instances that end, with the pods that run there."""
    group = make_fleet_settings("old", provider="asg", auto_scaling_group="old")
    nodes = (make_node("o", group), make_node("s", STAYS), full("s"))
    assert told(planned(*nodes, old=group), TaintNode) == ["o"]
    more = planned(*nodes, old=group, target=3)
    assert [a.fleet for a in more.actions if isinstance(a, SetCapacity)] == []
    drained_node = make_node("o", group, draining=True)
    made = planned(drained_node, make_node("s", STAYS), full("s"), old=group)
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


def test_fleet_is_emptied_in_the_region_that_it_leaves_and_goes_on_in_the_others() -> None:
    """Its name is still in the config: nothing would drain it, and the apply wait for ever."""
    away = Region("us-east-1")
    leaving = make_fleet_settings("old", regions=(away,))
    nodes = [make_node("o", leaving, region=away), make_node("s", OLD)]
    tags = FrozenMap({"sector": OLD.sector, "fleet": OLD.name})
    lives = [
        make_fleet(leaving, 1, id=FleetId("fleet-away"), region=away, tags=tags),
        make_fleet(OLD, 1, tags=tags),
    ]
    there = {"o": lives[0], "s": lives[1]}
    cloud = make_cloud(
        *lives,
        instances=[make_instance(node, there[node.name]) for node in nodes],
    )
    snapshot = make_snapshot(*nodes, full("s"), cloud=cloud)
    settings = make_settings(
        replace(OLD, min_capacity=1), regions=(HOME, away), allow_destroy=frozenset({OLD.name})
    )
    made = plan(snapshot, settings)
    assert told(made, TaintNode) == ["o"]
    assert [(s.region, s.max, s.current) for s in made.fleets] == [(HOME, None, 1), (away, 0, 1)]
    assert plan(snapshot, replace(settings, allow_destroy=frozenset())).actions == ()


def test_region_that_the_config_names_no_more_is_observed_while_nodes_are_there() -> None:
    """What EC2 does not show is never drained, and the fleet never goes."""
    away = Region("us-east-1")
    settings = make_settings(STAYS, allow_destroy=frozenset({OLD.name}))
    old = make_node("o", OLD, labels={REGION: away})
    other = make_node("s", STAYS, labels={REGION: "eu-west-1"})
    assert regions_to_observe([old, other], settings) == (HOME, away)
    assert regions_to_observe([], settings) == (HOME,)


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


def test_target_that_is_taken_back_names_no_limit_that_the_config_does_not_have() -> None:
    """Its max_capacity counts as 0 here, and whoever looks it up reads another number."""
    wanted = make_fleet_settings("old", spot=False, max_capacity=200)
    live = make_fleet(wanted, 2, tags=FrozenMap({"Spot": "true"}))
    settings = make_settings(wanted, allow_destroy=frozenset({wanted.name}))
    (lowered,) = plan(make_snapshot(cloud=make_cloud_of([], live)), settings).actions
    assert lowered.because == "the fleet is to go, 0 nodes have joined"


def test_nothing_is_moved_onto_a_fleet_that_is_to_go() -> None:
    """Its nodes would fill as fast as they are emptied, and the removal would never end."""
    made = planned(unneeded("s", STAYS), make_node("o", OLD), on("s"), full("o", "1"))
    assert moves(made) == {"full-o": "s"}


def test_draining_node_of_a_fleet_that_is_to_go_is_not_taken_back() -> None:
    """Other fleets can launch for the pod; here it would stay for good."""
    made = planned(drained("o", OLD), make_pod(cpu="3"))
    assert told(made, UntaintNode) == []
    assert [(p.fleet, p.new_node) for p in made.placements] == [(STAYS.name, 0)]


SMALL = make_fleet_settings("small", max_capacity=4)
"""Its nodes are as large as those of the fleet that goes."""


def going(*objects: Any, fleets: tuple[FleetSettings, ...] = (SMALL,), sector: str = "") -> Plan:
    """The plan of a config whose remaining fleets have no node, beside one that may go."""
    nodes = [o for o in objects if isinstance(o, Node)]
    tags = FrozenMap({"sector": sector or OLD.sector, "fleet": OLD.name})
    counts = {f.name: sum(n.labels["fleet"] == f.name for n in nodes) for f in fleets}
    lives = [make_fleet(fleet, counts[fleet.name]) for fleet in fleets]
    count = sum(n.labels["fleet"] == OLD.name for n in nodes)
    cloud = make_cloud_of(nodes, make_fleet(OLD, count, tags=tags), *lives)
    settings = make_settings(*fleets, allow_destroy=frozenset({OLD.name}))
    return plan(make_snapshot(*objects, cloud=cloud), settings)


def raises(made: Plan) -> dict[str, int]:
    """Targets that the plan sets, by fleet."""
    return {a.fleet: a.to_capacity for a in made.actions if isinstance(a, SetCapacity)}


def waits(made: Plan) -> str:
    """What the removal waits for, as status and log tell it."""
    return next(f.removal for f in made.fleets if f.fleet == OLD.name)


def test_room_is_bought_for_the_pods_of_an_approved_removal() -> None:
    """With the other fleet at 0 of 4 nothing was bought, and the drain waited without a word."""
    made = going(make_node("o", OLD), on("o", cpu="3"))
    assert raises(made) == {SMALL.name: 1}
    assert told(made, TaintNode) == []
    assert waits(made) == (
        "1 node with 1 pod left; removal: it is drained when 1 node of primary-small has joined "
        "to take its pods"
    )
    made = going(make_node("o", OLD), make_node("s", SMALL), on("o", cpu="3"))
    assert raises(made) == {}
    assert told(made, TaintNode) == ["o"]
    assert moves(made) == {"on-o": "s"}
    assert waits(made) == "1 node with 1 pod left, being drained"


def test_removal_whose_last_instance_has_no_node_counts_it() -> None:
    """`1 instances of it have to end` is no English."""
    tags = FrozenMap({"sector": OLD.sector, "fleet": OLD.name})
    cloud = make_cloud_of([], make_fleet(OLD, 1, tags=tags), make_fleet(SMALL, 0))
    settings = make_settings(SMALL, allow_destroy=frozenset({OLD.name}))
    assert waits(plan(make_snapshot(cloud=cloud), settings)) == "1 instance still to end"


def test_room_for_a_removal_is_bought_once() -> None:
    """While the new node launches another one would come with each cycle."""
    nodes = make_node("o", OLD)
    tags = FrozenMap({"sector": OLD.sector, "fleet": OLD.name})
    cloud = make_cloud_of([nodes], make_fleet(OLD, 1, tags=tags), make_fleet(SMALL, 1))
    settings = make_settings(SMALL, allow_destroy=frozenset({OLD.name}))
    made = plan(make_snapshot(nodes, on("o", cpu="3"), cloud=cloud), settings)
    assert raises(made) == {}
    assert "nodes that take its pods are launching" in waits(made)


def test_several_smaller_nodes_take_the_pods_of_a_larger_one() -> None:
    """A removed large size would wait for ever beside sizes that are all smaller."""
    large = make_node("o", OLD, allocatable=amounts(cpu=16, memory="128Gi", pods=58))
    pods = [make_pod(f"p{n}", node="o", cpu="3", memory="1Gi") for n in range(3)]
    assert raises(going(large, *pods)) == {SMALL.name: 3}


def test_no_room_is_bought_beyond_the_maximum_and_that_is_said() -> None:
    """An approval of a removal is no approval to exceed a limit."""
    closed = replace(SMALL, max_capacity=0)
    made = going(make_node("o", OLD), on("o", cpu="3"), fleets=(closed,))
    assert raises(made) == {}
    assert "primary-small is at its max_capacity of 0" in waits(made)


def test_pod_that_selects_a_renamed_sector_keeps_its_node_and_that_is_said() -> None:
    """No node of the new name may run it: only its owner can change that."""
    pod = replace(
        on("o", cpu="3"), spec=replace(on("o").spec, node_selector=FrozenMap({"sector": "gone"}))
    )
    made = going(make_node("o", OLD, labels={"sector": "gone"}), pod, sector="gone")
    assert raises(made) == {}
    assert told(made, TaintNode) == []
    assert "sector=gone" in waits(made)
    assert "until their owner changes the selector" in waits(made)


def test_fleet_leaves_by_the_rules_of_its_own_sector_not_of_another() -> None:
    """Another sector that may move pods with local data would cost this one its data."""
    moving = ScaleInSettings(move_local_storage=True, move_bare_pods=True)
    other = make_fleet_settings("small", "web", scale_in=moving)
    own = make_fleet_settings("small", "db")
    old = make_fleet_settings("old", "db")
    node, target = make_node("o", old), make_node("s", own)
    lives = [
        make_fleet(each, int(each is not other), tags=FrozenMap({"sector": each.sector}))
        for each in (other, own, old)
    ]
    pod = make_pod("data", node="o", local_storage=True, sector="db")
    snapshot = make_snapshot(node, target, pod, cloud=make_cloud_of([node, target], *lives))
    settings = make_settings(other, own, allow_destroy=frozenset({old.name}))
    assert not [a for a in plan(snapshot, settings).actions if isinstance(a, EvictPod)]
    made = plan(snapshot, replace(settings, sectors=_all_moving(settings)))
    assert [a.pod.name for a in made.actions if isinstance(a, EvictPod)] == ["data"]


def _all_moving(settings: PlannerSettings) -> tuple[SectorSettings, ...]:
    moving = ScaleInSettings(move_local_storage=True)
    return tuple(replace(sector, scale_in=moving) for sector in settings.sectors)
