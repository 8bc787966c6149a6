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


def faults(path: Path) -> Iterator[str]:
    """What is wrong with a module of the product."""
    text = path.read_text()
    tree = ast.parse(text)
    if not ast.get_docstring(tree):
        yield "no docstring says what lives here"
    yield from (f"{marker} leaves something for later" for marker in MARKERS if marker in text)
    if (lines := len(text.splitlines())) > FILE_LINES_MAX:
        yield f"{lines} lines"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            # A command's options are its signature; what must stay short is what it does.
            length = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield f"{node.name} has {length} lines"


def test_each_module_is_one_idea_of_readable_size_and_leaves_nothing_for_later() -> None:
    """Files that outgrow a screen hide bugs, and a promise in a comment is a missing feature."""
    assert len(modules()) > 500
    found = [f"{path.relative_to(ROOT)}: {fault}" for path in modules() for fault in faults(path)]
    assert not found, "\n".join(found)


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
        assert '__all__ = ["propose"' in (folder / "__init__.py").read_text(), folder.name


def test_no_path_of_a_machine_is_in_the_tree() -> None:
    """A path that exists on one machine breaks every other."""
    suspects = ("/" + "work/", "/" + "root/", "/opt/" + "tf-plugins")
    for path in [*modules(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text()
        for suspect in suspects:
            assert suspect not in text, f"{path}: {suspect}"
