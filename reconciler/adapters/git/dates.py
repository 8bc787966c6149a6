"""Dates of commits in the form that git can always read again."""

import re

_RAW = re.compile(r"(\d{1,18}) ([+-][01]\d[0-5]\d)", re.ASCII)


def as_date(raw: str) -> str:
    """Return GIT_COMMITTER_DATE for a date that `--date=raw` shows.

    git refuses calendar dates from 2100 on. A hand-made commit may have an unreadable date or an
    invalid zone; it counts as the beginning of 1970.

    Source: git's date.c, `match_object_header_date`; seen with git 2.39.
    """
    found = _RAW.fullmatch(raw)
    return f"@{found[1]} {found[2]}" if found else "@0 +0000"
