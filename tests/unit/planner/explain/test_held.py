"""The words for the codes under which nodes and instances are held."""

import re
from pathlib import Path
from typing import get_args

import pytest

from reconciler.model.ids import NodeName
from reconciler.model.plan import Held, HeldCode
from reconciler.planner.explain.held import HELD, held_in_words

PAGE = Path(__file__).parents[4] / "docs" / "explain.md"


def test_every_code_has_words() -> None:
    """A new code would be shown in place of its meaning."""
    assert sorted(HELD) == sorted(get_args(HeldCode))


def test_every_code_is_on_the_page() -> None:
    """Whoever reads a code in the JSON looks it up there."""
    listed = re.findall(r"^\| `held` \| `([a-z-]+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(get_args(HeldCode))


@pytest.mark.parametrize("code", get_args(HeldCode))
def test_words_are_no_code(code: HeldCode) -> None:
    """People read them in an Event."""
    words = held_in_words(Held(node=NodeName("n-1"), code=code))
    assert " " in words
    assert code not in words


def test_detail_is_said_beside_the_words() -> None:
    """Which pod keeps an instance is what a person has to know."""
    held = Held(node=NodeName(""), instance="i-1", code="unlisted-node", detail="pod ns/a is there")
    assert held_in_words(held).endswith(" (pod ns/a is there)")
