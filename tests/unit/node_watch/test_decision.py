"""What is written onto the node, by what metadata says and what the node carries."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.model.actions import DRAIN_STARTED, DRAINING_TAINT, INTERRUPTION
from reconciler.model.interruption_annotation import WRITTEN_BY_NODE_WATCH, AnnotatedNotice
from reconciler.node_watch.announcements import Announcements
from reconciler.node_watch.decision import TAINT, NodeChange, OwnNode, decide

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
NOTHING = Announcements()
OTHER_TAINT = {"key": "team", "value": "ml", "effect": "NoSchedule", "timeAdded": "2026-01-01"}


def notice(action: str = "terminate", seconds: float = 120) -> AnnotatedNotice:
    """A notice whose time is so many seconds from now."""
    return AnnotatedNotice(action=action, at=NOW + timedelta(seconds=seconds))


def said(*notices: AnnotatedNotice, **changed: Any) -> Announcements:
    """What metadata says."""
    return Announcements(notices=frozenset(notices), **changed)


def node(
    present: object = None,
    *,
    own: bool = False,
    taints: tuple[Mapping[str, Any], ...] = (),
    more: Mapping[str, str] | None = None,
) -> OwnNode:
    """A node with a notice on it, written by the node watch or by another."""
    texts = dict(more or {})
    if present is not None:
        texts[INTERRUPTION] = str(present)
        if own:
            texts[WRITTEN_BY_NODE_WATCH] = str(present)
    return OwnNode(resource_version="1", provider_id="", annotations=texts, taints=taints)


def after(before: OwnNode, change: NodeChange) -> OwnNode:
    """The node once a change is written."""
    texts: dict[str, str | None] = {**before.annotations, **change.annotations}
    return OwnNode(
        resource_version="2",
        provider_id="",
        annotations={key: text for key, text in texts.items() if text is not None},
        taints=before.taints if change.taints is None else change.taints,
    )


def settled(told: Announcements, before: OwnNode, now: datetime = NOW) -> OwnNode:
    """The node once it says what it should; the second decision must change nothing."""
    change = decide(told, before, now)
    if change is None:
        return before
    reached = after(before, change)
    assert decide(told, reached, now) is None
    return reached


def texts(reached: OwnNode) -> tuple[str | None, str | None]:
    """The notice, and what the node watch says that it wrote."""
    found = reached.annotations
    return found.get(INTERRUPTION), found.get(WRITTEN_BY_NODE_WATCH)


def test_interruption_is_annotated_and_keeps_pods_away() -> None:
    """The capacity loop may be seconds away; kube-scheduler is not."""
    reached = settled(said(notice()), node(taints=(OTHER_TAINT,)))
    assert texts(reached) == (str(notice()), str(notice()))
    assert reached.taints == (OTHER_TAINT, TAINT)


@pytest.mark.parametrize("action", ["rebalance-recommendation", "scheduled-change"])
def test_recommendation_is_annotated_without_a_taint(action: str) -> None:
    """Its replacement is launched first: until then the node takes pods."""
    reached = settled(said(notice(action)), node())
    assert texts(reached)[0] == str(notice(action))
    assert reached.taints == ()


def test_nothing_announced_touches_nothing() -> None:
    """A thousand nodes would be patched at each start of the DaemonSet."""
    assert decide(NOTHING, node(), NOW) is None
    assert decide(NOTHING, node(notice()), NOW) is None


@pytest.mark.parametrize("seconds", [119, 120])
def test_notice_of_another_that_is_not_later_stays(seconds: float) -> None:
    """The queue tells the capacity loop the same: both would overwrite each other for ever."""
    present = node(notice(seconds=seconds), taints=(TAINT,))
    assert decide(said(notice()), present, NOW) is None


def test_earlier_interruption_replaces_a_later_one() -> None:
    """The drain would be planned to end after the instance."""
    assert (
        texts(settled(said(notice(seconds=60)), node(notice()))) == (str(notice(seconds=60)),) * 2
    )


@pytest.mark.parametrize("first", [-3600, 30])
@pytest.mark.parametrize("action", ["rebalance-recommendation", "scheduled-change"])
def test_interruption_outranks_what_is_only_recommended(action: str, first: float) -> None:
    """A rebalance recommendation has an earlier time than the interruption that follows it."""
    early = notice(action, first)
    assert texts(settled(said(notice(), early), node(early, own=True)))[0] == str(notice())
    assert texts(settled(said(notice(), early), node(early)))[0] == str(notice())
    assert decide(said(early), node(notice()), NOW) is None


def test_scheduled_change_outranks_a_recommendation_as_in_the_planner() -> None:
    """With another order than the planner's each would overwrite what the other wrote."""
    rebalance, change = notice("rebalance-recommendation", -60), notice("scheduled-change", 86_400)
    assert decide(said(rebalance), node(change), NOW) is None
    assert texts(settled(said(rebalance, change), node(rebalance)))[0] == str(change)


