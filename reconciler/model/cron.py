"""Cron schedules: which are understood, and what the short names of Kubernetes stand for."""

from datetime import UTC, datetime
from typing import Final

from cronsim import CronSim, CronSimError

FIELDS: Final = 5
SHORT_NAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""What CronJobs take in place of five fields."""


def checked_schedule(text: str) -> str:
    """A cron expression of five fields, as it is.

    Raises:
        ValueError: It is none; the text says why.
    """
    try:
        CronSim(text, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ValueError(str(error)) from error
    if len(text.split()) != FIELDS:
        raise ValueError(f"it has {len(text.split())} fields, not {FIELDS}")
    return text


def cron_job_schedule(text: str) -> str:
    """What a CronJob may have as its schedule, as a cron expression of five fields.

    Raises:
        ValueError: It may not; the text says why.
    """
    return checked_schedule(SHORT_NAMES.get(text, text))
