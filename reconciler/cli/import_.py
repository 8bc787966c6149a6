"""`reconciler import`: a sector config for fleets and groups that exist."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.output import Output, OutputOption, print_data, wanted
from reconciler.cli.several import SeveralFiles

EXAMPLE = """reconciler import --cluster-name analytics --out fleets
reconciler import --config config.yaml --cluster-name analytics --aws fleets.json --out fleets"""
CLASS = SeveralFiles


def command(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for sectors.yaml and terraform/imports.tf.")
    ],
    *,
    cluster_name: Annotated[
        str | None, typer.Option(help="EKS cluster; default: the one that --config names.")
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="Region to look in; default: that of the AWS settings.")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A config to complete, such as Kluster Fleet Manager's; it wins over what is"
            " found.",
        ),
    ] = None,
    aws: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE...",
            help="Answers of the AWS CLI (describe-fleets, describe-launch-template-versions,"
            " describe-subnets, describe-auto-scaling-groups) instead of asking AWS.",
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Write a sector config for the EC2 Fleets and Auto Scaling groups that a cluster has.

    Beside it come Terraform import blocks, so that the first plan of the rendered root creates
    nothing. Nothing in AWS is changed and no file overwritten.
    """
    from reconciler.bootstrap.adoption import (  # noqa: PLC0415 - heavy
        AdoptionRequest,
        adopt_existing,
    )

    request = AdoptionRequest(
        out=out,
        cluster_name=cluster_name,
        region=region,
        aws_files=tuple(aws or ()),
        config=config,
    )
    made, ignored = adopt_existing(request)
    if (form := wanted(output)) is not Output.TABLE:
        print_data(
            {
                "fleets": list(made.fleets),
                "left_out": dict(made.left_out),
                "notes": list(made.notes),
                "unreadable": [{"kind": each.kind, "name": each.name} for each in ignored],
            },
            form,
        )
        return
    lines = [f"{out / 'sectors.yaml'}: {len(made.fleets)} fleets"]
    lines += [f"left out {each_id}: {reason}" for each_id, reason in made.left_out.items()]
    lines += [f"unreadable: {each.kind} {each.name}".rstrip() for each in ignored]
    lines += [f"look at {note}" for note in made.notes]
    sys.stdout.write("\n".join(lines) + "\n")
