"""Messages of the interruption queue: EventBridge's documented events, and what is none of them."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.ids import InstanceId
from reconciler.model.notices import MessageId, Notice
from reconciler.records.aws.events import decode_message

MESSAGE = MessageId("m-1")
UNREADABLE = (Notice(message=MESSAGE, kind="unreadable", instance=InstanceId("")),)


def event(source: str, detail_type: str, detail: Any, **changed: Any) -> dict[str, Any]:
    """An event as EventBridge sends it."""
    return {
        "version": "0",
        "id": "12345678-1234-1234-1234-123456789012",
        "detail-type": detail_type,
        "source": source,
        "account": "123456789012",
        "time": "2026-01-31T12:00:00Z",
        "region": "us-east-2",
        "resources": ["arn:aws:ec2:us-east-2:123456789012:instance/i-1234567890abcdef0"],
        "detail": detail,
        **changed,
    }


SPOT = event(
    "aws.ec2",
    "EC2 Spot Instance Interruption Warning",
    {"instance-id": "i-1234567890abcdef0", "instance-action": "stop"},
)
REBALANCE = event(
    "aws.ec2",
    "EC2 Instance Rebalance Recommendation",
    {"instance-id": "i-1234567890abcdef0"},
)
STATE = event(
    "aws.ec2",
    "EC2 Instance State-change Notification",
    {"instance-id": "i-1234567890abcdef0", "state": "stopping"},
)
HEALTH = event(
    "aws.health",
    "AWS Health Event",
    {
        "eventArn": "arn:aws:health:us-east-2::event/AWS_EC2_INSTANCE_STOP_SCHEDULED_90353408594",
        "service": "EC2",
        "eventTypeCode": "AWS_EC2_INSTANCE_STOP_SCHEDULED",
        "eventTypeCategory": "scheduledChange",
        "startTime": "Sat, 31 Jan 2026 15:00:00 GMT",
        "endTime": "Sat, 31 Jan 2026 16:00:00 GMT",
        "eventDescription": [{"language": "en_US", "latestDescription": "A description"}],
        "statusCode": "upcoming",
        "affectedEntities": [
            {"entityValue": "i-26543cd5c75e2bb91", "tags": {"stage": "prod"}},
            {"entityValue": "i-1234567890abcdef0"},
        ],
    },
)
LIFECYCLE = event(
    "aws.autoscaling",
    "EC2 Instance-terminate Lifecycle Action",
    {
        "LifecycleActionToken": "87654321-4321-4321-4321-210987654321",
        "AutoScalingGroupName": "group",
        "LifecycleHookName": "hook",
        "EC2InstanceId": "i-1234567890abcdef0",
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "NotificationMetadata": "additional-info",
    },
)


def at(hour: int, minute: int = 0) -> datetime:
    """A time of the events' day."""
    return datetime(2026, 1, 31, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (SPOT, [("spot-interruption", "i-1234567890abcdef0", "stop", at(12, 2))]),
        (REBALANCE, [("rebalance", "i-1234567890abcdef0", "", at(12))]),
        (STATE, [("state-change", "i-1234567890abcdef0", "stopping", at(12))]),
        (
            HEALTH,
            [
                ("scheduled-change", each, "AWS_EC2_INSTANCE_STOP_SCHEDULED", at(15))
                for each in ("i-1234567890abcdef0", "i-26543cd5c75e2bb91")
            ],
        ),
        (LIFECYCLE, [("lifecycle-action", "i-1234567890abcdef0", "", at(12))]),
    ],
    ids=["spot", "rebalance", "state", "health", "lifecycle"],
)
def test_documented_events_are_read(sent: dict[str, Any], told: list[tuple[Any, ...]]) -> None:
    """An event that is misread is a node that is not emptied in time."""
    found = decode_message(MESSAGE, json.dumps(sent))
    assert [(n.kind, n.instance, n.action, n.at) for n in found] == told
    assert {n.message for n in found} == {MESSAGE}


