"""`reconciler simulate`: what a config would have cost on a demand, and which pods would wait."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reconciler.cli.options import planning as options
from reconciler.cli.options.config_argument import ConfigArgument, config_of
from reconciler.cli.terminal.output import Output, OutputOption, print_data, wanted
from reconciler.cli.terminal.progress_line import working
from reconciler.config.loader import DEFAULT_FILE
from reconciler.model.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.bootstrap.simulation.simulating import SimulateRequest
    from reconciler.cli.views.simulate import Json, Progress
    from reconciler.simulation.simulation import Options

EXAMPLE = """
reconciler simulate --config sectors.yaml --demand demand.jsonl.zst --days 7 --out report
reconciler simulate --config sectors.yaml --config-b other.yaml --demand trace.csv --out report
reconciler simulate --demand trace.csv --peer karpenter,consolidate-after=30s --out report
reconciler simulate --demand trace.csv --sweep scale_in.idle_threshold=10m,2m --out report
"""


def command(
    config_file: ConfigArgument = None,
    *,
    config: options.ConfigOption = DEFAULT_FILE,
    demand: Annotated[
        str,
        typer.Option(metavar="FILE", help="Demand as JSON lines, a CSV trace, or a mix (YAML)."),
    ],
    out: Annotated[str, typer.Option(metavar="DIR", help="Directory for the report.")],
    config_b: Annotated[
        str | None, typer.Option(metavar="FILE", help="A second config to compare with.")
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(
            min=0.001, max=3660, help="Length of the simulation in days; default: the demand's."
        ),
    ] = None,
    trace_selector: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL=VALUE", help="Node selector of a CSV trace's pods."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.")] = 1,
    interruptions_per_hour: Annotated[
        float,
        typer.Option(
            metavar="RATE", min=0, max=60, help="Interruptions per hour of each spot instance."
        ),
    ] = 0.0005,
    capacity_errors_per_day: Annotated[
        float,
        typer.Option(
            metavar="RATE", min=0, max=1000, help="Capacity errors per day of each spot pool."
        ),
    ] = 0.1,
    launch_seconds: Annotated[
        float, typer.Option(min=0, max=3600, help="Median seconds from request to running.")
    ] = 15.0,
    join_seconds: Annotated[
        float, typer.Option(min=0, max=3600, help="Median seconds from running to Ready.")
    ] = 35.0,
    sleep_seconds: Annotated[
        float, typer.Option(min=1, max=3600, help="Longest pause between plans, in seconds.")
    ] = 60.0,
    calm_seconds: Annotated[
        float,
        typer.Option(
            min=0, max=600, help="Seconds for which changes are gathered after a pod ended."
        ),
    ] = 15.0,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[,SETTING=VALUE]",
            help="A model to compare with: cluster-autoscaler or karpenter; repeatable.",
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=V1,V2",
            help="Run every combination of the values of these keys; repeatable.",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Dask cluster that runs the sweep; default: this machine."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=1024, help="Processes of the sweep; 0 to run it in this one."
        ),
    ] = None,
    speed_report: Annotated[
        bool, typer.Option("--speed-report", help="Print on stderr how fast the simulation was.")
    ] = False,
    cluster_name: options.ClusterNameOption = None,
    regions: options.RegionsOption = None,
    catalogue: options.CatalogueOption = None,
    output: OutputOption = None,
) -> None:
    """Simulate a config on a demand in virtual time, with the real loop, planner and executor.

    Nothing real is changed. Writes report.json, report.html and snapshots of the worst moments
    into DIR, and prints the figures. The same input gives the same bytes.
    """
    from reconciler.bootstrap.simulation import simulating  # noqa: PLC0415 - numpy: slow
    from reconciler.cli.views.simulate import Progress, print_figures  # noqa: PLC0415 - rich: slow

    config = config_of(config, config_file)
    if config == config_b == "-":
        raise UsageError("--config-b", "standard input can be read once", "give one of them a file")
    request = simulating.SimulateRequest(
        config=config,
        demand=demand,
        flags={"cluster-name": cluster_name, "regions": regions, "catalogue": catalogue},
        other_config=config_b,
        selector=_selector(trace_selector or [], is_trace=simulating.is_trace(demand)),
        peers=tuple(peer or ()),
        out=out,
        options=_options(
            {"days": days, "sleep_seconds": sleep_seconds, "calm_seconds": calm_seconds},
            {
                "seed": seed,
                "interruptions_per_hour": interruptions_per_hour,
                "capacity_errors_per_day": capacity_errors_per_day,
                "launch_median_seconds": launch_seconds,
                "join_median_seconds": join_seconds,
            },
        ),
    )
    with Progress(sys.stderr) as progress:
        if sweep:
            found, files = _sweep(request, sweep, dask, workers, progress)
        elif dask is not None or workers is not None:
            raise UsageError("--dask and --workers", "need --sweep", "give --sweep KEY=V1,V2")
        else:
            found, files = simulating.simulate(request, progress.show)
    simulating.write_report(out, files)
    if speed_report:
        progress.tell_speed(found)
    form = wanted(output)
    if form is Output.TABLE:
        print_figures(found, out)
    else:
        print_data(found, form)


def _sweep(
    request: "SimulateRequest",
    sweeps: list[str],
    dask: str | None,
    workers: int | None,
    progress: "Progress",
) -> tuple["Json", "Mapping[str, bytes]"]:
    from reconciler.bootstrap.simulation import sweeping  # noqa: PLC0415 - numpy: slow

    if request.other_config is not None:
        raise UsageError("--config-b", "cannot be combined with --sweep")
    if request.peers:
        raise UsageError("--peer", "cannot be combined with --sweep")
    asked = sweeping.SweepRequest(
        simulation=request, sweeps=tuple(sweeps), dask=dask, workers=workers
    )
    with working("simulating the points of the sweep"):
        return sweeping.sweep(asked, progress.point)


def _options(own: dict[str, Any], chances: dict[str, Any]) -> "Options":
    from reconciler.simulation.chances import Chances  # noqa: PLC0415 - with the rest
    from reconciler.simulation.simulation import Options  # noqa: PLC0415 - numpy: slow

    return Options(**own, chances=Chances(**chances))


def _selector(pairs: list[str], *, is_trace: bool) -> dict[str, str]:
    """Return a node selector from `label=value` words.

    Raises:
        UsageError: A word has no `=`, or the demand is no trace, and so has selectors of its own.
    """
    if pairs and not is_trace:
        raise UsageError("--trace-selector", "is only for CSV traces (*.csv, .csv.gz, .csv.zst)")
    found = {}
    for pair in pairs:
        key, mark, value = pair.partition("=")
        if not (key and mark):
            raise UsageError("--trace-selector", f"{pair!r} is not LABEL=VALUE")
        found[key] = value
    return found
