"""What is ended as stuck or silent, beside others that are not."""

from typing import Any

import pytest

from reconciler.model.actions import INTERRUPTION, TerminateInstance
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import InstanceId
from reconciler.model.plan import Plan
from reconciler.model.saved_state import ProtectedInstance
from reconciler.model.text import rfc3339
from tests.builders import ago, make_node, make_pod
from tests.unit.planner.disruption.scale_in.scene import (
    FLEET,
    drained,
    full,
    kept,
    on,
    planned,
    with_instances,
)
from tests.unit.planner.disruption.updated_fleet import NEW, made_of, remembered
from tests.unit.planner.disruption.updated_fleet import node as versioned

SILENT: dict[str, Any] = {"ready": False, "ready_changed_at": ago(1200)}


def ends(made: Plan) -> dict[str, bool]:
    """The instances that the plan ends, and whether their fleet's target is lowered with each."""
    found = (action for action in made.actions if isinstance(action, TerminateInstance))
    return {str(action.instance): action.decrement for action in found}


def test_stuck_instance_that_ec2_does_not_end_holds_up_no_other() -> None:
    """The oldest comes first in each plan: no other would ever be ended."""
    refused = ProtectedInstance(instance=InstanceId("i-1"), at=ago(60))
    made = with_instances(2, 3600, protected_instances=(refused,))
    assert ends(made) == {"i-0": False}
    assert {each.instance: each.code for each in made.held} == {"i-1": "termination-protected"}


def test_silent_node_is_ended_beside_those_that_are_left_alone() -> None:
    """The first that cannot be judged would keep all silent nodes after it."""
    noticed = FrozenMap({INTERRUPTION: f"terminate/{rfc3339(ago(-100))}"})
    alone = [
        make_node("a", FLEET, unreadable=True, **SILENT),
        make_node("b", FLEET, deleting=True, **SILENT),
        make_node("c", FLEET, instance_id=None, **SILENT),
        make_node("d", FLEET, draining=True, **SILENT),
        make_node("e", FLEET, annotations=noticed, **SILENT),
        make_node("f", **SILENT),
    ]
    busy = [make_node(f"n{number}", FLEET) for number in range(9)]
    pods = [full(node.name) for node in busy]
    made = planned(FLEET, *alone, make_node("z", FLEET, **SILENT), *busy, *pods)
    assert ends(made) == {"i-d": True, "i-z": False}, "the drain of the one ends it"


def test_only_a_silent_node_of_the_halted_version_is_given_up() -> None:
    """An old node that fails meanwhile is replaced: the fleet still needs as many."""
    halted = remembered(halted_version=NEW, halted_because="it does not work")

    def ended(**silent: Any) -> dict[str, bool]:
        nodes: list[Node | Pod] = [
            versioned(name, **(SILENT if name in silent else {})) for name in ("a", "b", "c")
        ]
        pods = [full("a"), full("b")]
        return ends(made_of(*nodes, *pods, new="c", target=3, fleet_states=halted))

    assert ended(c=True) == {"i-c": True}
    assert ended(a=True) == {"i-a": False}


def test_silent_node_says_what_keeps_it() -> None:
    """Nobody would know why it stays, and that a person has to end it."""
    refused = ProtectedInstance(instance=InstanceId("i-a"), at=ago(60))
    nodes = [make_node("a", FLEET, **SILENT), make_node("b", FLEET)]
    made = planned(FLEET, *nodes, full("b"), protected_instances=(refused,))
    assert ends(made) == {}
    assert kept(made)["a"] == "termination-protected"


@pytest.mark.parametrize(
    ("target", "lowered", "to"), [(1, False, 3), (2, False, 3), (3, True, 3), (4, True, 3)]
)
def test_drained_node_that_never_joined_takes_no_place_of_those_that_have(
    target: int, lowered: bool, to: int
) -> None:
    """The fleet was asked for as many nodes as it had, and the pod waited for the next plan.

    An agent had put its start-up taint on the empty node again. It counts in the target only where
    its fleet owes nodes.
    """
    start_up = Taint(key="node.kubernetes.io/not-ready", value="", effect="NoSchedule")
    long_ago: dict[str, Any] = {"created_at": ago(9000), "ready_changed_at": ago(8990)}
    nodes = [make_node(name, FLEET, **long_ago) for name in ("a", "b")]
    pods = [on("a", cpu="3500m"), on("b", cpu="3500m")]
    empty = drained("x", FLEET, taints=(start_up,), **long_ago)
    made = planned(FLEET, *nodes, *pods, empty, make_pod(cpu=2), target=target)
    assert ends(made) == {"i-x": lowered}
    assert [(fleet.joined, fleet.target) for fleet in made.fleets] == [(2, to)]
