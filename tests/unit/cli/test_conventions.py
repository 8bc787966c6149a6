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


def takes(command: tuple[str, ...]) -> tuple[bool, bool]:
    """Whether a command takes a config as an option, and as its first argument."""
    found = commands.load_command(command[0])
    for name in command[1:]:
        found = found.commands[name]
    arguments = [
        param.metavar or "" for param in found.params if param.param_type_name == "argument"
    ]
    as_option = any("--config" in param.opts for param in found.params)
    return as_option, any(name.startswith(("FILE", "PATH")) for name in arguments[:1])


@pytest.mark.parametrize(
    "command", [each for each in every_command() if each[0] != "explain"], ids=" ".join
)
def test_config_is_an_option_and_the_first_argument(command: tuple[str, ...]) -> None:
    """`reconciler COMMAND sectors.yaml` works for some and is an error for others.

    The first argument of `explain` is what to explain.
    """
    as_option, as_argument = takes(command)
    assert as_argument or not as_option


@pytest.mark.parametrize(
    "command",
    [
        ("ci", "plan", "--dir", "d", "--out", "o"),
        ("ci", "apply", "--dir", "d", "--plan", "o"),
        ("ci", "finish", "--dir", "d"),
        ("ci", "drift", "--dir", "d"),
        ("ci", "roots"),
        ("gitops", "--once", "--repository", "r"),
        ("import", "--out", "o"),
    ],
    ids=" ".join,
)
def test_option_and_argument_that_name_different_configs_are_refused(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """One of them would be passed over."""
    assert run([*command, "one.yaml", "--config", "two.yaml"]) == 2
    error = capsys.readouterr().err
    assert error == (
        "error: --config: names two.yaml, and the argument one.yaml (give one of them)\n"
    )
