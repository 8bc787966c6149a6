"""`reconciler validate`: every fault of sector configs with its place."""

from typing import Annotated

import typer

from reconciler.cli.options.config_argument import configs_of
from reconciler.cli.terminal.messages import without_secrets
from reconciler.cli.terminal.output import Output, OutputOption, print_data, print_line, wanted
from reconciler.config.check import CheckedConfig, check_named
from reconciler.config.environment import stated_cluster_name
from reconciler.config.json_schema import json_schema
from reconciler.config.loader import DEFAULT_FILE
from reconciler.model.errors import Problem
from reconciler.model.text import counted_noun

EXAMPLE = """reconciler validate sectors.yaml --output json
reconciler validate clusters/a/sectors.yaml clusters/b/sectors.yaml
reconciler validate clusters/"""


def command(
    config_files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Sector configs; the same as --config. A directory stands for every sectors.yaml"
            " in it and below.",
            show_default=False,
        ),
    ] = None,
    *,
    config: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Sector config; - is stdin. RECONCILER_CONFIG is not read."
        ),
    ] = DEFAULT_FILE,
    cluster_name: Annotated[
        str | None, typer.Option(help="Cluster to check names and tags for; overrides the file's.")
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
    """Check sector configs and print every fault with file:line:column.

    Exit code 0 without faults, 2 when any of the configs has one. Warnings do not change the
    exit code. With --strict there are more warnings, and any of them gives exit code 2.
    """
    if schema:
        print_data(json_schema(), Output.JSON)
        return
    named = stated_cluster_name(cluster_name)
    checked = check_named(configs_of(config, config_files or []), cluster_name=named, strict=strict)
    problems = [problem for checked_config in checked for problem in checked_config.problems]
    if (form := wanted(output)) is not Output.TABLE:
        faults = [
            _as_json(checked_config.name, problem)
            for checked_config in checked
            for problem in checked_config.problems
        ]
        # A result without faults fits on one line.
        print_data({"faults": faults}, form, indent=2 if faults else None)
    else:
        for each in checked:
            _print_lines(each)
    if any(strict or problem.severity == "error" for problem in problems):
        raise typer.Exit(2)


def _print_lines(checked: CheckedConfig) -> None:
    """Print one line per fault and warning, in the form that editors and terminals read."""
    name = checked.name
    for p in checked.problems:
        mark = "warning: " if p.severity == "warning" else ""
        place = f"{name}:{p.line}:{p.column}: {mark}{p.code}" if p.line else name
        print_line(f"{place}: {without_secrets(p.message)}")
    if all(problem.severity == "warning" for problem in checked.problems):
        warnings = len(checked.problems)
        print_line(
            f"{name}: no faults" + (f", {counted_noun(warnings, 'warning')}" * (warnings > 0))
        )


def _as_json(name: str, problem: Problem) -> dict[str, object]:
    """Return the public form of a fault; a key or a text of the config may be a secret."""
    return {
        "file": name,
        "code": problem.code,
        "severity": problem.severity,
        "path": without_secrets(problem.path),
        # A file that cannot be read has no line; tools that annotate lines get the first one.
        "line": max(1, problem.line),
        "column": max(1, problem.column),
        "message": without_secrets(problem.message),
    }
