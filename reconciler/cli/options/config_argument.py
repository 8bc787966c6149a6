"""A sector config is named by `--config FILE`, or as a command's first argument."""

from collections.abc import Sequence
from typing import Annotated

import typer

from reconciler.config.loader import DEFAULT_FILE
from reconciler.model.errors import UsageError

ConfigArgument = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="Sector config; the same as --config.", show_default=False),
]


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
    if not arguments:
        return [option]
    if option != DEFAULT_FILE and [option] != list(arguments):
        raise UsageError(
            "--config",
            f"names {option}, and the argument {' '.join(arguments)}",
            "give one of them",
        )
    return arguments
