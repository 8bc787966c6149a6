"""Every option of every command is in a page, not only in `--help`."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli import commands

ROOT = Path(__file__).parents[3]
PAGES = ("README.md", "docs/*.md", "ci/*.md", "terraform/**/README.md")


def options_of(name: str) -> Iterator[str]:
    """The long options of a command and its sub-commands, `--no-…` too."""
    command = commands.load_command(name)
    for each in [command, *getattr(command, "commands", {}).values()]:
        for parameter in each.params:
            if getattr(parameter, "hidden", False):
                continue  # how one process of the program starts another
            names = [*parameter.opts, *parameter.secondary_opts]
            yield from (option for option in names if option.startswith("--"))


@pytest.fixture(scope="module")
def documented() -> frozenset[str]:
    """The options that the pages name; cli.md is generated and names all."""
    pages = [page for pattern in PAGES for page in ROOT.glob(pattern) if page.name != "cli.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    return frozenset(re.findall(r"--[a-z][a-z0-9-]*", text))


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_every_option_is_in_a_page(name: str, documented: frozenset[str]) -> None:
    """An option that only `--help` has is found by those who know that it is there."""
    assert sorted(set(options_of(name)) - documented) == []
