"""Whether this cluster is the one of the fleets' instances, and what follows (docs/promises.md)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.loops.lease.saved_state import with_stuck_ends
from reconciler.model.actions import (
    AnnotateNode,
    DeleteNode,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
)
from reconciler.model.fleet import Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, InstanceId
from reconciler.model.outcome import Outcome, OutcomeKind
from reconciler.model.plan import Plan
from reconciler.model.saved_state import LostFleet, StuckEnd
from reconciler.planner.planner import plan
from reconciler.planner.settings import StuckEndSettings
from tests.builders import (
    CLUSTER_UID,
    HOME,
    NOW,
    ago,
    identity,
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
from tests.unit.planner.disruption.scale_in.scene import FLEET, full, instance, unneeded
from tests.unit.planner.placed import ended

LIVE = make_fleet(FLEET, 6)
SETTINGS = make_settings(FLEET)
UNSEEN = [instance(LIVE, f"i-{n}", 3600 + n) for n in range(6)]
"""Instances at work, in whichever cluster."""
ENDINGS = (TerminateInstance, DeleteNode, EvictPod, TaintNode)


def seen(*objects: Any, instances: list[Instance] | None = None, **changed: Any) -> Plan:
    """The plan of a cluster with these objects and the fleet's instances, listed many times."""
    cloud = make_cloud(LIVE, instances=UNSEEN if instances is None else instances)
    settings = changed.pop("settings", SETTINGS)
    snapshot = make_snapshot(*objects, cloud=cloud, **{"relists": 9, **identity(), **changed})
    return plan(snapshot, settings)


def removed(made: Plan) -> list[str]:
    """What the plan ends, drains or deletes."""
    return [type(a).__name__ for a in made.actions if isinstance(a, ENDINGS)]


def codes(made: Plan) -> dict[str, str]:
    """Why instances are held."""
    return {each.instance: each.code for each in made.held}


def test_empty_cluster_with_the_config_of_another_ends_nothing_however_often_it_is_listed() -> None:
    """A wrong kube-context would end every instance of the fleets, with the pods on them."""
    made = seen()
    assert made.actions == ()
    assert codes(made) == {f"i-{n}": "unproven-cluster" for n in range(6)}
    assert made.binding.verdict == "unproven"
    assert "check the kubeconfig context" in made.binding.because
    assert made.fleet_states == ()


def test_cluster_with_nodes_of_others_ends_nothing() -> None:
    """The same with a context of a cluster that is at work."""
    others = [make_node(f"n{n}", instance_id=InstanceId(f"i-other-{n}")) for n in range(9)]
    made = seen(*others, *(full(f"n{n}") for n in range(9)))
    assert (removed(made), made.binding.verdict) == ([], "unproven")


def test_twin_cluster_with_fleets_of_the_same_names_loses_no_node() -> None:
    """The wrong AWS account: the cluster's own nodes look gone, idle and silent to it."""
    alike = [
        unneeded("idle", FLEET, instance_id=InstanceId("i-far-0")),
        make_node(
            "silent",
            FLEET,
            ready=False,
            ready_changed_at=ago(9000),
            instance_id=InstanceId("i-far-1"),
        ),
        make_node("going", FLEET, draining=True, instance_id=InstanceId("i-far-2")),
    ]
    made = seen(*alike, settings=replace(SETTINGS, allow_destroy=frozenset({FLEET.name})))
    assert (removed(made), made.binding.verdict) == ([], "unproven")
    assert {k.node: k.code for k in made.kept} == dict.fromkeys(
        ("idle", "silent", "going"), "unproven-cluster"
    )


