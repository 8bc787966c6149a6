"""The page of promises names tests that exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "promises.md"


def every_test() -> set[str]:
    """The names of all test functions and classes' methods of the project."""
    return {
        node.name
        for file in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def promises() -> list[tuple[str, list[str]]]:
    """Each promise of the first table, and the tests that it names."""
    table = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
    rows = re.findall(r"^\| (?!it will never|---)(.+?) \| (.+?) \|$", table, re.MULTILINE)
    return [(promise, re.findall(r"`(\w+)`", tests)) for promise, tests in rows]


def test_every_promise_names_a_test_and_every_named_test_exists() -> None:
    """A promise whose test was renamed or removed would be only words."""
    found = promises()
    assert len(found) >= 10
    known = every_test()
    assert [promise for promise, tests in found if not tests] == []
    assert [name for _, tests in found for name in tests if name not in known] == []


def test_page_is_linked_from_the_readme() -> None:
    """Nobody would find it."""
    assert "docs/promises.md" in (ROOT / "README.md").read_text(encoding="utf-8")
