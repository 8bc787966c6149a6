"""Nodes whose instance is another node too, is nobody's, or is not shown by EC2."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.actions import (
    DeleteNode,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Node, Pod
from reconciler.model.fleet import Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, InstanceId
from reconciler.model.plan import Plan
from reconciler.planner.planner import plan
from tests.builders import (
    ago,
    make_cloud,
    make_cloud_of,
    make_fleet,
    make_instance,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import (
    FLEET,
    drained,
    full,
    kept,
    on,
    told,
    unneeded,
)

I1 = InstanceId("i-1")


def planned(*objects: Node | Pod, target: int = 1, foreign: Instance | None = None) -> Plan:
    """The plan in a world where EC2 runs one instance per id; `foreign` replaces one of them."""
    others = () if foreign is None else (foreign,)
    cloud = make_cloud_of(objects, make_fleet(FLEET, target), others=others)
    return plan(make_snapshot(*objects, cloud=cloud), make_settings(FLEET))


def old_name(**changed: Any) -> Node:
    """What a renamed kubelet left behind."""
    stale = {"ready": False, "created_at": ago(90_000), "ready_changed_at": ago(7200)}
    return make_node("old", FLEET, instance_id=I1, **{**stale, **changed})


def machine(**changed: Any) -> Node:
    """The node that the kubelet registers by now."""
    return make_node("new", FLEET, instance_id=I1, **changed)


# ---- one instance, two nodes ----------------------------------------------------------------


def test_unready_name_of_a_machine_at_work_ends_nothing() -> None:
    """A kubelet was renamed: ending the old node's instance would end the new node's pods."""
    made = planned(old_name(), machine(), on("new", cpu="3"))
    assert made.actions == ()
    assert kept(made)["old"] == "unreadable"


def test_idle_name_of_a_machine_at_work_ends_nothing() -> None:
    """Both are Ready until the node lifecycle controller misses the old one's heartbeat."""
    idle = unneeded("old", FLEET, instance_id=I1, created_at=ago(90_000))
    made = planned(idle, machine(), on("new", cpu="3"))
    assert told(made, TaintNode) == []


def test_drained_name_of_a_machine_at_work_ends_nothing() -> None:
    """The last check looks for pods under the old name, and finds none."""
    made = planned(
        drained("old", FLEET, instance_id=I1, created_at=ago(90_000)),
        machine(),
        on("new", cpu="3"),
    )
    assert told(made, TerminateInstance) == []


def test_idle_machine_stays_while_pods_run_under_its_other_name() -> None:
    """The kubelet that the pods belong to may still answer."""
    other = old_name(ready=True)
    made = planned(unneeded("new", FLEET, instance_id=I1), other, on("old", cpu="3"))
    assert told(made, TaintNode) == []
    assert kept(made)["new"] == "unreadable"


def test_drained_machine_is_given_back_when_pods_run_under_its_other_name() -> None:
    """Its end would end them."""
    made = planned(drained("new", FLEET, instance_id=I1), old_name(ready=True), on("old", cpu="3"))
    assert told(made, TerminateInstance) == []
    assert told(made, UntaintNode) == ["new"]


def test_idle_machine_goes_when_nothing_runs_under_its_old_name() -> None:
    """A name that nobody cleans up would keep a machine for ever."""
    gone = on("old", cpu="3", deleting=True)
    made = planned(unneeded("new", FLEET, instance_id=I1), old_name(), gone)
    assert told(made, TaintNode) == ["new"]


def test_unready_machine_with_a_job_under_its_other_name_is_not_replaced() -> None:
    """The job may go on where a kubelet has only lost its connection."""
    down = machine(ready=False, created_at=ago(9000), ready_changed_at=ago(1200))
    made = planned(down, old_name(), on("old", owner="Job"))
    assert told(made, TerminateInstance) == []
    assert kept(made)["new"] == "may-still-run"


def test_two_names_of_one_instance_count_as_one_node_of_their_fleet() -> None:
    """Counted twice, the fleet would be asked for one node more than its pods need."""
    made = planned(old_name(), machine(), full("new", "4"), make_pod("waits", cpu="3"))
    assert [(f.joined, f.target) for f in made.fleets] == [(1, 2)]


