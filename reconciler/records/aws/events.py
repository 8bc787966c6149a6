"""Decodes messages of the interruption queue, which hold EventBridge events, into notices.

Sources: EC2 user guide, "Spot Instance interruption notices", "EC2 instance rebalance
recommendations" and "Automate Amazon EC2 using EventBridge" (state changes); AWS Health user
guide, "Reference: AWS Health events Amazon EventBridge schema"; EC2 Auto Scaling user guide,
"Amazon EventBridge events for Auto Scaling".
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from reconciler.model.ids import InstanceId, Region
from reconciler.model.notices import SPOT_ACTIONS, SPOT_NOTICE, LifecycleAction, MessageId, Notice
from reconciler.records.times import YEARS, http_date

TOKEN_LENGTH: Final = 36
"""Of a lifecycle action: a UUID. Source: Auto Scaling API reference, CompleteLifecycleAction."""
CHANGE_OVER: Final = "closed"
"""The status of a Health event whose change was cancelled or is done."""
ENTITY_OVER: Final = "RESOLVED"
"""The same of a single instance, while the change may still come to others of the event."""
ENTITIES_MAX: Final = 1000
"""Instances of one message at most; a message of SQS has room for more, and no event names as
many."""
STATES: Final = frozenset(
    {"pending", "running", "stopping", "stopped", "shutting-down", "terminated"}
)


class _UnreadableError(Exception):
    """A message that is not one of the events."""


def decode_message(message: MessageId, body: str) -> tuple[Notice, ...]:
    """Return the content of one message: a notice for each instance that it names.

    A message that is not one of the known events, or is incomplete, is one notice of the kind
    `unreadable`, so that it can be counted and deleted. So is a Health event that names no
    instance, and any message on which decoding fails. Nothing is raised, as other messages are
    received with it.

    Args:
        message: Its id in the queue.
        body: Its text, which may be anything.
    """
    with suppress(Exception):  # no sender must be able to keep other messages from being read
        event = _mapping(msgspec.json.decode(body))
        read = _READERS.get((_text(event, "source"), _text(event, "detail-type")))
        if read is not None:
            notices = read(message, _time(event, "time"), _mapping(event.get("detail")))
            return tuple(_in_region(notice, event) for notice in notices)
    return (Notice(message=message, kind="unreadable", instance=InstanceId("")),)


def _in_region(notice: Notice, event: Mapping[str, Any]) -> Notice:
    """Return the notice with the region of its hook."""
    if notice.hook is None:
        return notice
    return replace(notice, hook=replace(notice.hook, region=Region(_text(event, "region"))))


def _spot_interruption(
    message: MessageId, at: datetime, detail: Mapping[str, Any]
) -> tuple[Notice, ...]:
    action = _text(detail, "instance-action")
    if action not in SPOT_ACTIONS:
        raise _UnreadableError
    instance = _instance(detail, "instance-id")
    ends_at = at + SPOT_NOTICE
    return (
        Notice(
            message=message, kind="spot-interruption", instance=instance, action=action, at=ends_at
        ),
    )


def _rebalance(message: MessageId, at: datetime, detail: Mapping[str, Any]) -> tuple[Notice, ...]:
    instance = _instance(detail, "instance-id")
    return (Notice(message=message, kind="rebalance", instance=instance, at=at),)


def _state_change(
    message: MessageId, at: datetime, detail: Mapping[str, Any]
) -> tuple[Notice, ...]:
    state = _text(detail, "state")
    if state not in STATES:
        raise _UnreadableError
    instance = _instance(detail, "instance-id")
    return (Notice(message=message, kind="state-change", instance=instance, action=state, at=at),)


def _lifecycle_action(
    message: MessageId, at: datetime, detail: Mapping[str, Any]
) -> tuple[Notice, ...]:
    keys = ("AutoScalingGroupName", "LifecycleHookName", "LifecycleActionToken")
    group, name, token = (_text(detail, key) for key in keys)
    if len(token) != TOKEN_LENGTH:
        raise _UnreadableError
    return (
        Notice(
            message=message,
            kind="lifecycle-action",
            instance=_instance(detail, "EC2InstanceId"),
            at=at,
            hook=LifecycleAction(region=Region(""), group=group, name=name, token=token),
        ),
    )


def _health(message: MessageId, _at: datetime, detail: Mapping[str, Any]) -> tuple[Notice, ...]:
    """Return notices of scheduled changes of EC2 (maintenance, retirement) at their start.

    Entities other than instances (volumes, say) are left out.
    """
    category = _text(detail, "eventTypeCategory")
    start = http_date(_text(detail, "startTime"))
    if _text(detail, "service") != "EC2" or category != "scheduledChange" or start is None:
        raise _UnreadableError
    entities = detail.get("affectedEntities")
    if not isinstance(entities, list) or not 0 < len(entities) <= ENTITIES_MAX:
        raise _UnreadableError
    code, closed = _text(detail, "eventTypeCode"), detail.get("statusCode") == CHANGE_OVER
    announced: dict[InstanceId, bool] = {}
    for each in entities:
        with suppress(_UnreadableError):
            entity = _mapping(each)
            instance = _instance(entity, "entityValue")
            is_over = closed or entity.get("status") == ENTITY_OVER
            announced[instance] = announced.get(instance, False) or not is_over
    if not announced:
        raise _UnreadableError
    return tuple(
        Notice(
            message=message,
            kind="scheduled-change" if announced[instance] else "change-withdrawn",
            instance=instance,
            action=code,
            at=start,
        )
        for instance in sorted(announced)
    )


_READERS: Final[
    Mapping[tuple[str, str], Callable[[MessageId, datetime, Mapping[str, Any]], tuple[Notice, ...]]]
] = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"): _spot_interruption,
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"): _rebalance,
    ("aws.ec2", "EC2 Instance State-change Notification"): _state_change,
    ("aws.health", "AWS Health Event"): _health,
    ("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action"): _lifecycle_action,
}
"""By source and detail-type: the events that the rules of terraform/reconciler send."""


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _UnreadableError
    return value


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    if not isinstance(value, str):
        raise _UnreadableError
    return value


def _instance(found: Mapping[str, Any], key: str) -> InstanceId:
    value = _text(found, key)
    if not value.startswith("i-") or len(value) > 32:
        raise _UnreadableError
    return InstanceId(value)


def _time(found: Mapping[str, Any], key: str) -> datetime:
    try:
        moment = datetime.fromisoformat(_text(found, key))
        in_utc = moment.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError) as error:  # not a date, or one outside of the calendar
        raise _UnreadableError from error
    if moment.tzinfo is None or in_utc.year not in YEARS:
        raise _UnreadableError
    return in_utc