ONE, OTHER = "i-1234567890abcdef0", "i-26543cd5c75e2bb91"
PENDING, RESOLVED = {"status": "PENDING"}, {"status": "RESOLVED"}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"statusCode": "open"}, {ONE: "scheduled-change", OTHER: "scheduled-change"}),
        ({"statusCode": "closed"}, {ONE: "change-withdrawn", OTHER: "change-withdrawn"}),
        (
            {"affectedEntities": [{"entityValue": ONE, **RESOLVED}, {"entityValue": OTHER}]},
            {ONE: "change-withdrawn", OTHER: "scheduled-change"},
        ),
        (
            {"affectedEntities": [{"entityValue": ONE, **each} for each in (RESOLVED, PENDING)]},
            {ONE: "scheduled-change"},
        ),
        (
            {"affectedEntities": [{"entityValue": "vol-0123"}, 7, {"entityValue": ONE}]},
            {ONE: "scheduled-change"},
        ),
        ({"affectedEntities": [{"entityValue": "vol-0123"}]}, {"": "unreadable"}),
    ],
    ids=["open", "closed", "resolved", "resolved-and-pending", "volume", "volume-alone"],
)
def test_scheduled_change_is_reported_instances_that_it_still_concerns(
    changed: dict[str, Any], told: dict[str, str]
) -> None:
    """A cancelled change emptied its nodes, and one volume hid the instances beside it."""
    sent = {**HEALTH, "detail": {**HEALTH["detail"], **changed}}
    found = decode_message(MESSAGE, json.dumps(sent))
    assert {notice.instance: notice.kind for notice in found} == told
    assert {notice.at for notice in found} <= {at(15), None}


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no JSON",
        "[]",
        "null",
        "{}",
        "[" * 100_000,
        json.dumps({**SPOT, "source": "aws.s3"}),
        json.dumps({**SPOT, "time": "yesterday"}),
        json.dumps({**SPOT, "time": "2026-01-31T12:00:00"}),
        json.dumps({**SPOT, "time": "9999-12-31T23:59:59Z"}),
        json.dumps({**SPOT, "time": "0001-01-01T00:00:00+14:00"}),
        json.dumps({**SPOT, "detail": {"instance-id": "i-1"}}),
        json.dumps({**SPOT, "detail": {"instance-id": 7, "instance-action": "stop"}}),
        json.dumps({**SPOT, "detail": {"instance-id": "i-" + "0" * 99, "instance-action": "stop"}}),
        json.dumps({**SPOT, "detail": {"instance-id": "i-1", "instance-action": "polish"}}),
        json.dumps({**STATE, "detail": {"instance-id": "i-1", "state": "tired"}}),
        json.dumps({**REBALANCE, "time": "9999-12-31T23:59:59Z"}),
        json.dumps({**HEALTH, "detail": {**HEALTH["detail"], "startTime": "soon"}}),
        *(
            json.dumps({**HEALTH, "detail": {**HEALTH["detail"], "startTime": start}})
            for start in (
                "Fri, 31 Dec 9999 23:59:59 -0100",
                "Fri, 31 Dec 9999 23:59:59 GMT",
            )
        ),
        json.dumps({**HEALTH, "detail": {**HEALTH["detail"], "affectedEntities": []}}),
        json.dumps(
            {
                **HEALTH,
                "detail": {**HEALTH["detail"], "affectedEntities": [{"entityValue": "i-1"}] * 1001},
            }
        ),
        json.dumps({**HEALTH, "detail": {**HEALTH["detail"], "eventTypeCategory": "issue"}}),
    ],
)
def test_message_that_is_no_event_is_reported_as_unreadable(body: str) -> None:
    """Whoever may send to the queue must not be able to stop the reader, or fill the queue."""
    assert decode_message(MESSAGE, body) == UNREADABLE


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.sampled_from([SPOT, REBALANCE, STATE, HEALTH, LIFECYCLE]), st.data())
def test_no_message_stops_the_reader(sent: dict[str, Any], data: st.DataObject) -> None:
    """A field of any other form is reported, never raised."""
    detail = dict(sent["detail"])
    key = data.draw(st.sampled_from(sorted(detail)))
    detail[key] = data.draw(_JSON)
    changed = {**sent, "detail": detail, "time": data.draw(st.just(sent["time"]) | _JSON)}
    assert decode_message(MESSAGE, json.dumps(changed))
