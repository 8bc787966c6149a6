"""`reconciler render`: the Terraform root module of a sector config."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.options.config_argument import ConfigArgument, config_of
from reconciler.cli.options.folder import written_folder
from reconciler.cli.terminal.output import Output, OutputOption, print_data, print_line, wanted
from reconciler.config.environment import stated_cluster_name
from reconciler.config.loader import DEFAULT_FILE, Purpose, load_config
from reconciler.gitops.rendering.render import render
from reconciler.gitops.rendering.root_module import check_home_region, root_modules_of
from reconciler.gitops.rendering.targets import directory_of
from reconciler.gitops.rendering.write import (
    WrittenChanges,
    regions_beside,
    rendered_cluster,
    write_rendered,
)
from reconciler.gitops.terraform_plan.root_files import home_directory, rendered_region
from reconciler.machine.work_tree import assert_no_link

EXAMPLE = "reconciler render --config sectors.yaml --out infrastructure/fleets"


def command(
    config_file: ConfigArgument = None,
    *,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            parser=written_folder,
            help="Folder to write; an older render in it is replaced.",
        ),
    ],
    config: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Sector config; - is stdin. RECONCILER_CONFIG is not read."
        ),
    ] = DEFAULT_FILE,
    cluster_name: Annotated[
        str | None,
        typer.Option(
            help="EKS cluster; overrides the config's. Default for a config that names none: the"
            " one for which DIR was rendered."
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Write the Terraform root module and fleets.auto.tfvars.json for a sector config.

    DIR is the root module of the home region; each further region gets DIR-<region>, whichever of
    them DIR names. Files of an earlier render are removed, other files in the folder stay. Prints
    what changed.
    """
    assert_no_link(out)  # before anything there is read: even the names of roots depend on it
    # A directory without a name of its own, such as `.`, has no neighbours.
    out = out if out.name not in {"", ".."} else out.resolve()
    named = stated_cluster_name(cluster_name)
    read = load_config(config_of(config, config_file), cluster_name=named, purpose=Purpose.RENDER)
    out = home_directory(out, read)
    beside = regions_beside(out)
    check_home_region(read, str(out), rendered_for=rendered_region(out), further=beside)
    cluster = read.cluster or rendered_cluster(out)
    roots = root_modules_of(read, cluster_name=cluster, also=beside)
    changes = {
        region: write_rendered(render(root), Path(directory_of(str(out), region)))
        for region, root in roots.items()
    }
    left_out = dict(roots[None].left_out)
    if (form := wanted(output)) is not Output.TABLE:
        further = {str(region): asdict(each) for region, each in changes.items() if region}
        print_data({**asdict(changes[None]), "left_out": left_out, "regions": further}, form)
    else:
        _print_lines(changes, left_out, out)


def _print_lines(
    changes: Mapping[str | None, WrittenChanges], left_out: dict[str, str], out: Path
) -> None:
    """Print one line per changed file and omitted fleet, then a sum for each root module."""
    for region, changed in changes.items():
        for verb in ("created", "updated", "removed"):
            for path in getattr(changed, verb):
                shown = path if region is None else f"{directory_of(out.name, region)}/{path}"
                print_line(f"{verb:8} {shown}")
    for fleet, reason in sorted(left_out.items()):
        print_line(f"left out fleet {fleet}: {reason}")
    for region, changed in changes.items():
        directory = directory_of(str(out), region)
        print_line(f"{directory}: {changed.unchanged} files unchanged")
