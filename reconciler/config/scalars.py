"""Parses the texts of a config: numbers, booleans, durations, times, quantities, prices.

YAML 1.2 in spirit: a plain `1` is a number, `"1"` a text; but a time is a time with or without
quotes, and the booleans of YAML 1.1 (`yes`, `off`) count where a boolean is expected.
Every function takes what was written and raises a fault with a stable code.
"""

import re
from collections.abc import Callable
from datetime import time
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from reconciler.config.faults import out_of_range, quoted, wrong_type
from reconciler.config.tree import UnquotedText
from reconciler.model import cron, ids
from reconciler.model.quantity import parse_quantity

SECONDS_MAX: Final = 10 * 365 * 86_400
"""Ten years: anything longer is a slip of the keyboard."""
INTEGER_MAX: Final = 2**31 - 1
QUANTITY_MAX: Final = 2**63 - 1

_NUMBER: Final = re.compile(
    r"[-+]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][-+]?\d{1,3})?", re.ASCII
)
_LEADING_ZERO: Final = re.compile(r"[-+]?0[\d_]", re.ASCII)
_SHARE_MAX = 999_999
"""The largest number of nodes or pods that a budget states."""
_SUFFIXES = "; suffixes are m, k, M, G, T, P, E and Ki, Mi, Gi, Ti, Pi, Ei, in this case"
_NOT_FINITE: Final = re.compile(r"[-+]?\.?(?:nan|inf|infinity)", re.IGNORECASE)
_DURATION: Final = re.compile(
    r"(?P<sign>-?)(?:(?P<d>\d+(?:\.\d+)?)d)?(?:(?P<h>\d+(?:\.\d+)?)h)?"
    r"(?:(?P<m>\d+(?:\.\d+)?)m)?(?:(?P<s>\d+(?:\.\d+)?)s)?",
    re.ASCII,
)
_TIME: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_TRUE: Final = frozenset({"true", "yes", "on", "y"})
FALSE_TEXTS: Final = frozenset({"false", "no", "off", "n"})
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def looks_like_other_type(text: str) -> bool:
    """Return whether YAML 1.2 reads a plain scalar as a number, boolean or null."""
    return (
        text in {"true", "True", "TRUE", "false", "False", "FALSE"}
        or _NUMBER.fullmatch(text) is not None
        or re.fullmatch(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", text) is not None
        or UnquotedText(text).is_null
    )


def written(value: object) -> object:
    """Return a Python number or boolean as it would be written; for values from programs."""
    if isinstance(value, bool):
        return UnquotedText("true" if value else "false")
    return UnquotedText(value) if isinstance(value, int | float | Decimal) else value


def any_text(value: object) -> str:
    """Return a text; plain scalars keep their literal text whatever they look like."""
    value = written(value)
    if not isinstance(value, str):
        raise wrong_type(f"must be a text, not {type_name(value)}")
    return str(value)


def text(value: object) -> str:
    """Return a text; a plain number or boolean is refused."""
    literal = any_text(value)
    if isinstance(value, UnquotedText) and looks_like_other_type(literal):
        raise wrong_type(f"must be a text; put {quoted(literal)} in quotes if that is meant")
    return literal


def type_name(value: object) -> str:
    """Return the type of a value, for messages."""
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else "a text"


def number(value: object, expected: str = "a number") -> Decimal:
    """Return a finite plain number, exactly as written."""
    value = written(value)
    if isinstance(value, str) and _NOT_FINITE.fullmatch(value):
        raise out_of_range(f"must be {expected}, not {quoted(value)}")
    if not isinstance(value, UnquotedText) or _NUMBER.fullmatch(value) is None:
        shown = quoted(value) if isinstance(value, str) else type_name(value)
        raise wrong_type(f"must be {expected}, not {shown}")
    if _LEADING_ZERO.match(value) and value.replace("_", "").isdigit():
        raise wrong_type(f"{quoted(value)} is octal to some readers and decimal to others")
    return Decimal(value.replace("_", ""))


def boolean(value: object) -> bool:
    """Return a plain boolean, in the spelling of YAML 1.2 or 1.1."""
    value = written(value)
    if isinstance(value, UnquotedText) and value.lower() in _TRUE | FALSE_TEXTS:
        return value.lower() in _TRUE
    shown = quoted(value) if isinstance(value, str) else type_name(value)
    raise wrong_type(f"must be true or false, not {shown}")


def integer(value: object) -> int:
    """Return a whole number within 32 bits; callers check their own limits."""
    exact = number(value, "a whole number")
    if abs(exact) > INTEGER_MAX:
        raise out_of_range(f"{quoted(str(value))} is too large")
    if exact != int(exact):
        raise wrong_type(f"must be a whole number, not {quoted(str(value))}")
    return int(exact)


def real(value: object) -> float:
    """Return a finite number."""
    exact = number(value)
    if abs(exact) > QUANTITY_MAX:
        raise out_of_range(f"{quoted(str(value))} is too large")
    return float(exact)


def price(value: object) -> Decimal:
    """Return US dollars, 0 or more, exactly as written; quotes are allowed."""
    exact = number(
        UnquotedText(value) if isinstance(value, str) else value, "a price in US dollars"
    )
    if exact < 0:
        raise out_of_range(f"a price cannot be negative: {quoted(str(value))}")
    if exact > INTEGER_MAX:
        raise out_of_range(f"{quoted(str(value))} is too large")
    return exact


def duration_seconds(value: object) -> float:
    """Return a duration, 0 or more, in seconds: `90`, `90s`, `10m`, `1h30m`, `14d`."""
    literal = any_text(value)
    if _NOT_FINITE.fullmatch(literal):
        raise out_of_range(f"must be a duration, not {quoted(literal)}")
    if _NUMBER.fullmatch(literal):
        seconds = number(UnquotedText(literal))
    else:
        match = _DURATION.fullmatch(literal) if literal.strip("-") else None
        if match is None:
            raise wrong_type(
                f"must be a duration such as 90, 90s, 10m, 1h30m or 14d, not {quoted(literal)}"
            )
        parts = {unit: Decimal(match[unit] or 0) for unit in "dhms"}
        seconds = parts["d"] * 86400 + parts["h"] * 3600 + parts["m"] * 60 + parts["s"]
        seconds = -seconds if match["sign"] else seconds
    if seconds < 0:
        raise out_of_range(f"a duration cannot be negative: {quoted(literal)}")
    if seconds > SECONDS_MAX:
        raise out_of_range(f"longer than ten years: {quoted(literal)}")
    return float(seconds)


def time_of_day(value: object) -> time:
    """Return a time of day such as `8:00` or `19:30:15`, with or without quotes.

    `24:00` is midnight. A bare number is seconds since midnight and a quoted hour such as "7" an
    hour, as in Kluster Fleet Manager.
    """
    if isinstance(value, time):
        return value
    literal = any_text(value)
    if match := _TIME.fullmatch(literal):
        hour, minute, second = (int(part or 0) for part in match.groups())
        seconds = hour * 3600 + minute * 60 + second
        valid = hour <= 24 and minute < 60 and second < 60
    elif not isinstance(value, UnquotedText) and re.fullmatch(r"\d{1,2}", literal, re.ASCII):
        seconds, valid = int(literal) * 3600, True
    elif isinstance(value, UnquotedText) and _NUMBER.fullmatch(literal):
        seconds, valid = integer(value), True
    else:
        raise wrong_type(f"must be a time such as 8:00 or 19:30, not {quoted(literal)}")
    if not valid:
        raise wrong_type(f"there is no such time: {quoted(literal)}")
    if not 0 <= seconds <= 86_400:
        raise out_of_range(f"a time lies between 0:00 and 24:00: {quoted(literal)}")
    seconds %= 86_400
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60)


