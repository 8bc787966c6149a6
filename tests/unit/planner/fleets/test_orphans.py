"""What a deleted fleet left behind is ended when nothing needs it, and nothing else ever is."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.actions import (
    DO_NOT_DISRUPT,
    UNNEEDED_SINCE,
    AnnotateNode,
    DeleteNode,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.fleet import Fleet, Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, InstanceId
from reconciler.model.plan import Plan
from reconciler.model.saved_state import LostFleet
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.planner.explain.explain import explain
from reconciler.planner.planner import plan
from tests.builders import (
    AWAY,
    HOME,
    NOW,
    ago,
    kept_proof,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)

FLEET = make_fleet_settings()
LIVE = make_fleet(FLEET)
DEAD = FleetId("fleet-dead")
TAGS = FrozenMap({"cluster": "c", "fleet": FLEET.name})
LOST = LostFleet(id=DEAD, region=HOME, since=ago(1000))
SETTINGS = make_settings(FLEET)


def orphan(name: str = "i-old", **changed: Any) -> Instance:
    """A running instance of a fleet that EC2 no longer lists."""
    return Instance(
        id=InstanceId(name),
        region=changed.pop("region", HOME),
        fleet_id=changed.pop("fleet_id", DEAD),
        state=changed.pop("state", "running"),
        instance_type="small.type",
        zone="us-west-2a",
        launched_at=changed.pop("launched_at", ago(5000)),
        tags=changed.pop("tags", TAGS),
        **changed,
    )


def snapshot_of(*objects: Any, **changed: Any) -> Snapshot:
    """A cluster that was proven before: nothing is held for want of a proof."""
    return make_snapshot(*objects, **kept_proof(LIVE), **changed)


def cloud_of(
    *instances: Instance, fleets: tuple[Fleet, ...] = (LIVE,), **changed: Any
) -> CloudState:
    """EC2 with the fleet's successor alive."""
    return make_cloud(*fleets, instances=instances, **changed)


def swept(made: Plan) -> list[tuple[str, str | None]]:
    """Terminations: instance and node."""
    return [(a.instance, a.node) for a in made.actions if isinstance(a, TerminateInstance)]


def test_lost_instance_that_is_no_node_is_ended_without_lowering_a_target() -> None:
    """It would be billed for ever: EC2 ends it with no fleet, and no fleet replaces it."""
    made = plan(snapshot_of(cloud=cloud_of(orphan()), lost_fleets=(LOST,)), SETTINGS)
    (action,) = made.actions
    assert isinstance(action, TerminateInstance)
    assert (action.instance, action.fleet_id, action.decrement) == ("i-old", DEAD, False)
    assert action.precondition == "orphan"
    assert made.orphans == 1


def test_fleet_that_one_answer_leaves_out_loses_nothing() -> None:
    """DescribeFleets is eventually consistent: a fleet at work would lose its instances."""
    made = plan(snapshot_of(cloud=cloud_of(orphan())), SETTINGS)
    assert made.actions == ()
    assert made.lost_fleets == (LostFleet(id=DEAD, region=HOME, since=NOW),)


def test_fleet_that_is_listed_again_is_forgotten() -> None:
    """Its next absence would count from the first one."""
    back = make_fleet(make_fleet_settings("other", name="other"), 1, id=DEAD)
    snapshot = snapshot_of(cloud=cloud_of(orphan(), fleets=(LIVE, back)), lost_fleets=(LOST,))
    assert (plan(snapshot, SETTINGS).actions, plan(snapshot, SETTINGS).lost_fleets) == ((), ())


def test_fleet_that_is_there_and_not_planned_with_loses_nothing() -> None:
    """Instances of a fleet of type request, or of one without our tags, were ended for gone."""
    node = make_node("old", FLEET, instance_id=InstanceId("i-old"))
    cloud = cloud_of(orphan(), other_fleets=frozenset({DEAD}))
    made = plan(snapshot_of(node, cloud=cloud, lost_fleets=(LOST,)), SETTINGS)
    assert (made.actions, made.orphans, made.lost_fleets) == ((), 0, ())


def test_fleet_deleted_with_its_instances_running_needs_no_second_look() -> None:
    """EC2 says itself that nobody looks after them."""
    deleted = make_fleet(FLEET, 1, id=DEAD, state="deleted_running")
    cloud = cloud_of(orphan(), fleets=(LIVE, deleted))
    made = plan(snapshot_of(cloud=cloud), SETTINGS)
    assert swept(made) == [("i-old", None)]


