"""The documents of instance metadata, as EC2's user guide shows them, and what is none."""

from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.node_watch.announcements import (
    MalformedError,
    group_terminates,
    rebalance_notice,
    scheduled_notices,
    spot_notice,
)

EVENT = b"""[
  {
    "NotBefore" : "21 Jan 2019 09:00:43 GMT",
    "Code" : "system-reboot",
    "Description" : "scheduled reboot",
    "EventId" : "instance-event-0d59937288b749b32",
    "NotAfter" : "21 Jan 2019 09:17:23 GMT",
    "State" : "active"
  }
]"""


def test_spot_interruption_of_the_user_guide_is_read() -> None:
    """Its pods would die with the node."""
    notice = spot_notice(b'{"action": "stop", "time": "2017-09-18T08:22:00Z"}')
    assert (notice.action, notice.at) == ("stop", datetime(2017, 9, 18, 8, 22, tzinfo=UTC))


def test_rebalance_recommendation_of_the_user_guide_is_read() -> None:
    """It is the only warning that comes earlier than two minutes ahead."""
    notice = rebalance_notice(b'{"noticeTime": "2020-10-27T08:22:00Z"}')
    assert str(notice) == "rebalance-recommendation/2020-10-27T08:22:00Z"


@pytest.mark.parametrize("state", ["active", "canceled", "completed"])
def test_scheduled_event_is_a_notice_while_it_is_active(state: str) -> None:
    """Canceled events stay in the document, and would have the node replaced for nothing."""
    notices = scheduled_notices(EVENT.replace(b"active", state.encode()))
    expected = ["scheduled-change/2019-01-21T09:00:43Z"] if state == "active" else []
    assert [str(notice) for notice in notices] == expected


@pytest.mark.parametrize(
    ("text", "ends"),
    [("InService", False), ("Terminated", True), ("Warmed:Stopped", False), ("Terminated\n", True)],
)
def test_group_that_terminates_is_distinguished(text: str, ends: bool) -> None:
    """Every other state of an Auto Scaling group leaves the node in service."""
    assert group_terminates(text.encode()) is ends


@pytest.mark.parametrize(
    ("reader", "body"),
    [
        (spot_notice, b""),
        (spot_notice, b"[]"),
        (spot_notice, b"\xff\xfe{}"),
        (spot_notice, b"[" * 16_000),
        (spot_notice, b'{"action": "terminate"}'),
        (spot_notice, b'{"action": "explode", "time": "2017-09-18T08:22:00Z"}'),
        (spot_notice, b'{"action": "rebalance-recommendation", "time": "2017-09-18T08:22:00Z"}'),
        (spot_notice, b'{"action": "terminate", "time": "2017-09-18T08:22:00"}'),
        (spot_notice, b'{"action": "terminate", "time": "9999-12-31T23:59:59-12:00"}'),
        (spot_notice, b'{"action": "terminate", "time": 1505722920}'),
        (spot_notice, b'{"action": ["terminate"], "time": "2017-09-18T08:22:00Z"}'),
        (rebalance_notice, b'{"noticeTime": "soon"}'),
        (rebalance_notice, b"<html>a proxy's error page</html>"),
        (scheduled_notices, b"{}"),
        (scheduled_notices, b"[1]"),
        (scheduled_notices, b"[" + b"{}," * 101 + b"{}]"),
        (scheduled_notices, b'[{"State": "active", "NotBefore": "soon"}]'),
        (scheduled_notices, b'[{"NotBefore": "21 Jan 2019 09:00:43 GMT"}]'),
        (group_terminates, b"<html>Terminated</html>"),
        (group_terminates, b"\xff" * 30),
    ],
)
def test_what_is_no_such_document_is_malformed(reader: Any, body: bytes) -> None:
    """Whatever answers in EC2's place must not empty a node, nor end the program."""
    with pytest.raises(MalformedError):
        reader(body)
