"""What the notices of one snapshot say about each instance, whatever lies between them."""

from typing import Any

from reconciler.model.actions import INTERRUPTION
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import InstanceId
from reconciler.model.notices import MessageId, Notice
from reconciler.model.text import rfc3339
from reconciler.planner.nodes.interruptions import (
    InterruptionNotice,
    carries_withdrawn,
    notice_of,
    queued_interruptions,
    withdrawn_changes,
)
from tests.builders import NOW, ago, make_node

SOON = ago(-120)
LATER = ago(-3600)


def notice(kind: Any, instance: str = "i-a", **changed: Any) -> Notice:
    """One message about one instance."""
    return Notice(
        message=MessageId(f"{kind}-{instance}"),
        kind=kind,
        instance=InstanceId(instance),
        at=changed.pop("at", SOON),
        **changed,
    )


def told(*notices: Notice, rebalance: bool = True) -> dict[str, list[str]]:
    """The actions that the queue tells, by instance."""
    found = queued_interruptions(notices, NOW, rebalance=rebalance)
    return {
        str(name): [interruption_notice.action for interruption_notice in several]
        for name, several in found.items()
    }


def test_messages_about_something_else_hide_no_interruption() -> None:
    """The first other message of a batch would cost the pods of all nodes after it."""
    spot = notice("spot-interruption", "i-b", action="terminate")
    for other in (
        notice("state-change", action="stopping"),
        notice("unreadable", "", at=None),
        notice("spot-interruption", action="terminate", at=None),
        notice("spot-interruption", action="stop", at=ago(3600)),
    ):
        assert told(other, spot) == {"i-b": ["terminate"]}
    recommended = notice("rebalance")
    assert told(recommended, spot, rebalance=False) == {"i-b": ["terminate"]}
    assert told(recommended)["i-a"] == ["rebalance-recommendation"]


def test_withdrawn_change_hides_no_other_change_and_no_interruption() -> None:
    """AWS cancels the reboot of one instance, and another is not drained for its own."""
    withdrawn = notice("change-withdrawn", at=LATER), notice("change-withdrawn", "i-c", at=None)
    change = notice("scheduled-change", at=LATER)
    assert told(*withdrawn, change) == {}
    other = notice("scheduled-change", "i-b", at=LATER)
    assert told(*withdrawn, change, other) == {"i-b": ["scheduled-change"]}
    assert told(*withdrawn, notice("scheduled-change", at=SOON)) == {"i-a": ["scheduled-change"]}
    spot = notice("spot-interruption", action="terminate", at=LATER)
    assert told(*withdrawn, spot) == {"i-a": ["terminate"]}
    assert withdrawn_changes(withdrawn) == {(InstanceId("i-a"), LATER)}


def test_only_a_scheduled_change_is_withdrawn() -> None:
    """A spot interruption of the same second would be taken for cancelled."""
    withdrawn = {(InstanceId("i-a"), SOON)}
    for action, is_withdrawn in (("scheduled-change", True), ("terminate", False)):
        marks = FrozenMap({INTERRUPTION: f"{action}/{rfc3339(SOON)}"})
        node = make_node("a", annotations=marks)
        assert carries_withdrawn(node, withdrawn) is is_withdrawn
        assert (notice_of(node, (), NOW, withdrawn) is None) is is_withdrawn
        nameless = make_node("a", annotations=marks, instance_id=None)
        assert not carries_withdrawn(nameless, withdrawn)


def test_notice_that_is_over_is_neither_in_force_nor_kept() -> None:
    """It would be written onto the node again in each plan."""
    over = InterruptionNotice(action="scheduled-change", deadline=ago(3600))
    first = InterruptionNotice(action="scheduled-change", deadline=LATER)
    found = notice_of(make_node("a"), (over, first), NOW)
    assert found == first
    assert found is not None
    assert found.further == ()
    assert notice_of(make_node("a"), (over,), NOW) is None


def test_scheduled_change_is_graceful_until_ten_minutes_before_it() -> None:
    """Its node would be emptied hours ahead, or no longer in time."""
    for seconds, forced in ((601, False), (600, True), (-299, True)):
        change = InterruptionNotice(action="scheduled-change", deadline=ago(-seconds))
        assert (change.is_graceful(NOW), change.in_force(NOW)) == (not forced, forced)
        spot = InterruptionNotice(action="terminate", deadline=ago(-seconds))
        assert (spot.is_graceful(NOW), spot.in_force(NOW)) == (False, forced)
