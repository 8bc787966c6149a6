"""What every command keeps to: values have names, colours are asked for, help is for people."""

from collections.abc import Iterator

import pytest

from reconciler.cli import commands
from reconciler.cli.main import run


def every_command() -> Iterator[tuple[str, ...]]:
    """All commands and sub-commands."""
    for name in commands.COMMANDS:
        command = commands.load_command(name)
        for sub in getattr(command, "commands", None) or [""]:
            yield (name, sub) if sub else (name,)


@pytest.mark.parametrize("command", list(every_command()), ids=" ".join)
def test_help_names_the_values_of_options(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """`--cluster-name <str>` says nothing that the reader does not see."""
    assert run([*command, "--help"]) == 0
    options = [
        line for line in capsys.readouterr().out.splitlines() if line.lstrip().startswith("-")
    ]
    assert options
    assert not [
        line for line in options if any(f"<{kind}" in line for kind in ("str>", "int>", "path>"))
    ]


def test_help_names_values_by_their_unit(capsys: pytest.CaptureFixture[str]) -> None:
    """`--capacity-errors-per-day DAY` asks for a day."""
    assert run(["simulate", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--interruptions-per-hour RATE" in shown
    assert "--capacity-errors-per-day RATE" in shown
    assert "--workers N " in shown
    for command in ("run", "gitops", "status"):
        assert run([command, "--help"]) == 0
        assert "--interval SECONDS" in capsys.readouterr().out