@pytest.mark.parametrize(
    "changed",
    [
        {"tags": FrozenMap({"fleet": FLEET.name})},
        {"tags": FrozenMap({"cluster": "another", "fleet": FLEET.name})},
        {"tags": FrozenMap({"cluster": "c"})},
        {"tags": FrozenMap({"kubernetes.io/cluster/c": "owned"})},
        {"fleet_id": None},
        {"fleet_id": FleetId("some-auto-scaling-group")},
        {"launched_at": ago(800)},
        {"launched_at": None},
        {"state": "shutting-down"},
        {"state": "stopped"},
        {"protected": True},
        {"region": AWAY},
    ],
)
def test_instance_that_is_not_certainly_ours_and_lost_is_never_touched(
    changed: dict[str, Any],
) -> None:
    """Somebody's database would be ended to save a node."""
    lost = replace(LOST, region=changed.get("region", HOME))
    snapshot = snapshot_of(cloud=cloud_of(orphan(**changed)), lost_fleets=(lost,))
    assert plan(snapshot, SETTINGS).actions == ()


def test_nothing_is_swept_while_ec2_says_that_it_ends_it() -> None:
    """A deletion under way would be asked for with every cycle."""
    going = make_fleet(FLEET, 1, id=DEAD, state="deleted_terminating")
    assert plan(snapshot_of(cloud=cloud_of(orphan(), fleets=(LIVE, going))), SETTINGS).actions == ()


def test_instances_of_a_fleet_that_the_config_expects_are_left_alone() -> None:
    """A fleet deleted by mistake would take its nodes with it before it is made again."""
    made = plan(snapshot_of(cloud=cloud_of(orphan(), fleets=()), lost_fleets=(LOST,)), SETTINGS)
    assert made.actions == ()


def test_fleet_that_the_config_dropped_and_terraform_deleted_is_swept() -> None:
    """Its nodes would outlive it."""
    tags = FrozenMap({"cluster": "c", "fleet": "retired-small"})
    made = plan(snapshot_of(cloud=cloud_of(orphan(tags=tags)), lost_fleets=(LOST,)), SETTINGS)
    assert swept(made) == [("i-old", None)]


def node_of(**changed: Any) -> Any:
    """The node that the orphan is."""
    return make_node("old", FLEET, instance_id=InstanceId("i-old"), **changed)


IDLE = {UNNEEDED_SINCE: "2026-01-31T11:30:00Z"}


def test_lost_node_counts_for_no_fleet() -> None:
    """The live fleet would ask for its joined nodes and these on top."""
    made = plan(snapshot_of(node_of(), cloud=cloud_of(orphan()), lost_fleets=(LOST,)), SETTINGS)
    assert [(f.joined, f.launching) for f in made.fleets] == [(0, 0)]


def test_empty_lost_node_goes_by_timer_taint_and_last_check() -> None:
    """A pod that comes in between would be killed."""
    cloud = cloud_of(orphan())
    first = plan(snapshot_of(node_of(), cloud=cloud, lost_fleets=(LOST,)), SETTINGS)
    assert [type(a) for a in first.actions] == [AnnotateNode]
    idle = node_of(annotations=FrozenMap(IDLE))
    second = plan(snapshot_of(idle, cloud=cloud, lost_fleets=(LOST,)), SETTINGS)
    assert [type(a) for a in second.actions] == [TaintNode]
    tainted = node_of(annotations=FrozenMap(IDLE), draining=True)
    third = plan(snapshot_of(tainted, cloud=cloud, lost_fleets=(LOST,)), SETTINGS)
    assert swept(third) == [("i-old", "old")]
    assert third.actions[0].policy == "scale-in"


def test_lost_node_with_pods_stays_and_says_so() -> None:
    """Work would be killed because a fleet was deleted."""
    snapshot = snapshot_of(
        node_of(annotations=FrozenMap(IDLE)),
        make_pod(node="old"),
        cloud=cloud_of(orphan()),
        lost_fleets=(LOST,),
    )
    made = plan(snapshot, SETTINGS)
    assert [(a.key, a.value) for a in made.actions if isinstance(a, AnnotateNode)] == [
        (UNNEEDED_SINCE, None)
    ]
    assert [(k.node, k.code) for k in made.kept] == [("old", "orphan")]


