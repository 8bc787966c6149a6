"""Several notices for one node: what another outranks holds when that one is withdrawn."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.model.actions import (
    DRAIN_STARTED,
    DRAINING_TAINT,
    FURTHER_INTERRUPTIONS,
    INTERRUPTION,
    AnnotateNode,
    TaintNode,
    UntaintNode,
)
from reconciler.model.cluster import Node, Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.notices import Notice, settled_messages
from reconciler.model.plan import Plan
from reconciler.model.text import rfc3339
from reconciler.planner.planner import plan
from tests.builders import ago, make_node, make_settings
from tests.unit.planner.disruption.interrupted_nodes import FLEET, begun
from tests.unit.planner.disruption.queued_notices import (
    change,
    changed_node,
    recommended,
    results,
    seen,
    spot,
    withdrawn,
)
from tests.unit.planner.disruption.scale_in.scene import full, told

SETTINGS = make_settings(FLEET)
REBOOT, RETIREMENT = 86_400.0, 172_800.0
"""Seconds from now."""


def text(left_seconds: float, action: str = "scheduled-change") -> str:
    """A notice as a node carries it."""
    return f"{action}/{rfc3339(ago(-left_seconds))}"


def noted(node: Node) -> list[str | None]:
    """The notice that applies to the node, and those that it outranks."""
    return [node.annotations.get(key) for key in (INTERRUPTION, FURTHER_INTERRUPTIONS)]


def after(node: Node, made: Plan) -> Node:
    """The node with the annotations that the plan writes."""
    values: dict[str, str | None] = {**node.annotations}
    values |= {a.key: a.value for a in made.actions if isinstance(a, AnnotateNode)}
    kept = {key: value for key, value in values.items() if value is not None}
    return replace(node, annotations=FrozenMap(kept))


def lived(node: Node, *arrivals: Sequence[Notice]) -> tuple[Node, tuple[Notice, ...]]:
    """The node after plans before which these notices came, and the messages that are held yet."""
    held: tuple[Notice, ...] = ()
    for came in (*arrivals, (), ()):
        held = (*held, *came)
        made = plan(seen(node, full("a"), notices=held), SETTINGS)
        node = after(node, made)
        done = settled_messages(made.notices)
        held = tuple(notice for notice in held if notice.message not in done)
    return node, held


def further(*texts: str) -> Node:
    """Node a with the notice that applies and others."""
    marks = {INTERRUPTION: texts[0], FURTHER_INTERRUPTIONS: ",".join(texts[1:])}
    return make_node("a", FLEET, annotations=FrozenMap(marks))


@pytest.mark.parametrize(
    ("other", "mark"),
    [
        (change(RETIREMENT, "m-9"), text(RETIREMENT)),
        (recommended(-5), text(-5, "rebalance-recommendation")),
    ],
    ids=["change", "recommendation"],
)
@pytest.mark.parametrize("together", [True, False])
def test_notice_behind_a_change_holds_when_that_is_withdrawn(
    other: Notice, mark: str, together: bool
) -> None:
    """Its message was deleted, and with the change that AWS cancelled it was lost for good."""
    first = change(REBOOT, "m-8")
    arrivals = [(first, other)] if together else [(first,), (other,)]
    node, held = lived(make_node("a", FLEET), *arrivals)
    assert (noted(node), held) == ([text(REBOOT), mark], ())
    node, held = lived(node, (withdrawn(REBOOT),))
    assert (noted(node), held) == ([mark, None], ())


def test_notice_that_a_later_one_outranks_is_kept() -> None:
    """The order in which messages come decides nothing."""
    arrivals = [(recommended(-5),), (change(RETIREMENT, "m-8"),), (change(REBOOT, "m-9"),)]
    node, held = lived(make_node("a", FLEET), *arrivals)
    behind = f"{text(RETIREMENT)},{text(-5, 'rebalance-recommendation')}"
    assert (noted(node), held) == ([text(REBOOT), behind], ())


def test_change_that_another_outranks_is_withdrawn_as_well() -> None:
    """It is not the one that applies, and was still to be taken off."""
    node, held = lived(further(text(REBOOT), text(RETIREMENT)), (withdrawn(RETIREMENT),))
    assert (noted(node), held) == ([text(REBOOT), None], ())
    both = (withdrawn(RETIREMENT), withdrawn(REBOOT, "m-3"))
    node, held = lived(further(text(REBOOT), text(RETIREMENT)), both)
    assert (noted(node), held) == ([None, None], ())


def test_message_is_held_until_its_node_carries_what_is_outranked() -> None:
    """Deleted in the plan that writes it, a crash in between would lose it."""
    made = plan(seen(changed_node(REBOOT), full("a"), notices=(change(RETIREMENT),)), SETTINGS)
    assert results(made) == ["waiting"]
    later = seen(after(changed_node(REBOOT), made), full("a"), notices=(change(RETIREMENT),))
    assert results(plan(later, SETTINGS)) == ["acted"]


def test_no_message_is_tried_for_ever() -> None:
    """A node remembers a few notices, the first ones and a recommendation; EC2 announces two."""
    many = [change(REBOOT + n, f"m-{n}") for n in range(30)]
    node, held = lived(make_node("a", FLEET), [*many, recommended(-5)])
    assert held == ()
    behind = (node.annotations[FURTHER_INTERRUPTIONS]).split(",")
    expected = [text(REBOOT + n) for n in range(1, 8)]
    assert behind == [*expected, text(-5, "rebalance-recommendation")]
    assert noted(lived(node)[0]) == noted(node)


def test_nothing_is_noted_beside_the_end_of_an_instance() -> None:
    """Two recommendations come with most interruptions: each would cost a call in two minutes."""
    node = begun("a", 60)
    made = plan(seen(node, full("a"), notices=(recommended(-5), change(REBOOT, "m-9"))), SETTINGS)
    assert results(made) == ["acted", "acted"]
    assert noted(after(node, made)) == [text(60, "terminate"), None]
    recommended_before = further(text(-300, "rebalance-recommendation"))
    made = plan(seen(recommended_before, full("a"), notices=(spot("a", 60),)), SETTINGS)
    assert noted(after(recommended_before, made))[0] == text(60, "terminate")


def test_drain_for_a_change_ends_and_the_next_one_stays() -> None:
    """Given back within ten minutes of the first change, the node forgot the second one."""
    taint = Taint(key=DRAINING_TAINT, value="interruption", effect="NoSchedule")
    node = replace(further(text(300), text(RETIREMENT)), taints=(taint,))
    made = plan(seen(node, full("a"), notices=(withdrawn(300),)), SETTINGS)
    assert told(made, UntaintNode) == ["a"]
    assert noted(after(node, made)) == [text(RETIREMENT), None]
    passed = seen(replace(node, annotations=further(text(-400), text(RETIREMENT)).annotations),
                  full("a"), notices=())  # fmt: skip
    made = plan(passed, SETTINGS)
    assert noted(after(node, made)) == [text(RETIREMENT), None]


def test_drain_goes_on_for_the_next_notice() -> None:
    """The node is to be left for that one as well: its pods need not come back."""
    taint = Taint(key=DRAINING_TAINT, value="rebalance", effect="NoSchedule")
    node = further(text(REBOOT), text(RETIREMENT))
    started = {**node.annotations, DRAIN_STARTED: rfc3339(ago(30))}
    node = replace(node, taints=(taint,), annotations=FrozenMap(started))
    snapshot = seen(node, make_node("b", FLEET), full("a"), notices=(withdrawn(REBOOT),))
    assert told(plan(snapshot, SETTINGS), UntaintNode) == []


@pytest.mark.parametrize("mark", ["soon", "", ",,", "scheduled-change/soon", "x" * 5_000])
def test_further_notices_that_nobody_can_read_are_no_notices(mark: str) -> None:
    """Anybody who may change nodes may write them."""
    node = make_node("a", FLEET, annotations=FrozenMap({FURTHER_INTERRUPTIONS: mark}))
    made = plan(seen(node, full("a"), notices=()), SETTINGS)
    assert told(made, TaintNode) == []
    noticed, held = lived(node, (change(REBOOT),))
    assert (noted(noticed)[0], noted(noticed)[1] or None, held) == (text(REBOOT), None, ())


def test_message_beside_an_announcement_that_is_over_is_not_lost() -> None:
    """The old one said that the new one was dealt with, and the node never carried it."""
    node = changed_node(-400)
    made = plan(seen(node, full("a"), notices=(change(REBOOT),)), SETTINGS)
    assert results(made) == ["waiting"]
    assert noted(after(node, made)) == [text(REBOOT), None]
