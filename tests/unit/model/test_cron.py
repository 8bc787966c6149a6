"""Schedules of CronJobs, as their controller reads them."""

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from reconciler.model.cron import cron_job_schedule, cron_job_times, cron_schedule

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
"""A Sunday."""


def days(schedule: str, count: int) -> list[int]:
    """The days of March on which it is due first."""
    times = CronSim(cron_job_schedule(schedule), BEGIN)
    return [next(times).day for _ in range(count)]


@pytest.mark.parametrize(
    ("schedule", "due"),
    [
        ("0 3 ? * *", [1, 2, 3]),
        ("0 3 * * ?", [1, 2, 3]),
        ("@weekly", [8, 15, 22]),
        ("0 3 * * WED", [4, 11, 18]),
        ("0 3 */10 * *", [1, 11, 21]),
        ("0 3 */2,31 * 1", [1, 2, 3, 5, 7, 9]),
        ("0 3 * * 4/2", [5, 7, 12, 14]),
        ("0 3 1-7 * */2", [1, 2, 3, 4, 5, 6, 7, 8, 10, 12]),
    ],
)
def test_schedule_is_due_when_a_cron_job_would_run(schedule: str, due: list[int]) -> None:
    """A simulation would start Jobs on other days than the cluster."""
    assert days(schedule, len(due)) == due


def test_schedule_of_both_kinds_of_days_means_what_it_means_to_cron_jobs() -> None:
    """A budget would hold on other days than the same line in Karpenter: there one is enough."""
    assert cron_schedule("0 3 */2,31 * 1") == cron_job_schedule("0 3 */2,31 * 1")


@pytest.mark.parametrize(
    "schedule",
    ["0 0 L * *", "0 0 * * 5L", "0 0 * * 5#2", "0 0 * * 7", "0 0 * * 1-7", "0 0 15W * *"],
)
def test_schedule_that_cron_jobs_refuse_is_refused(schedule: str) -> None:
    """A mix would promise what the cluster does not take."""
    with pytest.raises(ValueError, match=r"CronJobs|from 0"):
        cron_job_schedule(schedule)


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("30 2 * * *", "2026-03-28T12:00", ["2026-03-30T00:30", "2026-03-31T00:30"]),
        ("30 2 * * *", "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-25T01:30"]),
        ("30 2 * * *", "2026-10-25T00:45", ["2026-10-25T01:30", "2026-10-26T01:30"]),
        ("30 2 * * *", "2026-10-25T01:30", ["2026-10-26T01:30", "2026-10-27T01:30"]),
        (
            "*/30 1-3 * * *",
            "2026-10-25T00:00",
            ["2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30", "2026-10-25T02:00"],
        ),
        ("0 1-4 * * *", "2026-03-28T23:30", ["2026-03-29T00:00", "2026-03-29T01:00"]),
        ("*/20 * * * *", "2026-03-01T12:07", ["2026-03-01T12:20", "2026-03-01T12:40"]),
    ],
)
def test_jobs_start_when_a_clock_shows_the_time(
    schedule: str, after: str, expected: list[str]
) -> None:
    """Nights on which clocks change had one Job, where the CronJob controller has none or two."""
    begin = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = cron_job_times(schedule, ZoneInfo("Europe/Berlin"), begin)
    assert [f"{at:%Y-%m-%dT%H:%M}" for at in islice(found, len(expected))] == expected
