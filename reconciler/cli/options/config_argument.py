"""A sector config is named by `--config FILE`, or as a command's first argument."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from reconciler.config.loader import DEFAULT_FILE
from reconciler.model.errors import UsageError

HELP = "Sector config; the same as --config."
ConfigArgument = Annotated[
    str | None, typer.Argument(metavar="FILE", help=HELP, show_default=False)
]
PathArgument = Annotated[Path | None, typer.Argument(metavar="FILE", help=HELP, show_default=False)]
PathsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH", help="Sector configs; the same as --config."),
]
NamedT = TypeVar("NamedT", str, Path, list[str])
OptionT = TypeVar("OptionT", str, str | None)


def config_of(option: str, argument: str | None) -> str:
    """Return the named config.

    Raises:
        UsageError: Option and argument name different ones.
    """
    return configs_of(option, [] if argument is None else [argument])[0]


def configs_of(option: str, arguments: Sequence[str]) -> Sequence[str]:
    """Return the named configs, for a command that takes several as arguments.

    Raises:
        UsageError: Option and arguments name different ones.
    """
    if option != DEFAULT_FILE and arguments and [option] != list(arguments):
        raise _contradiction(option, " ".join(arguments))
    return arguments or [option]


def named_config(option: NamedT | None, argument: NamedT | None) -> NamedT | None:
    """Return what is named, for a command without a default config; None if nothing is.

    Raises:
        UsageError: Option and argument name different ones.
    """
    if option and argument and option != argument:
        raise _contradiction(_shown(option), _shown(argument))
    return argument or option


def config_or_variable(ctx: typer.Context, option: OptionT, argument: str | None) -> OptionT:
    """Return what is named, for a command whose --config RECONCILER_CONFIG may state.

    An argument outranks the variable and a default.

    Raises:
        UsageError: Option and argument name different ones.
    """
    contradicts = option and argument and option != argument
    if contradicts and is_on_the_command_line(ctx, "config"):
        raise _contradiction(str(option), str(argument))
    return argument or option


def is_on_the_command_line(ctx: typer.Context, name: str) -> bool:
    """Return whether an option was given there, and not by a variable or its default.

    Args:
        ctx: The command's context.
        name: The name of its parameter.
    """
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _shown(named: str | Path | list[str]) -> str:
    return " ".join(named) if isinstance(named, list) else str(named)


def _contradiction(option: str, argument: str) -> UsageError:
    what = f"names {option}, and the argument {argument}"
    return UsageError("--config", what, "give one of them")
