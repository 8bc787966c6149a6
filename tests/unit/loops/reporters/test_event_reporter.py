"""The capacity loop as Events: which object gets which, and what is not worth an Event."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import get_args

import pytest

from reconciler.loops.reporters.event_reporter import PODS_MAX, EventReporter
from reconciler.model.actions import (
    DRAINING_TAINT,
    AnyAction,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.binding import Binding
from reconciler.model.cluster import Node, Owner, Taint
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey
from reconciler.model.outcome import Outcome, OutcomeKind
from reconciler.model.plan import Cost, Held, HeldCode, Kept, Placement, Plan
from reconciler.model.snapshot import ClusterState, Snapshot
from reconciler.model.unplaceable import Reason, Unplaceable
from reconciler.planner.explain.held import held_in_words
from reconciler.ports.object_events import ObjectEvent
from tests.builders import AWAY, HOME, NOW, make_pod

NODE = NodeName("node-1")
POD = PodKey(namespace="web", name="api-1", uid="u1")
OTHER = PodKey(namespace="web", name="api-2", uid="u2")
FREE = Cost(hourly_usd_before=0, hourly_usd_after=0, hourly_usd_lower_bound=0, gap=0)
PLAN = Plan(at=NOW, cluster="analytics", home_region=HOME, cost=FREE)
RAISE = SetCapacity(
    fleet="primary-small",
    provider="ec2-fleet",
    id=FleetId("fleet-1"),
    region=HOME,
    from_capacity=2,
    to_capacity=5,
    policy="scale-up",
    because="11 pending pods need 3 more nodes",
)
EVICT = EvictPod(pod=POD, node=NODE, grace_seconds=30, policy="scale-in", because="little used")


class Told:
    """An ObjectEvents that keeps everything."""

    def __init__(self) -> None:
        self.events: list[ObjectEvent] = []

    def emit(self, event: ObjectEvent) -> None:
        self.events.append(event)


def told(
    plan: Plan, *actions: AnyAction, kind: OutcomeKind = "applied", detail: str = "why not"
) -> list[ObjectEvent]:
    """The Events of one cycle."""
    events = Told()
    reporter = EventReporter(events)
    snapshot = Snapshot(at=NOW, cluster=ClusterState(nodes=(Node(name=NODE, uid="n1"),)))
    reporter.plan_made(snapshot, plan)
    for action in actions:
        reporter.action_ended(Outcome(action=action, kind=kind, detail=detail))
    return events.events


def test_pods_hear_which_fleet_is_coming_once_it_was_asked_for() -> None:
    """`kubectl describe pod` is where people look first."""
    placements = (
        Placement(pod=POD, fleet="primary-small", new_node=0),
        Placement(pod=OTHER, fleet="primary-large", new_node=0),
    )
    (event,) = told(replace(PLAN, placements=placements), RAISE)
    assert (event.kind, event.namespace, event.name, event.uid) == ("Pod", "web", "api-1", "u1")
    assert (event.reason, event.warning) == ("TriggeredScaleUp", False)
    assert "primary-small in us-west-2 goes from 2 to 5" in event.message


def test_pods_hear_when_their_fleet_could_not_be_raised() -> None:
    """Otherwise they wait, and nobody knows that EC2 said no."""
    plan = replace(PLAN, placements=(Placement(pod=POD, fleet="primary-small", new_node=0),))
    (event,) = told(plan, RAISE, kind="failed")
    assert (event.reason, event.warning) == ("ScaleUpFailed", True)
    assert "why not" in event.message


def test_pods_hear_nothing_of_the_account() -> None:
    """Whoever may read a namespace's Events would know the role's name and the account."""
    said = (
        "fleet-1: UnauthorizedOperation: You are not authorized to perform this operation. User:"
        " arn:aws:sts::123456789012:assumed-role/fleet-role/host is not authorized to perform:"
        " ec2:ModifyFleet on resource: arn:aws:ec2:us-west-2:123456789012:fleet/fleet-1, account"
        " 123456789012. Encoded authorization failure message: AbC-dEf_123"
    )
    plan = replace(PLAN, placements=(Placement(pod=POD, fleet="primary-small", new_node=0),))
    (event,) = told(plan, RAISE, kind="failed", detail=said)
    assert "UnauthorizedOperation: You are not authorized" in event.message
    for hidden in ("123456789012", "fleet-role", "AbC-dEf_123"):
        assert hidden not in event.message


def test_refusals_of_a_pod_and_its_controller_say_nothing_of_the_account() -> None:
    """A fleet that AWS denies is a reason in AWS's words, which name the role and the account."""
    said = (
        "Auto Scaling group workers: AccessDenied: User: arn:aws:sts::123456789012:assume; cooling"
        " off until 12:05:00"
    )
    reasons = (Reason(fleet="f", region=HOME, code="fleet-unavailable", detail=said),)
    plan = replace(PLAN, unplaceable=(Unplaceable(pod=POD, reasons=reasons),))
    owner = Owner(kind="ReplicaSet", name="api", uid="r1")
    pods = (replace(make_pod("api-1", namespace="web", owner=owner), key=POD),)
    events = Told()
    EventReporter(events).plan_made(Snapshot(at=NOW, cluster=ClusterState(pods=pods)), plan)
    assert [event.kind for event in events.events] == ["ReplicaSet", "Pod"]
    for each in events.events:
        assert "workers: AccessDenied: User: arn:***; cooling off until 12:05:00" in each.message
        assert "123456789012" not in each.message


