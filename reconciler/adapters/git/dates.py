"""The dates of commits, in the one form that git reads again whatever they are."""

import re

_RAW = re.compile(r"(\d{1,18}) ([+-][01]\d[0-5]\d)", re.ASCII)


def as_date(raw: str) -> str:
    """What GIT_COMMITTER_DATE takes for a date that `--date=raw` shows.

    Written as a calendar's date, git refuses years from 2100 on. A commit that was made by hand may
    have no readable date, or a zone that is none: it counts as the beginning of 1970.

    Source: git's date.c, `match_object_header_date`; seen with git 2.39.
    """
    found = _RAW.fullmatch(raw)
    return f"@{found[1]} {found[2]}" if found else "@0 +0000"
