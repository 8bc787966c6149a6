"""The fault script of `reconciler sandbox up`, refused with every fault in it."""

import typer

from reconciler.cli.terminal.messages import tell
from reconciler.model.errors import ConfigError
from reconciler.sandbox.faults.script import FaultScript, load_script


def read_faults(file: str) -> FaultScript:
    """Return the script in a file; print what is wrong with it and end with exit code 2."""
    try:
        return load_script(file)
    except ConfigError as error:
        for p in error.problems:
            place = f"{file}:{p.line}:{p.column}: {p.code}" if p.line else file
            tell("error", place, p.message, hint="docs/sandbox.md lists every key")
        raise typer.Exit(error.exit_code) from None
