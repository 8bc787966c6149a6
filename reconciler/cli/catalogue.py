"""`reconciler catalogue`: the instance types and prices that planning uses."""

from dataclasses import asdict
from decimal import Decimal
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import typer

from reconciler.cli.terminal.output import (
    Output,
    OutputOption,
    print_data,
    print_line,
    print_table,
    wanted,
)
from reconciler.cli.terminal.progress_line import working
from reconciler.model.errors import UsageError

EXAMPLES = {
    "show": "reconciler catalogue show 'r5.*' m5.xlarge",
    "refresh": (
        "reconciler catalogue refresh --region us-west-2 --out catalogue.json\n"
        "reconciler plan --catalogue catalogue.json --cluster cluster.json"
    ),
}
EXAMPLE = "\n".join([EXAMPLES["refresh"], EXAMPLES["show"]])

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Show instance types and their prices, or refresh them from EC2.",
)
FileOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        envvar="RECONCILER_CATALOGUE",
        help="A catalogue that was refreshed; default: the one in the package.",
    ),
]


@app.command()
def show(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="TYPE", help="Instance types or patterns; default: all."),
    ] = None,
    *,
    catalogue: FileOption = None,
    output: OutputOption = None,
) -> None:
    """Print instance types with their figures, the date and the source of the prices."""
    from reconciler.bootstrap.catalogue import shown_catalogue  # noqa: PLC0415 - boto3 is slow

    known = shown_catalogue(catalogue)
    chosen = [t for n, t in sorted(known.items()) if _asked(n, names)]
    unknown = [name for name in names or () if not any(_asked(n, [name]) for n in known)]
    if unknown:
        near = get_close_matches(unknown[0], known, n=1)
        hint = f"did you mean {near[0]}?" if near else "give a name or a pattern such as 'm5.*'"
        raise UsageError("catalogue show", f"no type is called {', '.join(unknown)}", hint)
    rows = [
        {
            "type": t.name,
            "arch": t.arch,
            "vcpu": t.cpu_milli // 1000,
            "memory_mib": t.memory_bytes // 2**20,
            "gpus": t.gpus,
            "pods_max": t.pods_max,
            "on_demand_usd_per_hour": _text(t.on_demand_usd_per_hour),
            "spot_usd_per_hour": _text(t.spot_usd_per_hour),
        }
        for t in chosen
    ]
    if (form := wanted(output)) is not Output.TABLE:
        head: dict[str, Any] = {"region": known.region, "as_of": known.as_of}
        print_data({**head, "sources": list(known.sources), "types": rows}, form)
        return
    print_table(list(rows[0]) if rows else ["type"], [[*row.values()] for row in rows])
    print_line("")
    print_line(f"Prices of {known.region} as of {known.as_of}.")
    for source in known.sources:
        print_line(f"Source: {source}")


def _asked(name: str, patterns: list[str] | None) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _text(price: Decimal | None) -> str | None:
    return None if price is None else f"{price:f}"


@app.command()
def refresh(
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="File to write; on errors it is left as it was.")
    ],
    *,
    region: Annotated[
        str | None,
        typer.Option(help="Region of the types and prices; default: that of the AWS settings."),
    ] = None,
    catalogue: FileOption = None,
    output: OutputOption = None,
) -> None:
    """Ask EC2 for instance types, on-demand prices and the latest spot prices of a region.

    Rights: ec2:DescribeInstanceTypes, ec2:DescribeSpotPriceHistory, pricing:GetProducts. Values
    that EC2 does not return are kept from the previous catalogue.
    """
    from reconciler.bootstrap.catalogue import refresh_catalogue  # noqa: PLC0415 - boto3 is slow

    with working("asking EC2 for types and prices"):
        done = refresh_catalogue(out, region=region, base=catalogue)
    if (form := wanted(output)) is not Output.TABLE:
        print_data(asdict(done), form)
        return
    print_line(
        f"{done.file}: {done.types} types of {done.region}, {done.as_of}; from EC2 "
        f"{done.priced_on_demand} on-demand and {done.priced_spot} spot prices."
    )
    if done.unreadable:
        print_line(f"{done.unreadable} entries of EC2's answers could not be read.")