def test_every_name_of_a_terminated_instance_goes() -> None:
    """Neither of them is a machine any more."""
    live = make_fleet(FLEET, 0)
    ended = replace(make_instance(machine(), live), state="terminated")
    cloud = make_cloud(live, instances=[ended])
    made = plan(make_snapshot(old_name(), machine(), cloud=cloud), make_settings(FLEET))
    assert sorted(told(made, DeleteNode)) == ["new", "old"]


def of_machine_under_old_node(
    *more: Pod,
    ready: bool = True,
    old_listed: bool = True,
    name: str = "again.internal",
    draining: bool = False,
    empty: bool = False,
    seconds: float = 2400,
    asked: bool = False,
) -> Plan:
    """The plan where a new instance has the private name of a Node that names a terminated one.

    Args:
        more: Further pods.
        ready: Whether the Node is Ready.
        old_listed: Whether EC2 still shows the terminated instance.
        name: The new instance's private name.
        draining: Whether the Node carries our taint.
        empty: Whether no pod is on it.
        seconds: How long ago the new instance was launched.
        asked: Whether EC2 was just asked for instances.
    """
    live = make_fleet(FLEET, 2)
    left = make_node("again", FLEET, ready=ready, ready_changed_at=ago(120), draining=draining)
    other = make_node("other", FLEET)
    old = replace(make_instance(left, live), state="terminated")
    new = replace(
        make_instance(left, live), id=InstanceId("i-new"), launched_at=ago(seconds),
        private_dns_name=name,
    )  # fmt: skip
    known = [make_instance(other, live), new, *([old] if old_listed else [])]
    cloud = make_cloud(live, instances=known, instances_asked=asked)
    pods = more if empty else (full("again"), *more)
    return plan(make_snapshot(left, other, *pods, cloud=cloud), make_settings(FLEET))


def test_machine_that_is_ready_under_the_node_of_its_predecessor_keeps_node_and_instance() -> None:
    """Its address came again at once: a Node's providerID never changes, and its pods would die."""
    made = of_machine_under_old_node()
    assert (told(made, DeleteNode), told(made, TerminateInstance)) == ([], [])
    assert kept(made)["again"] == "unreadable"
    assert told(of_machine_under_old_node(old_listed=False), TerminateInstance) == []


@pytest.mark.parametrize("old_listed", [True, False])
@pytest.mark.parametrize(
    ("asked", "seconds", "bought"), [(True, 7200, 1), (False, 7200, 1), (True, 60, 0)]
)
def test_machine_that_has_long_been_ready_under_another_node_is_not_waited_for(
    *, old_listed: bool, asked: bool, seconds: float, bought: int
) -> None:
    """Pods waited for it for ever: it counted as launching, and never has a node of its own."""
    made = of_machine_under_old_node(
        full("other"),
        make_pod("waiting", cpu="3"),
        old_listed=old_listed,
        asked=asked,
        seconds=seconds,
    )
    raised = [a.to_capacity - a.from_capacity for a in made.actions if isinstance(a, SetCapacity)]
    assert sum(raised) == bought
    assert [f.joined for f in made.fleets] == [1 + bought]


def test_node_of_a_terminated_instance_goes_when_a_drain_has_closed_and_emptied_it() -> None:
    """The next machine under its name would have the taint for good, and take no pods."""
    assert told(of_machine_under_old_node(draining=True), DeleteNode) == []
    assert told(of_machine_under_old_node(empty=True), DeleteNode) == []
    assert told(of_machine_under_old_node(draining=True, empty=True), DeleteNode) == ["again"]


def test_node_of_a_terminated_instance_goes_where_no_machine_is_ready_under_it() -> None:
    """A new kubelet cannot register while the old Node has its name."""
    for made in (of_machine_under_old_node(ready=False), of_machine_under_old_node(name="other")):
        assert told(made, DeleteNode) == ["again"]


# ---- instances that are not the fleet's -----------------------------------------------------


def launched_by_hand(**tags: str) -> Instance:
    """An instance of nobody's fleet, which says that it is of this cluster."""
    owned = {"kubernetes.io/cluster/c": "owned", **tags}
    return Instance(
        id=InstanceId("i-hand"),
        region=make_fleet(FLEET).region,
        fleet_id=None,
        state="running",
        instance_type="m5.xlarge",
        zone="us-west-2a",
        launched_at=ago(7200),
        tags=FrozenMap(owned),
    )


