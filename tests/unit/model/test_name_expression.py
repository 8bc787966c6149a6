"""Regular expressions of names find what Python's own find, in time that is bounded."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.name_expression import parse_expression

ATOMS = st.sampled_from(
    [*"ab-.^$", "[ab]", "[^a]", "[a-c1]", "\\d", "\\w", "\\W", "\\b", "\\B", "\\."],
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"((?i:{two[0]})|{two[1]})"),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{2}", "{1,3}", "*?"])).map(
            lambda one: f"(?:{one[0]}){one[1]}"
        ),
    ),
    max_leaves=6,
)


@given(EXPRESSIONS, st.text("abc1-.A", max_size=7), st.sampled_from(["", "(?i)"]))
def test_expression_is_found_where_python_finds_it(text: str, name: str, flag: str) -> None:
    """Another answer gives a fleet another priority, and buys elsewhere."""
    expected = re.search(flag + text, name) is not None
    assert parse_expression(flag + text).is_found_in(name) == expected


@pytest.mark.parametrize("text", ["(", "a(?=b)", "(?<!a)b", "(a)\\1", "(?>a)", "a*+", "(" * 150])
def test_what_re2_does_not_have_is_refused(text: str) -> None:
    """Cluster Autoscaler refuses it too, and it cannot be looked for in bounded time."""
    with pytest.raises(ValueError, match=r"."):
        parse_expression(text)


@pytest.mark.parametrize("text", ["[[:digit:]]", "^x-[a-c[:^alpha:]_]+$"])
def test_classes_by_name_are_refused(text: str) -> None:
    """RE2 has them; read as Python reads them they would match other names, without a word."""
    with pytest.raises(ValueError, match=r"\[:\^?[a-z]+:\] is not supported"):
        parse_expression(text)


@pytest.mark.parametrize(
    ("text", "found", "not_found"),
    [
        (r"^web\z", ["web"], ["webs"]),
        ("web-[[a]", ["web-[", "web-a"], ["web-b"]),
        ("[a&&b|~]-", ["&-", "|-", "~-"], ["c-"]),
        (r"^[\[\]&]$", ["[", "]", "&"], ["\\"]),
        ("^[]a]$", ["]", "a"], ["b"]),
        ("(?i:WEB)-(?-i:a)", ["web-a"], ["web-A"]),
        (r"\\z", [r"\z"], ["z"]),
        ("a{x}{1,2}", ["a{x}"], ["ax"]),
    ],
)
def test_expression_is_read_as_re2_reads_it(
    text: str, found: list[str], not_found: list[str]
) -> None:
    """Python reads it in another way, does not know it, or writes a warning into the log."""
    expression = parse_expression(text)
    assert [name for name in (*found, *not_found) if expression.is_found_in(name)] == found


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (r"web\Z", r"\Z is not supported: the end is $ or \z"),
        ("a{,2}b", "{,2} is not supported: write {0,2}"),
        ("a{,}b", "{,} is not supported: write {0,}"),
        ("(?x)a b", "(?x) is not supported"),
        ("(?U)a+", "(?U) is not supported"),
        ("(?i-x:a)", "(?i-x: is not supported"),
        (r"\pL+", r"bad escape \p at position 0"),
        (r"\Qa.\E", r"bad escape \Q at position 0"),
        ("web(?i)SPOT", "global flags not at the start of the expression at position 3"),
    ],
)
def test_what_is_not_read_as_re2_reads_it_is_named(text: str, named: str) -> None:
    """A valid expression would be refused without a word on what to write instead."""
    with pytest.raises(ValueError, match=re.escape(named)):
        parse_expression(text)


@pytest.mark.parametrize("text", ["(a{1000}){1000}", "(a?){1000000}", "(((a*){9}){99}){99}"])
def test_what_repeats_too_much_is_refused(text: str) -> None:
    """A line of a config would take the memory of the pod."""
    with pytest.raises(ValueError, match="repeats too much"):
        parse_expression(text)


def test_many_repetitions_of_nothing_are_one() -> None:
    """They add no state, so that no limit ends them."""
    assert parse_expression("^(){1000000}$").is_found_in("")
    assert not parse_expression("^(){1000000}$").is_found_in("a")
