"""`reconciler completion`: a script that completes commands and options in a shell."""

import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

EXAMPLE = "source <(reconciler completion bash)"
_VARIABLE = "_RECONCILER_COMPLETE"
"""Set by the script when it asks this program for completions."""


class Shell(StrEnum):
    """The shells for which there is a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def command(shell: Annotated[Shell, typer.Argument(help="Shell to complete in.")]) -> None:
    """Print a completion script: source it, or save it in the shell's completion directory."""
    from typer._completion_shared import get_completion_script  # noqa: PLC0415 - only here

    script = get_completion_script(
        prog_name="reconciler", complete_var=_VARIABLE, shell=shell.value
    )
    sys.stdout.write(script.strip() + "\n")


def prepare() -> None:
    """Register completion handlers when a shell script calls us for completions."""
    if os.environ.get(_VARIABLE):  # noqa: TID251 - how shells ask, no config
        from typer._completion_classes import completion_init  # noqa: PLC0415 - only then

        completion_init()