def test_lost_node_that_is_used_again_is_given_back() -> None:
    """Its taint would stay for good."""
    snapshot = snapshot_of(
        node_of(draining=True), make_pod(node="old"), cloud=cloud_of(orphan()), lost_fleets=(LOST,)
    )
    assert any(isinstance(a, UntaintNode) for a in plan(snapshot, SETTINGS).actions)


def test_protected_lost_node_stays() -> None:
    """People's word counts for orphans too."""
    kept = node_of(annotations=FrozenMap({**IDLE, DO_NOT_DISRUPT: "true"}))
    snapshot = snapshot_of(kept, cloud=cloud_of(orphan()), lost_fleets=(LOST,))
    assert plan(snapshot, SETTINGS).actions == ()


def test_lost_node_is_no_destination_for_pods_that_are_moved() -> None:
    """Scale-in would fill what the sweep is about to end."""
    busy = make_node("busy", FLEET, annotations=FrozenMap(IDLE))
    live = make_fleet(FLEET, 1)
    own = orphan("i-busy", fleet_id=live.id)
    snapshot = snapshot_of(
        busy,
        node_of(annotations=FrozenMap(IDLE)),
        make_pod(node="busy", cpu="100m", memory="64Mi"),
        cloud=cloud_of(orphan(), own, fleets=(live,)),
        lost_fleets=(LOST,),
    )
    made = plan(snapshot, SETTINGS)
    assert [p for p in made.placements if p.moved_from] == []


def test_node_object_of_an_ended_orphan_goes() -> None:
    """Where no cloud controller runs it would stay as a name for ever."""
    gone = cloud_of(orphan(state="terminated"))
    made = plan(snapshot_of(node_of(ready=False), cloud=gone, lost_fleets=(LOST,)), SETTINGS)
    (action,) = made.actions
    assert isinstance(action, DeleteNode)
    assert action.instance == "i-old"


def test_many_orphans_at_once_wait_for_the_second_list() -> None:
    """A broken answer about fleets would end everything that it left out."""
    found = [orphan(f"i-{n}") for n in range(5)]
    made = plan(snapshot_of(cloud=cloud_of(*found), lost_fleets=(LOST,)), SETTINGS)
    assert (made.actions, len(made.held)) == ((), 5)


def test_region_that_does_not_answer_loses_and_forgets_nothing() -> None:
    """An outage of an API would count as the deletion of its fleets, or restart every clock."""
    away = replace(LOST, region=AWAY)
    quiet = cloud_of(orphan(region=AWAY), silent=frozenset({AWAY}))
    made = plan(snapshot_of(cloud=quiet, lost_fleets=(away,)), SETTINGS)
    assert (made.actions, made.lost_fleets) == ((), (away,))


def test_clock_that_jumps_back_ends_nothing() -> None:
    """A time in the future counts as now."""
    future = replace(LOST, since=NOW + timedelta(hours=1))
    made = plan(snapshot_of(cloud=cloud_of(orphan()), lost_fleets=(future,)), SETTINGS)
    assert (made.actions, made.lost_fleets[0].since) == ((), NOW)


def test_pod_on_an_unlisted_node_keeps_every_orphan_that_is_no_node() -> None:
    """The list of nodes has holes: the instance may be one of them, at work."""
    lost = (LOST,)
    snapshot = snapshot_of(make_pod(node="unlisted"), cloud=cloud_of(orphan()), lost_fleets=lost)
    made = plan(snapshot, SETTINGS)
    assert made.actions == ()
    assert [(h.instance, h.code) for h in made.held] == [(orphan().id, "unlisted-node")]


def test_pod_that_no_kubelet_took_keeps_no_orphan() -> None:
    """Anybody may write the name of a node that there is not into a pod."""
    ghost = make_pod(node="unlisted", phase="Pending")
    snapshot = snapshot_of(ghost, cloud=cloud_of(orphan()), lost_fleets=(LOST,))
    assert [type(action) for action in plan(snapshot, SETTINGS).actions] == [TerminateInstance]


def test_orphan_is_explained_as_ours() -> None:
    """`foreign: never touched` would be a lie about a node that the sweep ends."""
    snapshot = snapshot_of(
        node_of(), make_pod(node="old"), cloud=cloud_of(orphan()), lost_fleets=(LOST,)
    )
    made = plan(snapshot, SETTINGS)
    (found,) = explain(snapshot, SETTINGS, made, nodes=["old"]).nodes
    assert (found.verdict, found.code) == ("kept", "orphan")
    assert "fleet-dead is gone; pods keep it" in found.because
