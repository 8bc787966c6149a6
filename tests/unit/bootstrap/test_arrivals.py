"""What is done when messages of the interruption queue come."""

from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from reconciler.bootstrap.arrivals import Arrivals
from reconciler.model.ids import InstanceId
from reconciler.model.notices import MessageId, Notice, NoticeKind
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
    """Two clouds, and what the loop is told."""

    clouds: tuple[Cloud, ...] = field(
        default_factory=lambda: (Cloud(ours="i-fleet"), Cloud(ours="i-group"))
    )
    told: list[str] = field(default_factory=list)

    def come(self, *notices: Notice) -> None:
        """Messages come."""
        Arrivals(self.clouds, lambda: self.told.append("now"))(notices)


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
    assert [each.ends for each in scene.clouds] == [["i-group"] * ends] * 2
    assert scene.told == ["now"]
