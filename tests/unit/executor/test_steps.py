"""Which actions are one call: only those that mean the same fleet, or the same node."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.executor.executor import in_steps
from reconciler.model.actions import AnnotateNode, AnyAction, DeleteNode, TerminateInstance
from reconciler.model.ids import FleetId, InstanceId, NodeName
from tests.builders import AWAY, HOME


def end(name: str, **changed: Any) -> TerminateInstance:
    """The end of an empty node's instance, with which the target is lowered."""
    return TerminateInstance(
        instance=InstanceId(f"i-{name}"),
        node=NodeName(name),
        fleet="primary-small",
        fleet_id=changed.pop("fleet_id", FleetId("fleet-1")),
        provider=changed.pop("provider", "ec2-fleet"),
        region=changed.pop("region", HOME),
        decrement=changed.pop("decrement", True),
        precondition="empty",
        policy="scale-in",
        because="test",
        **changed,
    )


def note(name: str, key: str = "a") -> AnnotateNode:
    """One annotation."""
    return AnnotateNode(
        node=NodeName(name), key=key, value="now", policy="scale-in", because="test"
    )


def deletion(name: str) -> DeleteNode:
    """The deletion of a Node object."""
    return DeleteNode(
        node=NodeName(name),
        uid="uid",
        instance=None,
        provider="ec2-fleet",
        region=HOME,
        policy="scale-in",
        because="test",
    )


def steps(*actions: AnyAction) -> list[tuple[AnyAction, ...]]:
    """The steps of these actions."""
    return list(in_steps(actions))


def test_ends_of_one_fleet_are_one_step_whatever_lies_between() -> None:
    """The target would be lowered once for each, and each lowering is a call that takes seconds."""
    assert steps(end("a"), note("x"), end("b")) == [(end("a"), end("b")), (note("x"),)]


@pytest.mark.parametrize(
    "other",
    [
        {"fleet_id": FleetId("fleet-2")},
        {"region": AWAY},
        {"provider": "asg"},
        {"decrement": False},
    ],
)
def test_ends_of_other_fleets_or_without_the_target_are_steps_of_their_own(
    other: dict[str, Any],
) -> None:
    """The first one's fleet would be lowered for all: EC2 would end what is still needed."""
    second = end("b", **other)
    assert steps(end("a"), second) == [(end("a"),), (second,)]
    assert steps(second, end("a")) == [(second,), (end("a"),)]


def test_ends_that_lower_nothing_are_steps_of_their_own() -> None:
    """One that cannot be ended would keep all others."""
    first, second = (end(name, decrement=False) for name in "ab")
    assert steps(first, second) == [(first,), (second,)]


def test_end_does_not_overtake_what_comes_before_it_on_its_node() -> None:
    """The node would be gone before what had to be noted on it."""
    actions = end("a"), note("b"), end("b"), end("c")
    assert steps(*actions) == [(end("a"), end("c")), (note("b"),), (end("b"),)]


def test_annotations_are_one_step_while_they_follow_each_other_on_one_node() -> None:
    """A node would be written to for another, or after what depends on it."""
    pair = note("a"), note("a", "b")
    assert steps(*pair, note("b"), note("a")) == [pair, (note("b"),), (note("a"),)]
    assert steps(note("a"), deletion("a"), note("a")) == [
        (note("a"),),
        (deletion("a"),),
        (note("a"),),
    ]
    assert steps(note("a"), replace(end("a"), decrement=False)) == [
        (note("a"),),
        (end("a", decrement=False),),
    ]
