"""Which instances are taken for leftovers, or for protected ones: the rare cases."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import UNNEEDED_SINCE, TaintNode
from reconciler.model.fleet import CLUSTER_TAG, FLEET_TAG, Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, InstanceId
from reconciler.model.saved_state import LostFleet, ProtectedInstance
from reconciler.model.snapshot import CloudState
from reconciler.model.text import rfc3339
from reconciler.planner.fleets.instances.in_service import in_service
from reconciler.planner.fleets.instances.orphans import Orphans, find_orphans
from reconciler.planner.fleets.instances.protected_instances import still_protected
from reconciler.planner.fleets.instances.stuck import find_pod_on_missing_node
from reconciler.planner.planner import plan
from tests.builders import (
    AWAY,
    HOME,
    ago,
    kept_proof,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)

FLEET = make_fleet_settings()
LIVE = make_fleet(FLEET)
SETTINGS = make_settings(FLEET)
TAGS = FrozenMap({CLUSTER_TAG: SETTINGS.cluster, FLEET_TAG: FLEET.name})
LOST = LostFleet(id=FleetId("fleet-dead"), region=HOME, since=ago(9000))
KEY = FLEET.fleet_keys()[0]


def left(name: str, **changed: Any) -> Instance:
    """An old instance of a fleet that EC2 has not listed for long."""
    dead = replace(LIVE, id=FleetId(changed.pop("fleet", LOST.id)))
    node = make_node("x", FLEET, instance_id=InstanceId(name))
    return make_instance(node, dead, tags=TAGS, **changed)


def found(*instances: Instance, objects: tuple[Any, ...] = (), **changed: Any) -> Orphans:
    """The orphans among these instances."""
    cloud = make_cloud(changed.pop("live", LIVE), instances=instances)
    snapshot = make_snapshot(*objects, cloud=cloud, lost_fleets=(LOST,))
    return find_orphans(snapshot, SETTINGS)


def names(orphans: Orphans) -> list[str]:
    """The instances that are orphans."""
    return [orphan.instance.id for orphan in orphans.found]


def test_orphans_are_those_of_ec2_fleets_alone_sorted_by_id() -> None:
    """A group that was not listed for a moment would lose its instances behind its back."""
    of_group = left("i-g", fleet="some-group")
    assert names(found(left("i-b"), of_group, left("i-c"), left("i-a"))) == ["i-a", "i-b", "i-c"]


def test_instance_that_is_gone_is_no_orphan_and_hides_no_other() -> None:
    """The first that EC2 still lists as terminated would keep all others running."""
    gone = left("i-a", state="terminated")
    alive = left("i-b")
    assert names(found(gone, alive)) == ["i-b"]
    live = left("i-1", fleet=LIVE.id)
    assert names(found(live, alive)) == ["i-b"]
    assert found(gone).ended == frozenset()
    node = make_node("n", FLEET, instance_id=InstanceId("i-a"))
    assert found(gone, objects=(node,)).ended == {"n"}
    assert found(left("i-a", state="stopping"), objects=(node,)).ended == frozenset()


def test_fleet_that_ec2_has_only_as_deleted_is_waited_for() -> None:
    """An apply that is about to create it again would find its nodes drained."""
    ended = replace(LIVE, state="deleted-running")
    assert names(found(left("i-a", fleet=LIVE.id), live=ended)) == []


@pytest.mark.parametrize("fleet", ["", FLEET.name])
def test_orphans_without_a_node_are_left_alone_while_a_node_could_be_any_instance(
    fleet: str,
) -> None:
    """A node that cannot be read may be the very instance, with pods on it."""
    unknown = make_node("strange", FLEET if fleet else None, instance_id=None, unreadable=not fleet)
    known = make_node("n", FLEET, instance_id=InstanceId("i-a"))
    orphans = found(left("i-a"), left("i-b"), objects=(unknown, known))
    assert (names(orphans), orphans.hidden) == (["i-a"], ())


def test_pod_on_an_unlisted_node_hides_only_what_is_no_node_and_certain() -> None:
    """More would be shown as held than would be ended without the pod."""
    pod = make_pod("p", node="missing")
    node = make_node("n", FLEET, instance_id=InstanceId("i-a"))
    young = left("i-c", fleet="fleet-young")
    orphans = found(left("i-a"), left("i-b"), young, objects=(pod, node))
    assert (names(orphans), orphans.hidden) == (["i-a"], ("i-b",))
    assert found(left("i-b"), objects=(node,)).hidden == ()


@pytest.mark.parametrize(
    ("changed", "proves"),
    [
        ({}, True),
        ({"phase": "Pending", "started_at": ago(60)}, True),
        ({"phase": "Pending"}, False),
        ({"phase": "Succeeded", "started_at": ago(60)}, False),
        ({"phase": "Failed", "started_at": ago(60)}, False),
        ({"deleting": True}, False),
    ],
)
def test_only_a_pod_at_work_proves_a_node_that_is_not_listed(
    changed: dict[str, Any], *, proves: bool
) -> None:
    """Finished pods of a node that is long gone would keep every stuck instance."""
    pods = [make_pod(name, node="missing", **changed) for name in ("b", "a")]
    others = make_pod("waits"), make_pod("c", node="n"), make_node("n")
    hole = find_pod_on_missing_node(make_snapshot(*pods, *others))
    assert (hole is not None) is proves
    if hole is not None:
        assert hole.key.name == "a"


def protected(cloud: CloudState | None) -> list[str]:
    """Which of three remembered instances may still exist: one lives, one is gone, one unknown."""
    known = tuple(ProtectedInstance(instance=InstanceId(i), at=ago(60)) for i in "abc")
    found = still_protected(make_snapshot(cloud=cloud, protected_instances=known))
    return [protected_instance.instance for protected_instance in found]


def test_refusal_of_ec2_is_remembered_while_the_instance_may_exist() -> None:
    """It would be asked again in each cycle, and the fleet's target fall for a moment."""
    shown = (
        replace(left("a"), id=InstanceId("a")),
        replace(left("b"), id=InstanceId("b"), state="terminated"),
    )
    assert protected(make_cloud(LIVE, instances=shown)) == ["a"]
    assert protected(None) == ["a", "b", "c"]
    assert protected(make_cloud(LIVE, instances=shown, instances_known=False)) == ["a", "b", "c"]
    assert protected(make_cloud(LIVE, instances=shown, silent=frozenset({AWAY}))) == ["a", "b", "c"]


