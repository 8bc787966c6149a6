"""What plain and quoted texts mean."""

from datetime import time
from decimal import Decimal

import pytest
from pydantic_core import PydanticCustomError

from reconciler.config import scalars
from reconciler.config.tree import UnquotedText


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8:00", time(8)),
        ("08:00", time(8)),
        ("22:30", time(22, 30)),
        ("0:00", time(0)),
        ("19:30:15", time(19, 30, 15)),
        ("24:00", time(0)),
    ],
)
def test_time_means_the_same_with_and_without_quotes(text: str, expected: time) -> None:
    """YAML 1.1 reads 8:00 as 480: nodes would be kept from eight minutes past midnight."""
    assert scalars.time_of_day(UnquotedText(text)) == expected
    assert scalars.time_of_day(text) == expected


def test_bare_number_as_time_is_seconds_since_midnight() -> None:
    """That is what a number means to Kluster Fleet Manager, 86400 included."""
    assert scalars.time_of_day(UnquotedText("28800")) == time(8)
    assert (
        scalars.time_of_day(UnquotedText("0"))
        == scalars.time_of_day(UnquotedText("86400"))
        == time(0)
    )
    assert scalars.time_of_day("7") == time(7)


@pytest.mark.parametrize("text", ["8", "8.5", "8:0", "8:60", "25:00", ":30", "8am", "-1:00", ""])
def test_quoted_text_that_is_no_time_is_refused(text: str) -> None:
    """A time that is guessed is wrong half of the year."""
    if text == "8":
        assert scalars.time_of_day(text) == time(8)
        return
    with pytest.raises(PydanticCustomError):
        scalars.time_of_day(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("10m", 600),
        ("2h", 7200),
        ("1h30m", 5400),
        ("14d", 1_209_600),
        ("1d12h", 129_600),
        ("0s", 0),
        ("0.5", 0.5),
        ("1.5h", 5400),
        ("1h1m1s", 3661),
        ("1_000", 1000),
    ],
)
def test_duration_in_every_notation_is_seconds(text: str, seconds: float) -> None:
    """A minute read as a second would drain nodes that are in use."""
    assert scalars.duration_seconds(UnquotedText(text)) == seconds
    assert scalars.duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-", "10 m", "10w", "1m1h", "m5", "10ms", "1h-5m", "٣s"])
def test_text_that_is_no_duration_is_a_type_fault(text: str) -> None:
    """Half-understood durations are worse than none."""
    with pytest.raises(PydanticCustomError) as caught:
        scalars.duration_seconds(text)
    assert caught.value.type == "config/type"


@pytest.mark.parametrize("text", ["-1", "-1s", ".nan", "nan", ".inf", "-.inf", "99999999999"])
def test_impossible_duration_is_a_range_fault(text: str) -> None:
    """A NaN compares false with everything: a timer that never or always fires."""
    with pytest.raises(PydanticCustomError) as caught:
        scalars.duration_seconds(UnquotedText(text))
    assert caught.value.type == "config/range"


@pytest.mark.parametrize("text", ["2gi", "2097152K", "5 KB"])
def test_quantity_with_a_wrong_suffix_names_the_right_ones(text: str) -> None:
    """Whoever writes `2gi` sees nothing wrong with it."""
    with pytest.raises(PydanticCustomError, match="suffixes are m, k, M, G, T, P, E and Ki, Mi"):
        scalars.quantity(UnquotedText(text))


@pytest.mark.parametrize("text", ["true", "True", "TRUE", "yes", "on", "On", "y"])
def test_yaml_1_1_truth_counts_where_a_boolean_is_expected(text: str) -> None:
    """Configs of Kluster Fleet Manager were read by YAML 1.1."""
    assert scalars.boolean(UnquotedText(text)) is True


@pytest.mark.parametrize("text", ["false", "no", "off", "N"])
def test_yaml_1_1_falsehood_counts_where_a_boolean_is_expected(text: str) -> None:
    """`spot: off` must not become spot."""
    assert scalars.boolean(UnquotedText(text)) is False


@pytest.mark.parametrize("value", ["true", UnquotedText("1"), UnquotedText("maybe"), [], {}])
def test_anything_else_is_no_boolean(value: object) -> None:
    """A quoted "false" is a text; taken as a boolean it would be true."""
    with pytest.raises(PydanticCustomError):
        scalars.boolean(value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1.5", "config/type"),
        ("x", "config/type"),
        ("010", "config/type"),
        ("0x10", "config/type"),
        ("1:30", "config/type"),
        ("2147483648", "config/range"),
        (".inf", "config/range"),
        ("1e999", "config/range"),
    ],
)
def test_text_that_is_no_integer_has_the_right_code(text: str, code: str) -> None:
    """Octal and sexagesimal numbers mean different things to different readers."""
    with pytest.raises(PydanticCustomError) as caught:
        scalars.integer(UnquotedText(text))
    assert caught.value.type == code


def test_whole_number_in_any_plain_notation_is_an_integer() -> None:
    """YAML 1.1 files have 1_000, and 2.0 has no fraction."""
    assert [scalars.integer(UnquotedText(t)) for t in ("2", "+2", "2.0", "1_000", "-3", "1e2")] == [
        2,
        2,
        2,
        1000,
        -3,
        100,
    ]


def test_quoted_number_is_no_integer() -> None:
    """`"3"` is a text; a config that mixes the two hides a mistake."""
    with pytest.raises(PydanticCustomError):
        scalars.integer("3")


@pytest.mark.parametrize(
    ("text", "scale", "expected"),
    [
        ("2.5Gi", 1, 2_684_354_560),
        ("1.0", 1000, 1000),
        ("250m", 1000, 250),
        ("0.1", 1000, 100),
        ("1n", 1000, 1),
        ("1e3", 1, 1000),
        ("1E", 1, 10**18),
        ("1k", 1, 1000),
    ],
)
def test_quantity_is_exact_and_rounds_up(text: str, scale: int, expected: int) -> None:
    """Floats would make a pod that fits a node exactly not fit."""
    assert scalars.quantity(UnquotedText(text), scale=scale) == expected


def test_price_keeps_every_digit() -> None:
    """Money as a float adds up to other sums."""
    assert scalars.price(UnquotedText("0.10")) == scalars.price("0.10") == Decimal("0.10")


@pytest.mark.parametrize("text", ["1234", "true", "1.5", "~", ".inf", "null"])
def test_plain_number_or_boolean_is_no_text_unless_literal(text: str) -> None:
    """Tags keep what was written; a cluster called 1234 was hardly meant."""
    assert scalars.any_text(UnquotedText(text)) == text
    assert scalars.text(text) == text
    with pytest.raises(PydanticCustomError):
        scalars.text(UnquotedText(text))


def test_days_go_by_name_abbreviation_and_iso_number() -> None:
    """1 is Monday in Kluster Fleet Manager, not Sunday."""
    assert [scalars.weekday(UnquotedText(d)) for d in ("mon", "Monday", "1", "SUN", "7")] == [
        1,
        1,
        1,
        7,
        7,
    ]
