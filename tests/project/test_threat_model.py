"""The threat model names tests that exist: a defence that nothing shows is only a claim."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", PAGE)))


@pytest.mark.parametrize("name", NAMED)
def test_named_test_exists(name: str) -> None:
    """A test that was renamed or dropped must take its row with it."""
    path, _, function = name.partition("::")
    source = (ROOT / path).read_text(encoding="utf-8")
    functions = {
        node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)
    }
    tests = {each for each in functions if each.startswith("test_")}
    assert function in tests if function else tests


def test_every_threat_has_a_test() -> None:
    """A row without one is a threat that is not met, and belongs under the other heading."""
    table = PAGE.partition("## Threats")[2].partition("## Not met")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    assert [row for row in rows if "`tests/" not in row.rsplit("|", 2)[1]] == []