@pytest.mark.parametrize("known", [True, False])
def test_twin_cluster_loses_no_node_while_ec2_shows_no_instance(known: bool) -> None:
    """Fleets at zero, or a list that contradicts them, prove nothing about another's cluster."""
    nodes = [unneeded(name, FLEET) for name in ("a", "b", "c")]
    pods = [make_pod(f"p{n}", node=node.name, cpu="100m") for n, node in enumerate(nodes[:2])]
    cloud = make_cloud(make_fleet(FLEET), instances_known=known, instances_asked=True)
    made = plan(make_snapshot(*nodes, *pods, cloud=cloud, relists=9, **identity()), SETTINGS)
    assert (removed(made), made.binding.verdict) == ([], "pending")
    proven = make_snapshot(*nodes, *pods, cloud=cloud, relists=9, **kept_proof(make_fleet(FLEET)))
    assert plan(proven, SETTINGS).binding.verdict == "previously-proven"


def test_one_node_that_is_an_instance_of_a_fleet_proves_the_cluster() -> None:
    """Nothing would ever be ended again."""
    node = make_node("n", FLEET)
    mine = make_instance(node, LIVE, launched_at=ago(9000))
    made = seen(node, full("n"), instances=[mine, UNSEEN[0]])
    assert made.binding.verdict == "proven"
    assert removed(made) == ["TerminateInstance"]
    assert made.binding.kept is not None
    assert made.binding.kept.cluster_uid == CLUSTER_UID
    assert made.binding.kept.fleets == (LIVE.id,)
    assert made.binding.kept.proven_at == NOW


def test_node_of_an_instance_that_ec2_has_ended_proves_the_cluster_too() -> None:
    """The Node object of the last instance would never be deleted."""
    node = make_node("n", FLEET, ready=False)
    ended = make_instance(node, LIVE, state="terminated")
    assert seen(node, instances=[ended, UNSEEN[0]]).binding.verdict == "proven"


def test_private_name_alone_proves_nothing() -> None:
    """Networks overlap: another cluster's node may have the name of one of our instances."""
    name = "ip-10-0-0-7.us-west-2.compute.internal"
    tags = FrozenMap({"cluster": "c", "fleet": FLEET.name})
    mine = replace(UNSEEN[0], private_dns_name=name, tags=tags)
    stranger = make_node(name, instance_id=None, created_at=ago(100))
    older = make_node(name, FLEET, instance_id=None, created_at=ago(90_000))
    own = make_node(name, FLEET, instance_id=None, created_at=ago(3500))
    verdicts = [seen(n, instances=[mine]).binding.verdict for n in (stranger, older, own)]
    assert verdicts == ["unproven", "unproven", "proven"]


def test_proof_on_the_lease_of_this_cluster_allows_a_few_ends() -> None:
    """A fleet scaled to zero, whose next image does not boot, would stand still."""
    made = seen(**kept_proof(LIVE))
    assert made.binding.verdict == "previously-proven"
    assert removed(made) == ["TerminateInstance"]
    assert sorted(codes(made).values()) == ["stuck-cap"] * 5


@pytest.mark.parametrize(
    "kept",
    [
        kept_proof(LIVE) | identity("another-cluster"),
        kept_proof(LIVE) | {"namespaces": ()},
        kept_proof(
            make_fleet(make_fleet_settings("other"), id=FleetId("fleet-of-another-account"))
        ),
        kept_proof(),
    ],
    ids=["restored into another cluster", "identity unknown", "another account", "names no fleet"],
)
def test_proof_of_elsewhere_proves_nothing(kept: dict[str, Any]) -> None:
    """A Lease from a backup, or the fleets of another account, would vouch for the cluster."""
    made = seen(**kept)
    assert (removed(made), made.binding.verdict, made.binding.kept) == ([], "unproven", None)


def test_fresh_cluster_grows_from_zero() -> None:
    """Without a node there is no proof, and without a purchase there is no node."""
    cloud = make_cloud(make_fleet(FLEET, 0))
    made = plan(make_snapshot(make_pod(), cloud=cloud, **identity()), SETTINGS)
    assert made.binding.verdict == "pending"
    assert [a.to_capacity for a in made.actions if isinstance(a, SetCapacity)] == [1]