def test_notice_that_was_taken_back_goes_with_its_taint() -> None:
    """A canceled maintenance would have the node replaced for nothing."""
    reached = settled(NOTHING, node(notice(), own=True, taints=(OTHER_TAINT, TAINT)))
    assert texts(reached) == (None, None)
    assert reached.taints == (OTHER_TAINT,)


def test_notice_of_another_writer_is_not_taken_back() -> None:
    """An operator, or the queue, may know more than instance metadata."""
    mine = {WRITTEN_BY_NODE_WATCH: str(notice())}
    present = node(notice(seconds=60), taints=(TAINT,), more=mine)
    reached = settled(NOTHING, present)
    assert texts(reached) == (str(notice(seconds=60)), None)
    assert reached.taints == (TAINT,)


def test_moved_maintenance_is_written_with_its_new_time() -> None:
    """The earlier time of a notice of our own must not hold a later one back."""
    old, new = notice("scheduled-change", 600), notice("scheduled-change", 7200)
    assert texts(settled(said(new), node(old, own=True))) == (str(new), str(new))
    assert decide(said(new), node(old), NOW) is None


def test_interruption_taken_back_leaves_the_recommendation() -> None:
    """The taint goes with it: the node takes pods until its replacement is there."""
    rebalance = notice("rebalance-recommendation", -60)
    reached = settled(said(rebalance), node(notice(), own=True, taints=(TAINT,)))
    assert texts(reached)[0] == str(rebalance)
    assert reached.taints == ()


def test_nothing_is_taken_back_while_metadata_cannot_be_read() -> None:
    """One failed request would give the node back a minute before its end."""
    unknown = said(problems=("spot/instance-action: status 500",))
    assert decide(unknown, node(notice(), own=True, taints=(TAINT,)), NOW) is None


def test_taint_of_a_drain_that_began_is_left_to_the_capacity_loop() -> None:
    """It gives the node back itself, and finds it by the taint."""
    begun = {DRAIN_STARTED: "2026-01-31T11:59:30Z"}
    reached = settled(NOTHING, node(notice(), own=True, taints=(TAINT,), more=begun))
    assert texts(reached) == (None, None)
    assert reached.taints == (TAINT,)


def test_drain_for_another_reason_keeps_its_taint() -> None:
    """The node takes no pods already; a taint of the same key and effect cannot be there twice."""
    scale_in = {"key": DRAINING_TAINT, "value": "scale-in", "effect": "NoSchedule"}
    reached = settled(said(notice()), node(taints=(scale_in,)))
    assert texts(reached)[0] == str(notice())
    assert reached.taints == (scale_in,)


def test_notice_that_was_taken_off_the_node_is_not_written_again() -> None:
    """The capacity loop gives a node back, and the node watch would have it drained once more."""
    mine = {WRITTEN_BY_NODE_WATCH: str(notice())}
    assert decide(said(notice()), node(more=mine), NOW) is None
    reached = settled(said(notice()), node(taints=(TAINT,), more=mine))
    assert reached.taints == ()


def test_interruption_that_did_not_come_is_taken_off() -> None:
    """With the capacity loop down nothing else would let pods onto the node again."""
    late = NOW + timedelta(seconds=120 + 301)
    reached = settled(said(notice()), node(notice(), own=True, taints=(TAINT,)), late)
    assert texts(reached) == (None, str(notice()))
    assert reached.taints == ()
    assert decide(said(notice()), node(), late) is None
    assert texts(settled(NOTHING, reached, late)) == (None, None)


@pytest.mark.parametrize("present", ["soon", str(notice(seconds=-4000))])
def test_notice_that_means_nothing_any_more_is_replaced(present: str) -> None:
    """Whoever wrote it, EC2 takes the instance now."""
    assert texts(settled(said(notice()), node(present)))[0] == str(notice())


def test_end_by_an_auto_scaling_group_keeps_its_first_time() -> None:
    """Metadata has no time for it: two minutes from each look would never be over."""
    told = said(group_terminates=True)
    reached = settled(told, node())
    assert texts(reached)[0] == "terminate/2026-01-31T12:02:00Z"
    assert decide(told, reached, NOW + timedelta(seconds=90)) is None
    over = settled(told, reached, NOW + timedelta(minutes=8))
    assert texts(over)[0] is None
