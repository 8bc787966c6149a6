"""Durations as others write them."""

from datetime import timedelta

import pytest

from reconciler.model.text import parse_go_duration


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("90s", timedelta(seconds=90)),
        ("+1h30m", timedelta(minutes=90)),
        ("1.5h", timedelta(minutes=90)),
        ("1.h", timedelta(hours=1)),
        (".5s", timedelta(milliseconds=500)),
        ("2m3ms", timedelta(minutes=2, milliseconds=3)),
        ("1", None),
        ("h", None),
        (".h", None),
        ("1.2.3h", None),
        ("1h ", None),
    ],
)
def test_go_durations_are_read_as_go_reads_them(text: str, meant: timedelta | None) -> None:
    """A pod would be kept too short or too long."""
    assert parse_go_duration(text) == meant


@pytest.mark.parametrize("text", ["1" * 250_000, "1." + "1" * 250_000, "0h" * 120_000 + "1h"])
def test_text_longer_than_any_duration_is_not_read(text: str) -> None:
    """The annotation of one pod, which may be this long, would hold up every plan for minutes."""
    assert parse_go_duration(text) is None