def weekday(value: object) -> int:
    """Return a day as 1 to 7 from Monday: by number, name, or the name's first three letters."""
    literal = any_text(value).lower()
    for position, name in enumerate(_DAYS, start=1):
        if literal in {name, name[:3], str(position)}:
            return position
    if _NUMBER.fullmatch(literal):
        raise out_of_range(f"days go from 1 (Monday) to 7, not {quoted(literal)}")
    raise wrong_type(f"must be a day such as mon or 1 to 7 from Monday, not {quoted(literal)}")


def share(value: str, *, lowest: int) -> str:
    """Return a number or a percentage as it is written; other texts are for others to refuse."""
    found = re.fullmatch(r"(-?\d{1,100})(%?)", value, re.ASCII)
    highest = 100 if value.endswith("%") else _SHARE_MAX
    if found and not lowest <= int(found[1]) <= highest:
        sign = found[2]
        raise out_of_range(f"must be from {lowest}{sign} to {highest}{sign}, not {value}")
    return value


def quantity(value: object, *, scale: int = 1, scaled_max: int = QUANTITY_MAX) -> int:
    """Return a Kubernetes quantity, 0 or more, in whole base units (times `scale`), rounded up.

    Args:
        value: What was written, with or without quotes.
        scale: 1000 for milli-CPU, 1 for bytes and counts.
        scaled_max: The largest result; Kubernetes holds 64 bits.
    """
    literal = any_text(value)
    if _NOT_FINITE.fullmatch(literal):
        raise out_of_range(f"must be a quantity, not {quoted(literal)}")
    try:
        exact = parse_quantity(literal) * scale
    except ValueError as error:
        hint = _SUFFIXES if literal[-1:].isalpha() else ""
        raise wrong_type(f"bad quantity: {quoted(literal)}{hint}") from error
    if exact < 0:
        raise out_of_range(f"a quantity cannot be negative: {quoted(literal)}")
    if exact > scaled_max:
        raise out_of_range(f"{quoted(literal)} is too large")
    return -(-exact.numerator // exact.denominator)


def secret_url(value: object) -> str:
    """Return a URL that no message may show."""
    literal = any_text(value)
    if literal and not literal.startswith(("https://", "http://")):
        raise wrong_type("must be a URL (it is secret and not shown)")
    return literal


def region(value: str) -> str:
    """Return the name of an AWS Region, checked by its form."""
    if re.fullmatch(ids.REGION_PATTERN, value, re.ASCII) is None:
        raise wrong_type(f"must be an AWS Region such as us-west-2, not {quoted(value)}")
    return value


def cron_schedule(value: str) -> str:
    """Return a schedule of cron or of CronJobs, such as @daily, as a cron expression."""
    return _cron(value, cron.cron_schedule)


def cron_job_schedule(value: str) -> str:
    """Return the same of what a CronJob may have as its schedule."""
    return _cron(value, cron.cron_job_schedule)


def _cron(value: str, check: Callable[[str], str]) -> str:
    try:
        return check(value)
    except ValueError as error:
        example = "(such as '0 2 * * sat')"
        raise wrong_type(f"no cron expression: {quoted(value)} {example}: {error}") from None


def timezone(value: str) -> str:
    """Return the name of an IANA time zone that this machine knows."""
    if value == "UTC":
        return value
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise wrong_type(f"unknown time zone {quoted(value)} (such as Europe/Berlin)") from None
    return value