def test_pod_that_fits_nowhere_hears_why_fleet_by_fleet() -> None:
    """An unexplained pending pod is a support ticket."""
    reasons = tuple(
        Reason(fleet=f"f{n}", region=HOME, code="insufficient-memory", detail="300Gi of 28Gi")
        for n in range(7)
    )
    (event,) = told(replace(PLAN, unplaceable=(Unplaceable(pod=POD, reasons=reasons),)))
    assert (event.reason, event.warning) == ("NotTriggerScaleUp", True)
    assert "insufficient-memory: 300Gi of 28Gi (f0 in us-west-2, f1 in us-west-2" in event.message
    assert "and 4 more)" in event.message


def test_pod_on_launching_capacity_hears_what_it_waits_for() -> None:
    """Minutes of silence look like a broken autoscaler."""
    plan = replace(PLAN, placements=(Placement(pod=POD, fleet="primary-small", launching=0),))
    assert [object_event.reason for object_event in told(plan)] == ["WaitingForNode"]


def test_pods_hear_of_fleets_of_one_name_in_two_regions() -> None:
    """The Event about the second region was counted on top of the first one's, and not shown."""
    about: dict[str, set[str]] = {}
    for region in (HOME, AWAY):
        reason = Reason(fleet="primary-small", region=region, code="taint", detail="gpu=true")
        coming = Placement(pod=POD, fleet="primary-small", region=region, new_node=0)
        waits = Placement(pod=POD, fleet="primary-small", region=region, launching=0)
        refused = Unplaceable(pod=OTHER, reasons=(reason,))
        plan = replace(PLAN, placements=(coming, waits), unplaceable=(refused,))
        for event in told(plan, replace(RAISE, region=region)):
            assert str(region) in event.message
            about.setdefault(event.reason, set()).add(event.about)
    assert {reason: len(each) for reason, each in about.items()} == {
        "NotTriggerScaleUp": 2,
        "TriggeredScaleUp": 2,
        "WaitingForNode": 2,
    }


def test_moved_pod_hears_why_and_where_its_place_is() -> None:
    """Its owner asks who killed it."""
    place = Placement(pod=POD, node=NodeName("node-2"), moved_from=NODE)
    (event,) = told(replace(PLAN, placements=(place,)), EVICT)
    assert event.reason == "Moved"
    assert (
        event.message == "evicted from node-1 by scale-in: little used; its place is kept on node-2"
    )


def test_refused_eviction_shows_on_the_pod() -> None:
    """A budget that blocks a drain for hours is found where its owner looks."""
    (event,) = told(PLAN, EVICT, kind="refused")
    assert (event.reason, event.warning) == ("EvictionRefused", True)


def test_node_hears_of_its_drain_its_rescue_and_its_end() -> None:
    """`kubectl describe node` tells its whole story."""
    taint = Taint(key=DRAINING_TAINT, value="scale-in", effect="NoSchedule")
    events = told(
        PLAN,
        TaintNode(node=NODE, taint=taint, policy="scale-in", because="empty for 10m"),
        UntaintNode(node=NODE, key=DRAINING_TAINT, policy="scale-in", because="demand"),
        TerminateInstance(
            instance=InstanceId("i-1"),
            node=NODE,
            fleet="primary-small",
            fleet_id=FleetId("fleet-1"),
            provider="ec2-fleet",
            region=HOME,
            decrement=True,
            precondition="empty",
            policy="scale-in",
            because="empty",
        ),
    )
    assert [event.reason for event in events] == ["Draining", "DrainEnded", "Terminating"]
    assert {(event.kind, event.namespace, event.uid) for event in events} == {("Node", "", "n1")}


