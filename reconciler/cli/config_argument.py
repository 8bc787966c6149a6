"""A sector config is named by `--config FILE`, or as a command's first argument."""

from typing import Annotated

import typer

from reconciler.config.loader import DEFAULT_FILE
from reconciler.model.errors import UsageError

ConfigArgument = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="Sector config; the same as --config.", show_default=False),
]


def config_of(option: str, argument: str | None) -> str:
    """The config that is meant.

    Raises:
        UsageError: Option and argument name different ones.
    """
    if argument is None:
        return option
    if option not in {DEFAULT_FILE, argument}:
        raise UsageError(
            "--config", f"names {option}, and the argument {argument}", "give one of them"
        )
    return argument