def test_instances_that_are_still_booting_decide_nothing() -> None:
    """Every launch into an empty cluster would be reported as a wrong cluster."""
    made = seen(instances=[instance(LIVE, "i-new", 60)])
    assert (made.binding.verdict, made.held) == ("pending", ())


def test_fleet_whose_instances_are_no_nodes_here_is_asked_for_no_more_and_others_are() -> None:
    """A bad image in the first fleet would keep a fresh cluster empty, or fill another's fleets."""
    other = make_fleet_settings("large", price="0.50")
    cloud = make_cloud(LIVE, make_fleet(other, 0), instances=UNSEEN)
    snapshot = make_snapshot(make_pod(cpu="1"), cloud=cloud, **identity())
    made = plan(snapshot, make_settings(FLEET, other))
    assert [(a.fleet, a.to_capacity) for a in made.actions if isinstance(a, SetCapacity)] == [
        ("primary-large", 1)
    ]
    (closed,) = [f for f in made.fleets if f.unavailable]
    assert (closed.fleet, closed.target) == (FLEET.name, 6)
    assert "never became a node of this cluster" in closed.unavailable


def test_orphans_are_left_alone_in_a_cluster_that_is_not_proven() -> None:
    """What a deleted fleet left behind may be at work in the cluster that it belongs to."""
    tags = FrozenMap({"cluster": "c", "fleet": FLEET.name})
    lost = replace(UNSEEN[0], fleet_id=FleetId("fleet-gone"), tags=tags)
    known = (LostFleet(id=FleetId("fleet-gone"), region=HOME, since=ago(9000)),)
    made = seen(instances=[lost], lost_fleets=known)
    assert (removed(made), codes(made)) == ([], {"i-0": "unproven-cluster"})


def with_node(stuck: int, **changed: Any) -> Plan:
    """Twenty nodes at work, which prove the cluster, and so many instances that never joined."""
    nodes = [make_node(f"n{n}", FLEET) for n in range(20)]
    at_work = [make_instance(node, LIVE, launched_at=ago(9000)) for node in nodes]
    dead = [instance(LIVE, f"i-{n}", 3600 - n) for n in range(stuck)]
    busy = [full(node.name) for node in nodes]
    return seen(*nodes, *busy, instances=[*at_work, *dead], **changed)


def test_one_plan_ends_only_as_many_as_the_limit_the_oldest_first() -> None:
    """One wrong picture in a right cluster would end everything that has just been launched."""
    made = with_node(8)
    assert ended(made) == [f"i-{n}" for n in range(5)]
    assert codes(made) == {f"i-{n}": "stuck-cap" for n in range(5, 8)}
    assert len(made.stuck_ends) == 5


def test_limit_of_an_hour_holds_over_plans_and_restarts() -> None:
    """Cycle after cycle, five at a time, would end them all in a minute."""
    limits = replace(SETTINGS, stuck_ends=StuckEndSettings(per_cycle=5, per_hour=6))
    before = tuple(StuckEnd(instance=InstanceId(f"x-{n}"), at=ago(1800)) for n in range(4))
    made = with_node(8, stuck_ends=before, settings=limits)
    assert ended(made) == ["i-0", "i-1"]
    assert len(made.stuck_ends) == 6
    old = tuple(replace(stuck_end, at=ago(3601)) for stuck_end in before)
    assert len(ended(with_node(8, stuck_ends=old, settings=limits))) == 5


def test_end_that_is_asked_for_again_counts_once() -> None:
    """A throttled TerminateInstances would use up the hour."""
    limits = replace(SETTINGS, stuck_ends=StuckEndSettings(per_cycle=5, per_hour=2))
    asked = tuple(StuckEnd(instance=InstanceId(f"i-{n}"), at=ago(60)) for n in range(2))
    made = with_node(3, stuck_ends=asked, settings=limits)
    assert ended(made) == ["i-0", "i-1"]
    assert made.stuck_ends == tuple(sorted(asked))


