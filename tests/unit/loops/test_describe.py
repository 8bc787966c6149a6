"""Actions in words."""

from dataclasses import replace

import pytest

from reconciler.loops.describe import describe
from reconciler.model.actions import (
    AnnotateNode,
    AnyAction,
    DeleteNode,
    DeletePod,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
    UntaintNode,
)
from reconciler.model.cluster import Taint
from reconciler.model.ids import FleetId, InstanceId, NodeName, PodKey
from reconciler.records.plan import action_to_json
from tests.builders import AWAY, HOME

NODE = NodeName("n-1")
POD = PodKey(namespace="web", name="api-1")
RAISE = SetCapacity(
    fleet="f",
    provider="ec2-fleet",
    id=FleetId("fleet-1"),
    region=HOME,
    from_capacity=1,
    to_capacity=2,
    policy="scale-up",
    because="",
)
ACTIONS: tuple[AnyAction, ...] = (
    RAISE,
    TerminateInstance(
        instance=InstanceId("i-1"),
        node=None,
        fleet="f",
        fleet_id=FleetId("fleet-1"),
        provider="ec2-fleet",
        region=HOME,
        decrement=True,
        precondition="empty",
        policy="scale-in",
        because="",
    ),
    TaintNode(
        node=NODE,
        taint=Taint(key="k", value="v", effect="NoSchedule"),
        policy="scale-in",
        because="",
    ),
    UntaintNode(node=NODE, key="k", policy="scale-in", because=""),
    AnnotateNode(node=NODE, key="k", value=None, policy="scale-in", because=""),
    EvictPod(pod=POD, node=NODE, grace_seconds=1, policy="scale-in", because=""),
    DeletePod(pod=POD, node=NODE, grace_seconds=1, policy="scale-in", because=""),
    DeleteNode(node=NODE, policy="scale-in", because=""),
)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda each: type(each).__name__)
def test_action_has_the_name_of_the_contract(action: AnyAction) -> None:
    """Log, metrics and plan that name one thing differently cannot be joined."""
    assert describe(action).name == action_to_json(action)["action"]
    assert describe(action).subject in {"f", "i-1", "n-1", "web/api-1"}


UNNEEDED = UntaintNode(node=NODE, key="unneeded", policy="scale-in", because="")
STARTED = AnnotateNode(node=NODE, key="started", value="x", policy="scale-in", because="")
SOFT = TaintNode(
    node=NODE,
    taint=Taint(key="unneeded", value="", effect="PreferNoSchedule"),
    policy="scale-in",
    because="",
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (RAISE, replace(RAISE, region=AWAY)),
        (UNNEEDED, replace(UNNEEDED, key="draining")),
        (STARTED, replace(STARTED, key="progress")),
        (SOFT, replace(SOFT, taint=replace(SOFT.taint, key="draining"))),
    ],
    ids=["region", "untaint", "annotation", "taint"],
)
def test_actions_on_other_things_are_no_repeats(one: AnyAction, other: AnyAction) -> None:
    """One that succeeds would make the failure of the other be forgotten."""
    assert describe(one).identity != describe(other).identity


def test_same_action_with_another_value_is_the_same() -> None:
    """A fleet that EC2 refuses is asked for another number each time."""
    assert describe(RAISE).identity == describe(replace(RAISE, to_capacity=9)).identity
