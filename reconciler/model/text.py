"""Times, durations, counts and texts as people and annotations write them."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches

_GO_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_GO_DURATION = re.compile(rf"\+?(?:{_GO_PART.pattern})+")
_GO_UNITS = {"h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6}
_GO_SECONDS_MAX = (2**63 - 1) / 1e9
"""Go counts nanoseconds in 64 bits: about 292 years."""
_GO_LENGTH_MAX = 100
"""Longer texts are not read; annotations may have hundreds of thousands of characters."""


def rfc3339(at: datetime) -> str:
    """Return an aware time in whole seconds of UTC: `2026-01-31T12:00:00Z`."""
    return at.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def parse_rfc3339(text: str) -> datetime | None:
    """Return the time that an annotation or a person writes; None when it is not RFC 3339."""
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else None


def parse_go_duration(text: str) -> timedelta | None:
    """Return what Go's `time.ParseDuration` returns, such as for `90s` or `1h30m`.

    None if the text is no duration, or none above zero.
    """
    if len(text) > _GO_LENGTH_MAX or not _GO_DURATION.fullmatch(text):
        return None
    parts = _GO_PART.findall(text)
    seconds = sum(float(amount) * _GO_UNITS.get(unit, 1e-9) for amount, unit in parts)
    return timedelta(seconds=seconds) if 0 < seconds <= _GO_SECONDS_MAX else None


def duration(span: timedelta) -> str:
    """Return a duration in its two largest units that are not zero: `1h30m`, `10m`, `45s`."""
    left = max(0, int(span.total_seconds()))
    parts = []
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        amount, left = divmod(left, seconds)
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts[:2]) or "0s"


def counted_noun(count: int, noun: str) -> str:
    """Return a count with its noun: `1 node`, `3 nodes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def left_alone(pods: int) -> str:
    """Return in words that this many pods are pending and ignored because they select no sector."""
    return (
        "1 pod names no sector and is left alone"
        if pods == 1
        else (f"{pods} pods name no sector and are left alone")
    )


def cut(text: str, most: int) -> str:
    """Return a text within the maximum length, with a mark if it was cut."""
    return text if len(text) <= most else text[: most - 1] + "…"


def cut_inside(text: str, most: int) -> str:
    """Return a text within the maximum length; its last quarter stays, after a mark."""
    end = most // 4
    return text if len(text) <= most else f"{text[: most - end - 1]}…{text[len(text) - end :]}"


def nearest_name(name: str, known: Sequence[str]) -> str:
    """Return the name that was probably meant: one that begins so, or is spelled similarly.

    Empty if none is near.
    """
    longer = [each for each in known if name and each.startswith(name)]
    return next(iter(longer[:1] or get_close_matches(name, known, n=1)), "")


def escape_surrogates(text: str) -> str:
    """Return a text as UTF-8 can encode it, with an escape for each lone surrogate.

    Lone surrogates cannot be printed; JSON and names of files that are not UTF-8 may hold them.
    """
    return text.encode("utf-8", "backslashreplace").decode()


def replace_surrogates(text: str) -> str:
    """Return a text as UTF-8 can encode it, with `?` for each lone surrogate."""
    return text.encode(errors="replace").decode()