@pytest.mark.parametrize(("kind", "counted"), [("applied", 3), ("unknown", 3), ("refused", 1)])
def test_end_that_was_refused_does_not_count(kind: OutcomeKind, counted: int) -> None:
    """An instance refresh that began meanwhile would use up the hour of all other fleets."""
    before = (StuckEnd(instance=InstanceId("i-0"), at=ago(60)),)
    made = with_node(3, stuck_ends=before)
    outcomes = [Outcome(action=action, kind=kind) for action in made.actions]
    assert len(with_stuck_ends(made, outcomes).stuck_ends) == counted


@pytest.mark.parametrize(("kept", "bought"), [(False, 0), (True, 1)], ids=["replaced", "kept"])
def test_pods_do_not_wait_for_instances_that_stay_dead_for_an_hour(kept: bool, bought: int) -> None:
    """After a bad image the limit keeps the last of its instances, and pods would wait for them."""
    limits = replace(SETTINGS, stuck_ends=StuckEndSettings(per_cycle=2, per_hour=2))
    used = tuple(StuckEnd(instance=InstanceId(f"x-{n}"), at=ago(60)) for n in range(2))
    nodes = [make_node(f"n{n}", FLEET) for n in range(20)]
    joined = [make_instance(node, LIVE, launched_at=ago(2000)) for node in nodes]
    dead = [instance(LIVE, f"i-{n}", 3600 - n) for n in range(2)]
    cloud = make_cloud(make_fleet(FLEET, 22), instances=[*joined, *dead])
    snapshot = make_snapshot(
        *nodes, *(full(node.name) for node in nodes), make_pod(cpu="3"),
        cloud=cloud, relists=9, stuck_ends=used if kept else (), **identity(),
    )  # fmt: skip
    made = plan(snapshot, limits)
    raised = [a.to_capacity - 22 for a in made.actions if isinstance(a, SetCapacity)]
    assert sum(raised) == bought
    assert len(ended(made)) == (0 if kept else 2)


def test_zero_ends_none() -> None:
    """A person who wants to look at such instances first could not say so."""
    limits = replace(SETTINGS, stuck_ends=StuckEndSettings(per_cycle=0, per_hour=20))
    assert ended(with_node(3, settings=limits)) == []


def test_second_list_alone_does_not_lift_the_safety_stop_for_instances_never_seen() -> None:
    """An API server that lost its nodes (etcd from an old backup) would cost them all."""
    first = with_node(30, relists=1)
    assert ended(first) == []
    assert set(codes(first).values()) == {"safety-stop"}
    again = with_node(30, relists=2)
    assert ended(again) == ["i-0"]
    assert list(codes(again).values()) == ["stuck-cap"] * 29
    used = tuple(StuckEnd(instance=InstanceId(f"x-{n}"), at=ago(60)) for n in range(3))
    assert ended(with_node(30, relists=9, stuck_ends=used)) == []


def test_kept_proof_is_written_again_only_now_and_then() -> None:
    """Each cycle would write the Lease."""
    node = make_node("n", FLEET)
    mine = [make_instance(node, LIVE, launched_at=ago(9000))]
    fresh = kept_proof(LIVE, at=NOW - timedelta(hours=5))
    assert seen(node, full("n"), instances=mine, **fresh).binding.kept == fresh["proof"]
    stale = kept_proof(LIVE, at=NOW - timedelta(hours=7))
    renewed = seen(node, full("n"), instances=mine, **stale).binding.kept
    assert renewed is not None
    assert renewed.proven_at == NOW


def test_offline_plan_without_ec2_is_decided_by_nodes_alone() -> None:
    """Planning from the cluster's objects only would remove nothing any more."""
    fleet = replace(FLEET, scale_in=replace(FLEET.scale_in, idle_threshold_seconds=60))
    made = plan(make_snapshot(unneeded("idle", fleet)), make_settings(fleet))
    assert [type(a) for a in made.actions if not isinstance(a, AnnotateNode)] == [TaintNode]
