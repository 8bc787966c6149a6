"""`reconciler validate`: every fault of a sector config with its place."""

import sys
from typing import Annotated

import typer

from reconciler.cli.output import Output, OutputOption, print_json, wanted
from reconciler.config.json_schema import json_schema
from reconciler.config.loader import DEFAULT_FILE, load_config
from reconciler.model.errors import ConfigError, Problem

EXAMPLE = "reconciler validate sectors.yaml --output json"


def command(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Sector config; - is stdin.")
    ] = DEFAULT_FILE,
    *,
    cluster_name: Annotated[
        str | None, typer.Option(help="Cluster to check names and tags for; wins over the file's.")
    ] = None,
    output: OutputOption = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema for editors instead.")
    ] = False,
) -> None:
    """Check a sector config; every fault with file:line:column, all in one go.

    Exit code 0 when it is clean, 2 when it has faults.
    """
    if schema:
        print_json(json_schema())
        return
    problems = _problems_of(file, cluster_name)
    if wanted(output) is Output.JSON:
        print_json(
            {"faults": [_as_json(problem) for problem in problems]}, indent=_indent(problems)
        )
    else:
        name = "<stdin>" if file == "-" else file
        for p in problems:
            sys.stdout.write(f"{name}:{p.line}:{p.column}: {p.code}: {p.message}\n")
        if not problems:
            sys.stdout.write(f"{name}: no faults\n")
    if problems:
        raise typer.Exit(2)


def _problems_of(file: str, cluster_name: str | None) -> tuple[Problem, ...]:
    """The faults of the file, in its order."""
    try:
        load_config(file, cluster_name=cluster_name)
    except ConfigError as error:
        return error.problems
    return ()


def _as_json(problem: Problem) -> dict[str, object]:
    """The public form of a fault."""
    return {
        "code": problem.code,
        "path": problem.path,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
    }


def _indent(problems: tuple[Problem, ...]) -> int | None:
    """A clean answer fits on one line."""
    return 2 if problems else None
