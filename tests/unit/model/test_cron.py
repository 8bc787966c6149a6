"""Schedules of CronJobs, as their controller reads them."""

from datetime import UTC, datetime

import pytest
from cronsim import CronSim

from reconciler.model.cron import cron_job_schedule

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


@pytest.mark.parametrize(
    "schedule",
    ["0 0 L * *", "0 0 * * 5L", "0 0 * * 5#2", "0 0 * * 7", "0 0 * * 1-7", "0 0 15W * *"],
)
def test_schedule_that_cron_jobs_refuse_is_refused(schedule: str) -> None:
    """A mix would promise what the cluster does not take."""
    with pytest.raises(ValueError, match=r"CronJobs|from 0"):
        cron_job_schedule(schedule)
