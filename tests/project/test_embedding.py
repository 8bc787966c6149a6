"""Programs outside the repository start the sandbox by names that stay where they are."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "sandbox.md"
SECTION = "## From a Python program"
NAMES = {
    "reconciler.sandbox.stack": ["Sandbox", "SandboxSettings"],
    "reconciler.sandbox.aws.values": ["Delays"],
    "reconciler.sandbox.aws.bootstrap": ["bootstrap_account"],
    "reconciler.sandbox.cluster.settings": ["ClusterSettings"],
    "reconciler.sandbox.joiner": ["JoinerSettings"],
    "reconciler.sandbox.control_plane.binaries": ["provide_binaries"],
}


@pytest.mark.parametrize("module", NAMES)
def test_the_names_are_where_the_page_says(module: str) -> None:
    """A benchmark that compares autoscalers imports them; a moved module would end it."""
    found = importlib.import_module(module)
    assert [name for name in NAMES[module] if not hasattr(found, name)] == []


def test_the_page_lists_these_modules() -> None:
    """Who drives the sandbox from a program has no other list."""
    section = PAGE.read_text().split(SECTION)[1].split("\n## ")[0]
    assert re.findall(r"^\| `(reconciler\.[\w.]+)`", section, re.MULTILINE) == list(NAMES)