def in_target(cloud: CloudState, *, shown: bool = True) -> list[str]:
    """Which nodes count in the target: one whose instance EC2 shows, one in standby, one unseen."""
    nodes = [make_node(name, FLEET) for name in ("seen", "aside", "unseen")]
    instances = {
        nodes[0].name: make_instance(nodes[0], LIVE),
        nodes[1].name: make_instance(nodes[1], LIVE, set_aside=True),
    }
    regions = frozenset({HOME}) if shown else frozenset()
    return [n.name for n in in_service(nodes, KEY, regions, instances, cloud)]


def test_node_counts_in_the_target_only_if_ec2_shows_its_instance() -> None:
    """A label is no membership: the target would be lowered below what is needed."""
    holds, empty = make_fleet(FLEET, 2, fulfilled_capacity=2), make_fleet(FLEET, 0)
    assert in_target(make_cloud(holds, instances_asked=True)) == ["seen"]
    assert in_target(make_cloud(holds, instances_asked=False)) == ["seen", "unseen"]
    unknown = make_cloud(holds, instances_asked=True, instances_known=False)
    assert in_target(unknown) == ["seen", "unseen"]
    assert in_target(make_cloud(empty, instances_asked=True), shown=False) == ["seen"]
    # An answer without any instance is not believed while a fleet of the region has some.
    assert in_target(make_cloud(holds, instances_asked=True), shown=False) == ["seen", "unseen"]
    two = make_cloud(empty, replace(holds, id=FleetId("fleet-2")), instances_asked=True)
    assert in_target(two, shown=False) == ["seen", "unseen"]
    away = make_fleet(FLEET, 2, fulfilled_capacity=2, region=AWAY)
    assert in_target(make_cloud(empty, away, instances_asked=True), shown=False) == ["seen"]
    silent = make_cloud(holds, instances_asked=True, silent=frozenset({HOME}))
    assert in_target(silent) == ["seen", "unseen"]


def begun(lost_seconds: float = 9000, launched: float = 9000, **changed: Any) -> list[str]:
    """The orphaned nodes whose end begins; the one there has been empty for long."""
    empty = FrozenMap({UNNEEDED_SINCE: rfc3339(ago(5000))})
    node = make_node(
        "n",
        FLEET,
        instance_id=InstanceId("i-a"),
        annotations=empty,
        created_at=ago(9000),
        **changed,
    )
    cloud = make_cloud(LIVE, instances=[left("i-a", launched_at=ago(launched))])
    lost = replace(LOST, since=ago(lost_seconds))
    made = plan(make_snapshot(node, cloud=cloud, lost_fleets=(lost,), **kept_proof(LIVE)), SETTINGS)
    return [str(action.node) for action in made.actions if isinstance(action, TaintNode)]


def test_node_of_a_lost_fleet_is_drained_only_if_that_is_certain() -> None:
    """One answer of EC2 that omits a fleet would end all of its idle nodes."""
    assert begun() == ["n"]
    assert begun(lost_seconds=60) == []
    assert begun(launched=60) == []
    assert begun(ready=False) == []
    assert begun(unreadable=True) == []
    assert begun(deleting=True) == []
