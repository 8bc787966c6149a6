"""How long a node must have been empty, by hour, weekday and time zone (docs/scale-in.md)."""

from datetime import UTC, datetime, time, timedelta

import pytest

from reconciler.planner.disruption.blockers.grace_periods import (
    grace_ends_at,
    grace_seconds,
    idle_long_enough_at,
    idle_seconds_required,
)
from reconciler.planner.disruption_settings import GracePeriod, ScaleInSettings
from tests.builders import make_fleet_settings

DAILY = frozenset(range(1, 8))
WORKDAYS = frozenset(range(1, 6))


def period(
    starts: str, ends: str, seconds: float = 900, weekdays: frozenset[int] = DAILY
) -> GracePeriod:
    """A grace period in words."""
    return GracePeriod(
        starts=time.fromisoformat(starts),
        ends=time.fromisoformat(ends),
        weekdays=weekdays,
        seconds=seconds,
    )


@pytest.mark.parametrize(
    ("starts", "ends", "days", "at", "holds"),
    [
        ("07:00", "19:00", DAILY, "2026-01-31T06:59:59", False),
        ("07:00", "19:00", DAILY, "2026-01-31T07:00:00", True),
        ("07:00", "19:00", DAILY, "2026-01-31T18:59:59", True),
        ("07:00", "19:00", DAILY, "2026-01-31T19:00:00", False),
        ("07:00", "19:00", WORKDAYS, "2026-01-31T12:00:00", False),
        ("07:00", "19:00", WORKDAYS, "2026-01-30T12:00:00", True),
        ("22:00", "06:00", DAILY, "2026-01-31T23:00:00", True),
        ("22:00", "06:00", DAILY, "2026-01-31T05:59:59", True),
        ("22:00", "06:00", DAILY, "2026-01-31T06:00:00", False),
        ("22:00", "06:00", DAILY, "2026-01-31T12:00:00", False),
        ("22:00", "06:00", frozenset({2}), "2026-01-27T00:00:00", True),
        ("22:00", "06:00", frozenset({2}), "2026-01-27T23:30:00", True),
        ("22:00", "06:00", frozenset({2}), "2026-01-28T01:00:00", False),
        ("22:00", "06:00", frozenset({2}), "2026-01-26T23:00:00", False),
        ("08:00", "08:00", DAILY, "2026-01-31T03:00:00", True),
        ("00:00", "00:00", DAILY, "2026-01-31T23:59:59", True),
    ],
)
def test_period_holds_from_its_start_to_before_its_end(
    starts: str, ends: str, days: frozenset[int], at: str, holds: bool
) -> None:
    """Nodes would leave in the middle of the day, or stay all night."""
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    found = grace_seconds([period(starts, ends, weekdays=days)], moment, "UTC")
    assert found == (900 if holds else None)


@pytest.mark.parametrize(
    ("zone", "at", "holds"),
    [
        ("UTC", "2026-07-01T07:30:00", True),
        ("Europe/Berlin", "2026-07-01T05:30:00", True),
        ("Europe/Berlin", "2026-07-01T04:30:00", False),
        ("Europe/Berlin", "2026-01-01T06:30:00", True),
        ("Europe/Berlin", "2026-01-01T05:30:00", False),
        ("America/Los_Angeles", "2026-01-05T15:30:00", True),
        ("Asia/Kolkata", "2026-01-05T01:29:00", False),
        ("Asia/Kolkata", "2026-01-05T01:31:00", True),
    ],
)
def test_hours_are_those_of_the_configured_time_zone_summer_time_included(
    zone: str, at: str, holds: bool
) -> None:
    """Windows in UTC only are a complaint of every operator who is not in London."""
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    assert (grace_seconds([period("07:00", "19:00")], moment, zone) is not None) == holds


@pytest.mark.parametrize(
    ("at", "holds"),
    [
        # 29 March 2026: at 01:00 UTC clocks in Berlin go from 02:00 to 03:00.
        ("2026-03-28T20:59:59", False),
        ("2026-03-28T21:00:00", True),
        ("2026-03-29T00:59:59", True),
        ("2026-03-29T01:00:00", False),
        # 25 October 2026: at 01:00 UTC they go back from 03:00 to 02:00, which comes twice.
        ("2026-10-24T20:00:00", True),
        ("2026-10-25T00:30:00", True),
        ("2026-10-25T01:30:00", True),
        ("2026-10-25T02:00:00", False),
    ],
)
def test_overnight_range_holds_by_local_clocks_when_they_change(at: str, holds: bool) -> None:
    """Twice a year nodes would leave an hour early, or stay a whole day."""
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    night = period("22:00", "03:00")
    assert (grace_seconds([night], moment, "Europe/Berlin") is not None) == holds


