"""`reconciler import`: a sector config for fleets and groups that exist."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.options.config_argument import ConfigArgument, named_config
from reconciler.cli.options.folder import written_folder
from reconciler.cli.options.several import SeveralFiles
from reconciler.cli.terminal.output import Output, OutputOption, print_data, print_line, wanted
from reconciler.cli.terminal.progress_line import working
from reconciler.model.errors import UsageError
from reconciler.model.text import counted_noun

if TYPE_CHECKING:
    from reconciler.gitops.adoption.adopt import Adoption
    from reconciler.model.snapshot import Ignored

EXAMPLE = """reconciler import --cluster-name analytics --out fleets
reconciler import --config config.yaml --cluster-name analytics --aws fleets.json --out fleets
reconciler import --programs descheduler.yaml spot-rescheduler.yaml --out fleets"""
CLASS = SeveralFiles


def command(
    *,
    config_file: ConfigArgument = None,
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", parser=written_folder, help="Folder to write to."),
    ],
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
            help="A config to complete, such as Kluster Fleet Manager's; it overrides what is"
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
    programs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE...",
            help="Manifests that run k8s-spot-rescheduler or the descheduler, or a"
            " DeschedulerPolicy: only their part of a sector config is written.",
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Write a sector config for the EC2 Fleets and Auto Scaling groups that a cluster has.

    Also writes Terraform import blocks, so that the first plan of the rendered root creates
    nothing. Nothing in AWS is changed and no file is overwritten. With --programs the flags and the
    policy of k8s-spot-rescheduler and the descheduler become sections for a sector config.
    """
    config = named_config(config, config_file)
    if programs:
        others = {"--cluster-name": cluster_name, "--region": region, "--config": config}
        _import_programs(out, programs, output, {**others, "--aws": aws})
        return
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
    with working("reading fleets and groups"):
        made, ignored = adopt_existing(request)
    if (form := wanted(output)) is not Output.TABLE:
        print_data(_as_json(made, ignored), form)
        return
    for line in _lines(made, ignored, out):
        print_line(line)


def _as_json(made: "Adoption", ignored: Sequence["Ignored"]) -> dict[str, object]:
    """Return what was written, and what was not, as data."""
    return {
        "fleets": list(made.fleets),
        "left_out": dict(made.left_out),
        "notes": list(made.notes),
        "unreadable": [
            {"kind": each.kind, "name": each.name, "detail": each.detail} for each in ignored
        ],
    }


def _lines(made: "Adoption", ignored: Sequence["Ignored"], out: Path) -> Iterator[str]:
    """Yield the same in words, a line each."""
    yield f"{out / 'sectors.yaml'}: {counted_noun(len(made.fleets), 'fleet')}"
    for each_id, reason in made.left_out.items():
        yield f"left out {each_id}: {reason}"
    for each in ignored:
        named = f"unreadable: {each.kind} {each.name}".rstrip()
        yield named + (f": {each.detail}" if each.detail else "")
    for note in made.notes:
        yield f"look at {note}"


def _import_programs(
    out: Path, programs: list[str], output: Output | None, others: Mapping[str, object]
) -> None:
    """Write the sections for other programs; AWS is not asked."""
    from reconciler.bootstrap.adopted_programs import (  # noqa: PLC0415 - heavy
        CONFIG,
        adopt_program_files,
    )

    given = [name for name, value in others.items() if value]
    if given:
        raise UsageError(
            given[0], "cannot be combined with --programs", "import fleets by themselves"
        )
    made = adopt_program_files(out, programs)
    if (form := wanted(output)) is not Output.TABLE:
        print_data({"found": list(made.found), "notes": list(made.notes)}, form)
        return
    lines = [f"{out / CONFIG}: sections for the sector config"]
    lines += [f"found {each}" for each in made.found]
    lines += [f"look at {note}" for note in made.notes]
    for line in lines:
        print_line(line)
