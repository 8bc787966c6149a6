"""Decodes documents of instance metadata into notices: pure, and strict about malformed ones.

Sources: EC2 user guide, "Spot Instance interruption notices", "EC2 instance rebalance
recommendations" and "View scheduled events that affect your instances"; EC2 Auto Scaling user
guide, "Retrieve the target lifecycle state through instance metadata".
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from reconciler.model.interruption_annotation import (
    REBALANCE_RECOMMENDATION,
    SCHEDULED_CHANGE,
    AnnotatedNotice,
    annotated_notice,
)
from reconciler.model.notices import SPOT_ACTIONS
from reconciler.records.times import http_date

EVENTS_MAX: Final = 100
"""How many scheduled events of one instance are read; EC2 lists those of the last weeks."""
_STATE: Final = re.compile(r"[A-Za-z:]{1,40}")
_TERMINATED: Final = "Terminated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcements:
    """What instance metadata says at one moment."""

    notices: frozenset[AnnotatedNotice] = frozenset()
    group_terminates: bool = False
    """The Auto Scaling group ends the instance; metadata does not say when."""
    problems: tuple[str, ...] = ()
    """What could not be read, for people. While there is any, nothing is withdrawn."""

    @property
    def empty(self) -> bool:
        """Return whether nothing is announced."""
        return not self.notices and not self.group_terminates


class MalformedError(ValueError):
    """A document that is not what EC2 documents."""


def spot_notice(body: bytes) -> AnnotatedNotice:
    """Return the notice in `spot/instance-action`.

    Raises:
        MalformedError: It is not such a document.
    """
    document = _mapping(_json(body))
    action = _text(document, "action")
    if action not in SPOT_ACTIONS:
        raise MalformedError("action is none of terminate, stop and hibernate")
    return _notice(action, _rfc3339(_text(document, "time")))


def rebalance_notice(body: bytes) -> AnnotatedNotice:
    """Return the notice in `events/recommendations/rebalance`.

    Raises:
        MalformedError: It is not such a document.
    """
    at = _rfc3339(_text(_mapping(_json(body)), "noticeTime"))
    return _notice(REBALANCE_RECOMMENDATION, at)


def scheduled_notices(body: bytes) -> frozenset[AnnotatedNotice]:
    """Return the notices in `events/maintenance/scheduled` that are still to come.

    Events that were canceled or completed stay in the document for a while.

    Raises:
        MalformedError: It is not such a document.
    """
    document = _json(body)
    if not isinstance(document, list) or len(document) > EVENTS_MAX:
        raise MalformedError(f"is not a list of at most {EVENTS_MAX} events")
    annotated_notices: set[AnnotatedNotice] = set()
    for event in map(_mapping, document):
        not_before = http_date(_text(event, "NotBefore"))
        if _text(event, "State") == "active":
            annotated_notices.add(_notice(SCHEDULED_CHANGE, not_before))
    return frozenset(annotated_notices)


def group_terminates(body: bytes) -> bool:
    """Return whether `autoscaling/target-lifecycle-state` says that the group ends the instance.

    Raises:
        MalformedError: It is not a state.
    """
    text = body.decode("ascii", "replace").strip()
    if not _STATE.fullmatch(text):
        raise MalformedError("is not a lifecycle state")
    return text == _TERMINATED


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedError("is not JSON") from error


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise MalformedError("is not an object")
    return value


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str) or len(value) > 64:
        raise MalformedError(f"{key} is not a text of at most 64 characters")
    return value


def _rfc3339(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _notice(action: str, at: datetime | None) -> AnnotatedNotice:
    notice = None if at is None else annotated_notice(action, at)
    if notice is None:
        raise MalformedError("its time cannot be read")
    return notice
