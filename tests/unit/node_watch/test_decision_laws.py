"""Laws of what the node watch writes, over sequences of announcements and what others wrote."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.actions import INTERRUPTION
from reconciler.model.interruption_annotation import (
    WRITTEN_BY_NODE_WATCH,
    AnnotatedNotice,
    read_annotation,
)
from reconciler.node_watch.announcements import Announcements
from reconciler.node_watch.decision import TAINT, OwnNode, decide

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
OTHER_TAINT = {"key": "dedicated", "value": "web", "effect": "NoSchedule"}
DRAINED = {"key": TAINT["key"], "value": "scale-in", "effect": "NoSchedule"}
NOTICE = st.builds(
    lambda action, minutes: AnnotatedNotice(action=action, at=NOW + timedelta(minutes=minutes)),
    st.sampled_from(["terminate", "stop", "scheduled-change", "rebalance-recommendation"]),
    st.integers(-20, 40),
)
PROBLEMS = st.sampled_from([(), ("events/maintenance/scheduled: is not JSON",)])
GRACEFUL = NOTICE.filter(lambda notice: not notice.forced)
SAID = st.one_of(
    st.builds(Announcements, notices=st.frozensets(NOTICE, max_size=3), problems=PROBLEMS),
    st.builds(
        Announcements,
        notices=st.frozensets(GRACEFUL, max_size=2),
        group_terminates=st.just(value=True),
        problems=PROBLEMS,
    ),
)
FOREIGN = st.sampled_from(
    [None, "terminate/2026-01-31T12:02:00Z", "scheduled-change/2026-01-31T12:30:00Z", "by hand"]
)


class _Node:
    """A node and what patches make of it."""

    def __init__(self, foreign: str | None, taints: tuple[Any, ...]) -> None:
        self.annotations = {"a": "b"} | ({} if foreign is None else {INTERRUPTION: foreign})
        self.taints = taints

    def look(self, said: Announcements, now: datetime) -> bool:
        """Change it as the node watch would; return whether anything was written."""
        node = OwnNode(
            resource_version="1",
            provider_id="",
            annotations=dict(self.annotations),
            taints=self.taints,
        )
        change = decide(said, node, now)
        if change is None:
            return False
        for key, value in change.annotations.items():
            if value is None:
                self.annotations.pop(key, None)
            else:
                self.annotations[key] = value
        if change.taints is not None:
            self.taints = change.taints
        return True


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(SAID, st.integers(0, 20)), min_size=1, max_size=6),
    FOREIGN,
    st.sampled_from([(), (OTHER_TAINT,), (DRAINED,), (OTHER_TAINT, DRAINED)]),
)
def test_every_look_settles_and_nothing_is_left_behind(
    looks: list[tuple[Announcements, int]], foreign: str | None, taints: tuple[Any, ...]
) -> None:
    """A second look writes nothing, or the node would be patched every two seconds.

    What others wrote stays, and when nothing is announced any more nothing of the node watch does.
    """
    node, now = _Node(foreign, taints), NOW
    for said, minutes in looks:
        now += timedelta(minutes=minutes)
        node.look(said, now)
        assert not node.look(said, now)
        assert node.annotations["a"] == "b"
        assert [taint for taint in node.taints if taint != TAINT] == list(taints)
        keys = [(taint["key"], taint["effect"]) for taint in node.taints]
        assert len(set(keys)) == len(keys), "the API server refuses such taints"
        if WRITTEN_BY_NODE_WATCH in node.annotations:
            assert read_annotation(node.annotations[WRITTEN_BY_NODE_WATCH]) is not None
    node.look(Announcements(), now)
    assert not node.look(Announcements(), now)
    assert WRITTEN_BY_NODE_WATCH not in node.annotations
    assert node.annotations.get(INTERRUPTION) in {None, foreign}
    assert node.taints == taints
