"""`reconciler render`: the Terraform root module of a sector config."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.config_argument import ConfigArgument, config_of
from reconciler.cli.output import Output, OutputOption, print_data, wanted
from reconciler.config.loader import DEFAULT_FILE, Purpose, load_config
from reconciler.gitops.render import render
from reconciler.gitops.root_module import root_module_of
from reconciler.gitops.write import WrittenChanges, rendered_cluster, write_rendered

EXAMPLE = "reconciler render --config sectors.yaml --out infrastructure/fleets"


def command(
    config_file: ConfigArgument = None,
    *,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder to write; its older render is replaced.")
    ],
    config: Annotated[
        str, typer.Option(metavar="FILE", help="Sector config; - is stdin.")
    ] = DEFAULT_FILE,
    cluster_name: Annotated[
        str | None,
        typer.Option(
            help="EKS cluster; wins over the config's. Default for a config that names none: the"
            " one that DIR was rendered for."
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Write the Terraform root module and fleets.auto.tfvars.json for a sector config.

    Files of an older render go, other files in the folder stay. Prints what changed.
    """
    read = load_config(
        config_of(config, config_file), cluster_name=cluster_name, purpose=Purpose.RENDER
    )
    root = root_module_of(read, cluster_name=read.cluster or rendered_cluster(out))
    changes = write_rendered(render(root), out)
    if (form := wanted(output)) is not Output.TABLE:
        print_data({**asdict(changes), "left_out": dict(root.left_out)}, form)
    else:
        _print_lines(changes, dict(root.left_out), out)


def _print_lines(changes: WrittenChanges, left_out: dict[str, str], out: Path) -> None:
    """One line per changed file and fleet that was left out, then a sum."""
    for verb in ("created", "updated", "removed"):
        for path in getattr(changes, verb):
            sys.stdout.write(f"{verb:8} {path}\n")
    for fleet, reason in sorted(left_out.items()):
        sys.stdout.write(f"left out fleet {fleet}: {reason}\n")
    sys.stdout.write(f"{out}: {changes.unchanged} files unchanged\n")
