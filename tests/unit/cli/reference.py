"""Writes docs/cli.md from the commands.

`python -m tests.unit.cli.reference` rewrites the file; a test fails while it differs.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reconciler.cli.commands import COMMANDS, load_command

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"
HEAD = """\
# Commands

`reconciler COMMAND --help` says the same, with an example.
Every command takes `-v`, up to three times.
Options that are also keys of the sector config have
[environment variables](config.md#what-overrides-what) too.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | it failed: a call that was refused, data that cannot be read, a plan that the guard refuses |
| 2 | the command line is wrong, or the sector config has faults or cannot be read |
| 130 | interrupted by Ctrl-C |

With `--detailed-exitcode` of `ci plan` and `ci drift` 2 means changes, and every error ends with 1.
`sandbox up -- COMMAND` ends with the command's own code.

An error shows no secret: credentials in addresses, values of variables whose names say that they
are secret, and what looks like a token are masked as `***`, with `-vvv` too. Tables show control
characters of names as `\\n` or `�`, bytes that are not UTF-8 as `\\xff`, and characters that the
output's encoding lacks as escapes; JSON and YAML are valid whatever a file is called. A command
whose standard output is closed, or whose reader has ended (`| head`, `| grep -q`), continues and
ends with its own code; one that cannot write it, say on a full disk, with 1.
"""


def reference() -> str:
    """Return the page: each command with its arguments and options."""
    parts = [HEAD]
    for name, help_text in COMMANDS.items():
        parts.append(f"## {name}\n\n{help_text}\n")
        command = load_command(name)
        for title, one in _below(command, name):
            heading = f"### {title}\n\n{one.get_short_help_str(200)}\n" if title != name else ""
            parts += [part for part in (heading, _table(one)) if part]
    return "\n".join(parts)


def _below(command: Any, title: str) -> Iterator[tuple[str, Any]]:
    yield title, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _below(child, f"{title} {name}")


def _table(command: Any) -> str:
    rows = [_row(parameter) for parameter in command.params if not _is_everywhere(parameter)]
    return "\n".join(["| argument or option | meaning |", "|---|---|", *rows, ""]) if rows else ""


def _is_everywhere(parameter: Any) -> bool:
    return getattr(parameter, "hidden", False) or bool({"-v", "--help"} & set(parameter.opts))


def _row(parameter: Any) -> str:
    shown = ", ".join(f"`{name}`" for name in _names(parameter))
    variables = getattr(parameter, "envvar", None) or []
    variables = [variables] if isinstance(variables, str) else variables
    text = (getattr(parameter, "help", None) or "").replace("|", "\\|").replace("<", "&lt;")
    default = parameter.default
    told = (
        isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    )
    if told:
        text += f" Default: `{default}`."
    if variables:
        text += f" Variable: {', '.join(f'`{name}`' for name in variables)}."
    return f"| {shown} | {text} |"


def _names(parameter: Any) -> list[str]:
    """The names of a parameter; the longest one of an option has that of its value."""
    if parameter.param_type_name == "argument":
        name = parameter.metavar or parameter.name.upper()
        return [f"{name}..." if parameter.nargs != 1 else name]
    kind = getattr(parameter, "type_descriptor", None) or getattr(parameter, "type", None)
    choices = getattr(kind, "choices", None) or ()
    value = parameter.metavar or "|".join(
        str(getattr(choice, "value", choice)) for choice in choices
    )
    value = value.replace("|", "\\|")
    longest = max(parameter.opts, key=len)
    names = [f"{name} {value}" if value and name == longest else name for name in parameter.opts]
    return [*names, *parameter.secondary_opts]


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
