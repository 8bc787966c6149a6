"""`reconciler validate`: every fault of a sector config with its place."""

import sys
from typing import Annotated

import typer

from reconciler.cli.config_argument import ConfigArgument, config_of
from reconciler.cli.output import Output, OutputOption, print_data, wanted
from reconciler.config.check import check_file
from reconciler.config.json_schema import json_schema
from reconciler.config.loader import DEFAULT_FILE
from reconciler.model.errors import Problem

EXAMPLE = "reconciler validate sectors.yaml --output json"


def command(
    config_file: ConfigArgument = None,
    *,
    config: Annotated[
        str, typer.Option(metavar="FILE", help="Sector config; - is stdin.")
    ] = DEFAULT_FILE,
    cluster_name: Annotated[
        str | None, typer.Option(help="Cluster to check names and tags for; wins over the file's.")
    ] = None,
    output: OutputOption = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema for editors instead.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Report more warnings, and exit with 2 for warnings too."),
    ] = False,
) -> None:
    """Check a sector config; every fault with file:line:column, all in one go.

    Exit code 0 without faults, 2 with faults. Warnings are what is legal and probably wrong; they
    leave the exit code alone, and with --strict there are more of them and they fail it.
    """
    if schema:
        print_data(json_schema(), Output.JSON)
        return
    file = config_of(config, config_file)
    problems = check_file(file, cluster_name=cluster_name, strict=strict)
    if (form := wanted(output)) is not Output.TABLE:
        print_data(
            {"faults": [_as_json(problem) for problem in problems]},
            form,
            indent=_indent(problems),
        )
    else:
        _print_lines("<stdin>" if file == "-" else file, problems)
    if any(strict or problem.severity == "error" for problem in problems):
        raise typer.Exit(2)


def _print_lines(name: str, problems: tuple[Problem, ...]) -> None:
    """One line per fault and warning, as editors and terminals read them."""
    for p in problems:
        mark = "warning: " if p.severity == "warning" else ""
        place = f"{name}:{p.line}:{p.column}: {mark}{p.code}" if p.line else name
        sys.stdout.write(f"{place}: {p.message}\n")
    if all(problem.severity == "warning" for problem in problems):
        sys.stdout.write(f"{name}: no faults\n")


def _as_json(problem: Problem) -> dict[str, object]:
    """The public form of a fault."""
    return {
        "code": problem.code,
        "severity": problem.severity,
        "path": problem.path,
        # A file that cannot be read has no line; those who annotate lines get the first.
        "line": max(1, problem.line),
        "column": max(1, problem.column),
        "message": problem.message,
    }


def _indent(problems: tuple[Problem, ...]) -> int | None:
    """A clean answer fits on one line."""
    return 2 if problems else None
