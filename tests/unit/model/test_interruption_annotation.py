"""The value of the annotation that announces the end of a node."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from reconciler.model.interruption_annotation import (
    ACTIONS,
    annotated_notice,
    read_annotation,
)

AT = datetime(2026, 1, 31, 12, 2, tzinfo=UTC)


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_what_is_written_is_read(action: str) -> None:
    """The node watch and the planner would not understand each other."""
    notice = annotated_notice(action, AT.astimezone(timezone(timedelta(hours=2))))
    assert str(notice) == f"{action}/2026-01-31T12:02:00Z"
    assert read_annotation(str(notice)) == notice


def test_only_the_end_of_the_instance_is_forced() -> None:
    """A node that EC2 only recommends to replace would be emptied within seconds."""
    forced = {action for action in ACTIONS if getattr(annotated_notice(action, AT), "forced", None)}
    assert forced == {"terminate", "stop", "hibernate"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "terminate",
        "terminate/",
        "terminate/soon",
        "terminate/2026-01-31T12:02:00",
        "reboot/2026-01-31T12:02:00Z",
        "terminate/0001-01-01T00:00:00+14:00",
        "terminate/9999-12-31T23:59:59-12:00",
        "terminate/2026-01-31T12:02:00Z" + " " * 64,
    ],
)
def test_text_that_is_no_notice_is_none(text: str) -> None:
    """Whatever somebody wrote there must not end the planning of a cycle."""
    assert read_annotation(text) is None
