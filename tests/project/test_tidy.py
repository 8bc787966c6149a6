"""What style asks of the tree and no linter checks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 400
MARKERS = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error")


def modules() -> list[Path]:
    """Every module of the product."""
    return sorted((ROOT / "reconciler").rglob("*.py"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_module_is_one_idea_of_readable_size(path: Path) -> None:
    """Files and functions that outgrow a screen hide bugs from their reviewers."""
    text = path.read_text()
    assert len(text.splitlines()) <= FILE_LINES_MAX
    for function in functions(path):
        # A command's options are its signature; what must stay short is what it does.
        length = (function.end_lineno or function.lineno) - function.body[0].lineno + 1
        assert length <= FUNCTION_LINES_MAX, f"{function.name} has {length} lines"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_module_says_what_lives_in_it_and_leaves_nothing_for_later(path: Path) -> None:
    """A promise in a comment is a feature that a user will miss."""
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)), "a module docstring says what lives here"
    for marker in MARKERS:
        assert marker not in text, marker


@pytest.mark.parametrize(
    "folder", ["", *sorted(p.parent.name for p in ROOT.glob("tests/*/__init__.py"))]
)
def test_tests_are_of_readable_size_and_share_what_is_no_test(folder: str) -> None:
    """What is imported from a test module changes, or goes, with the tests of something else."""
    for path in sorted((ROOT / "tests" / folder).glob("**/*.py" if folder else "*.py")):
        text = path.read_text()
        assert len(text.splitlines()) <= FILE_LINES_MAX, path
        for node in ast.walk(ast.parse(text)):
            source = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            name = source.rpartition(".")[2]
            assert not name.startswith("test_"), f"{path} imports from {source}"


def test_every_policy_folder_is_complete() -> None:
    """A reader who knows one policy's folder knows all."""
    folders = [
        p
        for p in (ROOT / "reconciler" / "planner" / "policies").iterdir()
        if (p / "__init__.py").exists()
    ]
    assert folders
    for folder in folders:
        assert "SPEC = PolicySpec(" in (folder / "__init__.py").read_text(), folder.name


def test_no_path_of_a_machine_is_in_the_tree() -> None:
    """A path that exists on one machine breaks every other."""
    suspects = ("/" + "work/", "/" + "root/", "/opt/" + "tf-plugins")
    for path in [*modules(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text()
        for suspect in suspects:
            assert suspect not in text, f"{path}: {suspect}"
