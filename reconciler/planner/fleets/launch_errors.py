"""What failed launches lack: capacity in EC2, a quota of the account, or something to be fixed."""

import re
from collections.abc import Iterable
from typing import Final

from reconciler.model.fleet import FleetEvent
from reconciler.model.saved_state import FailureKind
from reconciler.planner.cool_off import ATTEMPT

# Source: EC2 API reference, "Error codes" and "Monitor your EC2 Fleet using EventBridge".
_GIVEN_UP: Final = "allLaunchSpecsTemporarilyBlacklisted"
"""EC2 stops for a while after errors of any kind; where it shows no other it most often lacked
capacity."""
_CAPACITY: Final = frozenset(
    {
        "InsufficientInstanceCapacity",
        "InsufficientHostCapacity",
        "InsufficientReservedInstanceCapacity",
        "InsufficientCapacity",
        "MaxScheduledInstanceCapacityExceeded",
        "UnfulfillableCapacity",
    }
)
_QUOTA: Final = re.compile(r"\b(?!RequestLimit)\w+(?:Limit|Count)Exceeded\b")
"""`VcpuLimitExceeded`, `MaxSpotInstanceCountExceeded` and their like; `RequestLimitExceeded` says
that AWS was asked too often."""
_QUOTA_WORDS: Final = re.compile(r"\b(?:quota|limit|exceeded)\b", re.IGNORECASE)
_THROTTLED_WORDS: Final = re.compile(r"\brequest limit\b", re.IGNORECASE)
_CAPACITY_WORDS: Final = re.compile(r"capacity", re.IGNORECASE)
_ORDER: Final[tuple[FailureKind, ...]] = ("capacity", "quota", "launch-fails")
"""Of the errors of one attempt the first of these counts: a type that a zone does not have fails
in words of its own beside the others, and a broken template fails with every type."""


def kind_of_launch_error(event: FleetEvent) -> FailureKind:
    """Return what a failed launch lacks: by its code, and without one by AWS's words."""
    if event.code in _CAPACITY or event.code == _GIVEN_UP:
        return "capacity"
    if names_quota(event.code):
        return "quota"
    if event.code:
        return "launch-fails"
    if _THROTTLED_WORDS.search(event.message):
        return "launch-fails"
    if _QUOTA_WORDS.search(event.message):
        return "quota"
    return "capacity" if _CAPACITY_WORDS.search(event.message) else "launch-fails"


def names_quota(text: str) -> bool:
    """Return whether a text has a code of AWS's for a quota that is reached."""
    return _QUOTA.search(text) is not None


def last_failure(errors: Iterable[FleetEvent]) -> tuple[FailureKind, str]:
    """Return what the last attempt of these lacked, and AWS's code or words for it.

    A code for a lack of capacity is enough; of everything else the words say what to do.

    Args:
        errors: One or more failed launches of one fleet.
    """
    fleet_events = sorted(errors)
    attempt = [
        fleet_event
        for fleet_event in fleet_events
        if fleet_events[-1].at - fleet_event.at <= ATTEMPT
    ]
    # The latest of the first kind; `min` keeps the first of equals.
    event = min(reversed(attempt), key=_rank)
    words = event.code if event.code in _CAPACITY else _in_words(event)
    return kind_of_launch_error(event), words


def _rank(event: FleetEvent) -> tuple[bool, int]:
    return event.code == _GIVEN_UP, _ORDER.index(kind_of_launch_error(event))


def _in_words(event: FleetEvent) -> str:
    if event.code and event.code not in event.message:
        return f"{event.code}: {event.message}" if event.message else event.code
    return event.message or "AWS gives no reason"