def test_weekday_is_that_of_the_time_zone() -> None:
    """On Sunday evening in UTC it is Monday morning in Auckland."""
    moment = datetime(2026, 2, 1, 21, 0, tzinfo=UTC)
    monday = period("00:00", "00:00", weekdays=frozenset({1}))
    assert grace_seconds([monday], moment, "Pacific/Auckland") == 900
    assert grace_seconds([monday], moment, "UTC") is None


def test_first_period_that_holds_wins() -> None:
    """The order in the config would mean nothing."""
    periods = [period("10:00", "14:00", 60), period("00:00", "00:00", 7200)]
    noon, night = datetime(2026, 1, 31, 12, tzinfo=UTC), datetime(2026, 1, 31, 2, tzinfo=UTC)
    assert grace_seconds(periods, noon, "UTC") == 60
    assert grace_seconds(periods, night, "UTC") == 7200


@pytest.mark.parametrize(
    ("grace", "idle", "explicit", "required"),
    [
        (None, 600, False, 600),
        (None, 120, True, 120),
        (900, 600, False, 900),
        (60, 600, False, 60),
        (60, 600, True, 600),
        (900, 600, True, 900),
        (0, 600, False, 0),
    ],
)
def test_grace_period_and_idle_threshold_the_longer_where_both_are_set(
    grace: float | None, idle: float, explicit: bool, required: float
) -> None:
    """A Kluster Fleet Manager config would keep nodes for other times than it did."""
    fleet = make_fleet_settings(
        scale_in=ScaleInSettings(idle_threshold_seconds=idle, idle_threshold_explicit=explicit),
        grace_periods=() if grace is None else (period("00:00", "00:00", grace),),
    )
    assert idle_seconds_required(fleet, datetime(2026, 1, 31, 12, tzinfo=UTC), "UTC") == required


DAYTIME = period("07:00", "19:00", 3600)
"""Of the local day: an hour."""


@pytest.mark.parametrize(
    ("since", "at", "enough"),
    [
        ("18:49", "18:50", "19:00"),
        ("18:57", "18:58", "19:02"),
        ("06:57", "06:58", "07:57"),
        ("06:54", "06:58", "06:59"),
        ("12:00", "12:10", "13:00"),
        ("20:00", "20:01", "20:05"),
        ("17:00", "18:50", "18:50"),
    ],
)
@pytest.mark.parametrize(("zone", "hours"), [("UTC", 0), ("Europe/Berlin", 1)])
def test_idle_time_ends_by_what_is_required_then(
    since: str, at: str, enough: str, zone: str, hours: int
) -> None:
    """At 18:50 the page said that a node goes in 59 minutes, and it went at 19:00."""
    idle = ScaleInSettings(idle_threshold_seconds=300)
    fleet = make_fleet_settings(scale_in=idle, grace_periods=(DAYTIME,))
    moments = (datetime.fromisoformat(f"2026-01-30T{each}:00Z") for each in (since, at, enough))
    began, now, ends = (moment - timedelta(hours=hours) for moment in moments)
    assert idle_long_enough_at(fleet, began, now, zone) == ends


@pytest.mark.parametrize(
    ("created", "at", "old_enough"),
    [("18:30", "18:40", "19:00"), ("17:30", "18:00", "18:30"), ("19:10", "19:20", "19:20")],
)
def test_node_is_old_enough_when_the_grace_period_ends(
    created: str, at: str, old_enough: str
) -> None:
    """A node that may go in twenty minutes was said to stay for an hour."""
    moments = (datetime.fromisoformat(f"2026-01-30T{e}:00Z") for e in (created, at, old_enough))
    began, now, ends = moments
    assert grace_ends_at((DAYTIME,), began, now, "UTC") == ends


def test_grace_period_of_a_weekday_is_seen_days_ahead() -> None:
    """On a Saturday nothing holds until Monday, and then an hour is required."""
    fleet = make_fleet_settings(
        scale_in=ScaleInSettings(idle_threshold_seconds=3 * 86_400),
        grace_periods=(period("00:00", "00:00", 60, frozenset({1})),),
    )
    saturday = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert idle_long_enough_at(fleet, saturday, saturday, "UTC") == datetime(2026, 2, 2, tzinfo=UTC)