def test_node_gets_the_reason_why_it_stays_unless_time_alone_ends_that() -> None:
    """A thousand nodes that wait out their idle time are no news."""
    kept = (
        Kept(node=NODE, code="no-destination", detail="web/api-1 fits nowhere else"),
        Kept(node=NodeName("node-2"), code="idle-time", detail="empty for 3m, 7m to go"),
    )
    held = (Held(node=NodeName("node-3"), code="safety-stop"),)
    events = told(replace(PLAN, kept=kept, held=held))
    assert [(event.name, event.reason) for event in events] == [
        ("node-3", "RemovalHeld"),
        ("node-1", "NodeKept"),
    ]


def test_reason_that_ends_at_a_known_time_is_no_news_but_for_refusals_of_ec2() -> None:
    """`kubectl describe node` would say "not removed" of a node that is being emptied."""
    until = NOW + timedelta(minutes=5)
    kept = (
        Kept(node=NodeName("a"), code="settling", detail="4m50s to go", until=until),
        Kept(node=NodeName("b"), code="termination-protected", detail="it refused", until=until),
        Kept(node=NodeName("c"), code="interrupted", detail="1 pod still on it"),
    )
    events = told(replace(PLAN, kept=kept))
    assert [(event.name, event.reason) for event in events] == [("b", "NodeKept")]


@pytest.mark.parametrize("code", get_args(HeldCode))
def test_node_that_is_held_hears_why_in_words(code: HeldCode) -> None:
    """A code alone sends its reader to the documentation."""
    held = Held(node=NODE, code=code)
    (event,) = told(replace(PLAN, held=(held,)))
    assert event.message == f"not removed for now ({code}): {held_in_words(held)}"


def test_storm_of_pending_pods_makes_a_bounded_number_of_events() -> None:
    """Ten thousand Events would hurt the API server more than they help anyone."""
    reason = Reason(fleet="f", region=HOME, code="max-capacity", detail="200 of 200")
    found = tuple(
        Unplaceable(pod=replace(POD, name=f"p{n}"), reasons=(reason,)) for n in range(10_000)
    )
    assert len(told(replace(PLAN, unplaceable=found))) == PODS_MAX


def test_storm_is_reported_every_workload_and_not_of_the_first_namespace_only() -> None:
    """The owner of the five hundred and first pod looks at its Job."""
    reason = Reason(fleet="f", region=HOME, code="max-capacity", detail="200 of 200")
    pods = [
        make_pod(f"{name}-{n}", owner=Owner(kind="Job", name=name, uid=f"uid-{name}"))
        for name, count in (("aaa", 9_000), ("zzz", 1_000))
        for n in range(count)
    ]
    events = Told()
    plan = replace(
        PLAN, unplaceable=tuple(Unplaceable(pod=pod.key, reasons=(reason,)) for pod in pods)
    )
    snapshot = Snapshot(at=NOW, cluster=ClusterState(pods=tuple(pods)))
    EventReporter(events).plan_made(snapshot, plan)
    jobs = [event for event in events.events if event.kind == "Job"]
    assert [(job.name, job.uid, job.api_version) for job in jobs] == [
        ("aaa", "uid-aaa", "batch/v1"),
        ("zzz", "uid-zzz", "batch/v1"),
    ]
    assert "no fleet can run 9000 pods of it, such as aaa-0: max-capacity" in jobs[0].message
    assert "What usually helps: raise max_capacity" in jobs[0].message
    told_pods = Counter(event.name[:3] for event in events.events if event.kind == "Pod")
    assert told_pods == {"aaa": 250, "zzz": 250}


def test_cluster_that_is_not_proven_is_reported_on_its_own_namespace_and_so_is_its_end() -> None:
    """People look at Events before they look at the log of a pod in another namespace."""
    events = Told()
    reporter = EventReporter(events)
    wrong = Binding(verdict="unproven", because="none of 2 nodes", cluster_uid="u")
    proven = Binding(verdict="proven", because="1 of 2 nodes", may_remove=True)
    for binding in (proven, wrong, wrong, proven, proven):
        reporter.plan_made(Snapshot(at=NOW), replace(PLAN, binding=binding))
    assert [(e.kind, e.name, e.reason, e.warning) for e in events.events] == [
        ("Namespace", "kube-system", "ClusterNotProven", True),
        ("Namespace", "kube-system", "ClusterProven", False),
    ]
    assert events.events[0].uid == "u"
