"""The order in which a plan lists its actions, and the executor carries them out."""

from reconciler.model.action_order import Stage, in_order, staged
from reconciler.model.actions import (
    DRAIN_FAILED,
    DRAIN_STARTED,
    DRAINING_TAINT,
    UNNEEDED_SINCE,
    AnnotateNode,
    AnyAction,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Taint
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey
from tests.builders import HOME

TAINT = Taint(key=DRAINING_TAINT, value="scale-in", effect="NoSchedule")


def target(fleet: str, before: int, after: int) -> SetCapacity:
    """A fleet's target changes."""
    return SetCapacity(
        fleet=fleet,
        provider="ec2-fleet",
        id=FleetId(fleet),
        region=HOME,
        from_capacity=before,
        to_capacity=after,
        policy="scale-up",
        because="",
    )


def note(node: str, key: str) -> AnnotateNode:
    """An annotation."""
    return AnnotateNode(node=NodeName(node), key=key, value="x", policy="scale-in", because="")


def taint(node: str) -> TaintNode:
    """Our taint comes on."""
    return TaintNode(node=NodeName(node), taint=TAINT, policy="scale-in", because="")


def untaint(node: str) -> UntaintNode:
    """Our taint comes off."""
    return UntaintNode(node=NodeName(node), key=DRAINING_TAINT, policy="scale-up", because="")


def evict(node: str) -> EvictPod:
    """A pod has to go."""
    pod = PodKey(namespace="web", name=node)
    return EvictPod(pod=pod, node=NodeName(node), grace_seconds=1, policy="scale-in", because="")


def end(node: str) -> TerminateInstance:
    """A node's instance ends."""
    return TerminateInstance(
        instance=InstanceId(f"i-{node}"),
        node=NodeName(node),
        fleet="small",
        fleet_id=FleetId("f"),
        provider="ec2-fleet",
        region=HOME,
        decrement=True,
        precondition="empty",
        policy="scale-in",
        because="",
    )


def test_purchases_come_first_and_timers_last() -> None:
    """Pods wait for purchases; nobody waits for a timer."""
    timer, lowered, raised = note("t", UNNEEDED_SINCE), target("b", 3, 2), target("a", 1, 9)
    given: list[AnyAction] = [
        timer,
        end("e"),
        evict("d"),
        taint("d2"),
        untaint("back"),
        lowered,
        raised,
    ]
    assert list(in_order(given)) == [
        raised,
        lowered,
        taint("d2"),
        untaint("back"),
        evict("d"),
        end("e"),
        timer,
    ]


def test_steps_of_one_node_stay_in_their_order() -> None:
    """Each is safe to crash after: a failure is noted before the taint comes off."""
    failed: list[AnyAction] = [note("n", DRAIN_FAILED), note("n", DRAIN_STARTED), untaint("n")]
    begun: list[AnyAction] = [taint("m"), note("m", DRAIN_STARTED), evict("m")]
    stages = {action: stage for stage, action in staged([*failed, *begun])}
    assert [stages[each] for each in failed] == [Stage.PROTECT] * 3
    assert [stages[each] for each in begun] == [Stage.PROTECT, Stage.PROTECT, Stage.EVICT]
    order = in_order([*failed, *begun])
    for chain in (failed, begun):
        assert [each for each in order if each in chain] == chain


def test_notes_beside_evictions_have_another_stage() -> None:
    """Pods leave side by side: what is noted first must be there, what comes later must wait."""
    chain: list[AnyAction] = [note("n", DRAIN_STARTED), evict("n"), note("n", UNNEEDED_SINCE)]
    stages = [Stage.PROTECT, Stage.EVICT, Stage.TERMINATE]
    assert staged([*chain, taint("m")]) == [
        (Stage.PROTECT, chain[0]),
        (Stage.PROTECT, taint("m")),
        *zip(stages[1:], chain[1:], strict=True),
    ]
    given_back: list[AnyAction] = [evict("n"), untaint("n")]
    assert staged(given_back) == list(zip(stages[1:], given_back, strict=True))


def test_step_that_belongs_after_a_late_one_waits_for_it() -> None:
    """Whatever the kinds are, nothing is moved ahead of an earlier step on its own node."""
    chain: list[AnyAction] = [end("n"), taint("n")]
    assert list(in_order([*chain, taint("m")])) == [taint("m"), *chain]


def test_order_is_that_of_an_ordered_plan() -> None:
    """The executor sorts what the planner has sorted: twice is as good as once."""
    given: list[AnyAction] = [
        note("t", UNNEEDED_SINCE),
        evict("d"),
        taint("d"),
        target("a", 1, 2),
        end("e"),
    ]
    once = in_order(given)
    assert in_order(once) == once