@pytest.mark.parametrize("state", ["idle", "draining", "unready"])
def test_labelled_node_of_an_instance_without_a_fleet_is_never_ended(state: str) -> None:
    """Someone launched it by hand and labelled it, so that a sector's pods may run there."""
    node = {
        "idle": unneeded("hand", FLEET),
        "draining": drained("hand", FLEET),
        "unready": make_node("hand", FLEET, ready=False, ready_changed_at=ago(1200)),
    }[state]
    made = planned(node, make_node("n", FLEET), full("n"), foreign=launched_by_hand())
    assert made.actions == ()
    assert [f.joined for f in made.fleets] == [1]


def test_instance_that_carries_the_fleets_own_tag_is_the_fleets() -> None:
    """Membership may be missing from an answer; the tags that we set are not."""
    mine = launched_by_hand(fleet=FLEET.name)
    node = unneeded("hand", FLEET)
    made = planned(node, make_node("n", FLEET), full("n"), target=2, foreign=mine)
    assert told(made, TaintNode) == ["hand"]


# ---- instances that EC2 does not show -------------------------------------------------------


def unseen(*objects: Node | Pod) -> Plan:
    """The plan while EC2 shows the instance of node `n` alone."""
    cloud = make_cloud_of([make_node("n", FLEET)], make_fleet(FLEET, 2))
    snapshot = make_snapshot(make_node("n", FLEET), full("n"), *objects, cloud=cloud)
    return plan(snapshot, make_settings(FLEET))


def test_ready_node_whose_instance_ec2_does_not_show_is_not_emptied() -> None:
    """Foreign, or an answer that is late: lowering the fleet's target for it would cost a node."""
    made = unseen(unneeded("a", FLEET))
    assert told(made, TaintNode) == []
    assert kept(made)["a"] == "unreadable"


def test_draining_node_whose_instance_ec2_does_not_show_waits() -> None:
    """The fleet's target would go down, and nothing would end."""
    assert unseen(drained("a", FLEET)).actions == ()


def test_draining_node_whose_instance_went_away_loses_its_object() -> None:
    """Nobody would end its drain: there is nothing to terminate."""
    made = unseen(drained("a", FLEET, ready=False, ready_changed_at=ago(1200)))
    assert told(made, DeleteNode) == ["a"]
    assert told(made, TerminateInstance) == []


def test_node_whose_instance_went_away_counts_for_nothing_in_its_fleets_target() -> None:
    """EC2 has replaced it: one node more than the target would mean that another may just end."""
    shown = [drained("a", FLEET), make_node("n", FLEET)]
    silent = make_node("gone", FLEET, ready=False, ready_changed_at=ago(60))
    cloud = make_cloud_of(shown, make_fleet(FLEET, 2))
    made = plan(make_snapshot(*shown, silent, full("n"), cloud=cloud), make_settings(FLEET))
    ended = [a for a in made.actions if isinstance(a, TerminateInstance)]
    assert [(a.node, a.decrement) for a in ended] == [("a", True)]
    assert [(f.joined, f.target) for f in made.fleets] == [(2, 1)]


def test_drain_of_a_node_without_a_provider_id_still_ends() -> None:
    """It would stay tainted for ever: nothing tells which instance it is."""
    node = drained("a", FLEET, seconds=3600, instance_id=None)
    made = unseen(node, on("a"))
    assert told(made, UntaintNode) == ["a"]


def test_nodes_leave_as_usual_where_instances_are_not_known_at_all() -> None:
    """Offline, with the answers about fleets alone, labels have to do."""
    live = make_fleet(FLEET, 2)
    cloud = make_cloud(live, instances_known=False)
    snapshot = make_snapshot(unneeded("a", FLEET), make_node("n", FLEET), full("n"), cloud=cloud)
    assert told(plan(snapshot, make_settings(FLEET)), TaintNode) == ["a"]


def test_instance_of_another_fleet_of_the_name_is_not_the_live_ones() -> None:
    """A fleet that was deleted and made anew leaves instances of the same name."""
    node = unneeded("hand", FLEET)
    other = replace(launched_by_hand(fleet=FLEET.name), fleet_id=FleetId("fleet-of-before"))
    made = planned(node, make_node("n", FLEET), full("n"), foreign=other)
    assert told(made, TaintNode) == []
