"""What is done when messages of the interruption queue come."""

from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from reconciler.bootstrap.capacity_loop.arrivals import Arrivals
from reconciler.model.ids import InstanceId
from reconciler.model.notices import Arrival, MessageId, Notice, NoticeKind
from tests.builders import NOW


@dataclass(kw_only=True)
class Cloud:
    """Has one instance, and notes which are said to end."""

    ours: str
    ends: list[str] = field(default_factory=list)

    def expect_end(self, ids: Collection[InstanceId]) -> bool:
        """Note them."""
        self.ends += ids
        return self.ours in ids


@dataclass
class Scene:
    """Two clouds, and what the loop is notified of."""

    clouds: tuple[Cloud, ...] = field(
        default_factory=lambda: (Cloud(ours="i-fleet"), Cloud(ours="i-group"))
    )
    begun: int = 0
    """How often a cycle was begun."""

    def come(self, *notices: Notice, full: bool = False) -> None:
        """Messages come."""
        Arrivals(self.clouds, self._begin)(Arrival(notices=notices, full=full))

    def _begin(self) -> None:
        self.begun += 1


def notice(instance: str, kind: NoticeKind, action: str = "") -> Notice:
    """A notice for an instance."""
    message = MessageId(f"{instance} {kind}")
    at = None if kind == "unreadable" else NOW
    return Notice(message=message, kind=kind, instance=InstanceId(instance), action=action, at=at)


@pytest.mark.parametrize(
    ("kind", "action", "ends"),
    [
        ("lifecycle-action", "", True),
        ("state-change", "stopping", True),
        ("state-change", "shutting-down", True),
        ("state-change", "running", False),
        ("spot-interruption", "terminate", False),
        ("rebalance", "", False),
        ("unreadable", "", False),
    ],
)
def test_end_of_an_instance_is_read_by_the_cycle_that_its_notice_begins(
    kind: NoticeKind, action: str, ends: bool
) -> None:
    """Answers of up to two minutes ago say that it runs, and its node would take pods."""
    scene = Scene()
    scene.come(notice("i-group", kind, action))
    assert [cloud.ends for cloud in scene.clouds] == [["i-group"] * ends] * 2


@pytest.mark.parametrize(
    ("come", "begun"),
    [
        (notice("i-fleet", "state-change", "stopping"), 1),
        (notice("i-foreign", "spot-interruption", "terminate"), 1),
        (notice("i-foreign", "lifecycle-action"), 1),
        (notice("i-foreign", "rebalance"), 1),
        (notice("i-foreign", "scheduled-change"), 1),
        (notice("i-foreign", "state-change", "shutting-down"), 0),
        (notice("i-fleet", "state-change", "running"), 0),
        (notice("", "unreadable"), 0),
    ],
    ids=str,
)
def test_cycle_begins_only_for_what_may_ask_for_a_plan(come: Notice, begun: int) -> None:
    """Two state changes a second, of any instances of the account, were 30 plans in 30 s."""
    scene = Scene()
    scene.come(come)
    scene.come(notice("i-foreign", "state-change", "stopped"), come)
    assert scene.begun == 2 * begun


def test_cycle_begins_when_no_more_messages_can_be_held() -> None:
    """An interruption behind 5,000 state changes of others would wait until the pause is over."""
    scene = Scene()
    scene.come(notice("i-foreign", "state-change", "stopped"), full=True)
    assert scene.begun == 1
