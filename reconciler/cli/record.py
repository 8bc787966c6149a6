"""`reconciler record`: what a cluster was asked to run, as a file for `simulate`."""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.options.planning import ContextOption
from reconciler.cli.terminal.output import Output, OutputOption, print_data, print_line, wanted
from reconciler.model.errors import UsageError
from reconciler.model.text import escape_surrogates

if TYPE_CHECKING:
    from reconciler.bootstrap.simulation.recording import RecordingSummary
    from reconciler.cli.views.simulate import Progress
    from reconciler.records.demand import Anonymiser

EXAMPLE = """
reconciler record --for 1h --out demand.jsonl.gz
reconciler record --prometheus http://prometheus:9090 --days 14 --out demand.jsonl.zst
reconciler record --recording /var/lib/fleet-reconciler/demand --anonymise --out demand.jsonl.gz
"""


def command(
    *,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="File of JSON lines; compressed if it ends in .gz or .zst."
        ),
    ],
    prometheus: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Prometheus server that keeps kube-state-metrics."
            " Token: RECONCILER_PROMETHEUS_TOKEN, or the file in RECONCILER_PROMETHEUS_TOKEN_FILE.",
        ),
    ] = None,
    recording: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|s3://…", help="Where the capacity loop records to (recording.path)."
        ),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=3660,
            help="How many days to read; default: 7 with --prometheus, else all.",
        ),
    ] = None,
    end: Annotated[
        str | None, typer.Option(metavar="TIME", help="End of these days, RFC 3339; default: now.")
    ] = None,
    match: Annotated[
        str,
        typer.Option(
            metavar="MATCHERS", help="Label matchers for every series, such as 'cluster=\"prod\"'."
        ),
    ] = "",
    ca_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with Prometheus' certificate authority."),
    ] = None,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="How long to watch; default: until Ctrl-C."),
    ] = None,
    kubeconfig: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Kubeconfig. Default: in-cluster, else kubectl's."),
    ] = None,
    context: ContextOption = None,
    anonymise: Annotated[
        bool,
        typer.Option(
            "--anonymise", help="Hash names of pods, controllers, namespaces, and pods' labels."
        ),
    ] = False,
    output: OutputOption = None,
) -> None:
    """Record the demand of a cluster: watched live, from Prometheus, or from its recording.

    Without --prometheus and --recording the kubeconfig's cluster is watched from now on; pods that
    run already are recorded too. Nothing is changed. `simulate --demand` reads FILE.
    """
    from reconciler.cli.views.simulate import Progress  # noqa: PLC0415 - rich: slow
    from reconciler.records.demand import Anonymiser  # noqa: PLC0415 - slow to load

    live = {"--for": for_, "--kubeconfig": kubeconfig, "--context": context}
    asked = {"--end": end, "--match": match, "--ca-file": ca_file}
    _belong_together(prometheus, recording, days, live, asked)
    if not out.name or out.is_dir():
        what = f"{str(out)!r} is not a valid name of a file"
        raise UsageError("--out", what, "name a file to write to")
    names = Anonymiser() if anonymise else None
    with Progress(sys.stderr) as progress:
        if prometheus is not None:
            recording_summary = _from_prometheus(
                prometheus, (days or 7.0, end), (match, ca_file), out, names, progress
            )
        else:
            recording_summary = _from_cluster_or_files(
                recording, days, (for_, kubeconfig, context), out, names, progress
            )
    if (form := wanted(output)) is not Output.TABLE:
        print_data(
            {
                "file": escape_surrogates(str(out)),
                "pods": recording_summary.pods,
                "lines": recording_summary.lines,
                "begin": recording_summary.begin and recording_summary.begin.isoformat(),
                "end": recording_summary.end and recording_summary.end.isoformat(),
            },
            form,
        )
        return
    print_line(f"{out}: {recording_summary.pods:,} pods in {recording_summary.lines:,} lines")


def _belong_together(
    prometheus: str | None,
    recording: str | None,
    days: float | None,
    live: Mapping[str, object],
    asked: Mapping[str, object],
) -> None:
    """Raise UsageError for options of a source other than the chosen one."""
    if prometheus is not None and recording is not None:
        raise UsageError("--prometheus and --recording", "cannot be combined", "give one of them")
    stored = prometheus is not None or recording is not None
    for option, value in live.items():
        if value is not None and stored:
            raise UsageError(option, "is only for watching a live cluster")
    for option, stated in asked.items():
        if stated and prometheus is None:
            raise UsageError(option, "needs --prometheus")
    if days is not None and not stored:
        raise UsageError(
            "--days", "a live cluster has no recorded past", "watch it with --for DURATION"
        )


def _from_prometheus(
    url: str,
    when: tuple[float, str | None],
    narrowed: tuple[str, Path | None],
    out: Path,
    names: "Anonymiser | None",
    progress: "Progress",
) -> "RecordingSummary":
    from reconciler.bootstrap.simulation import recording  # noqa: PLC0415 - slow to load
    from reconciler.model.text import parse_rfc3339  # noqa: PLC0415 - with the rest
    from reconciler.records.times import YEARS  # noqa: PLC0415 - as above

    days, end = when
    moment = datetime.now(UTC) if end is None else parse_rfc3339(end)  # noqa: TID251 - a person's
    if moment is None:
        raise UsageError("--end", f"{end!r} is not a valid RFC 3339 time")
    if moment.year not in YEARS:
        what = f"its year is {moment.year}, not from {YEARS[0]} to {YEARS[-1]}"
        raise UsageError("--end", what)
    match, ca_file = narrowed
    request = recording.PrometheusRequest(
        url=url, days=days, end=moment, match=match, ca_file=ca_file
    )
    return recording.record_prometheus(request, out, names, progress.show, progress.tell)


def _from_cluster_or_files(
    directory: str | None,
    days: float | None,
    live: tuple[str | None, str | None, str | None],
    out: Path,
    names: "Anonymiser | None",
    progress: "Progress",
) -> "RecordingSummary":
    from reconciler.bootstrap.simulation import recording  # noqa: PLC0415 - slow to load

    if directory is not None:
        return recording.record_files(directory, days, out, names)
    for_, kubeconfig, context = live
    request = recording.LiveRequest(
        kubeconfig=kubeconfig,
        context=context,
        for_seconds=None if for_ is None else _seconds(for_),
    )
    return recording.record_live(request, out, names, progress.show, progress.tell)


def _seconds(text: str) -> float:
    from reconciler.config.scalars import duration_seconds  # noqa: PLC0415 - slow to load

    try:
        return duration_seconds(text)
    except ValueError:
        raise UsageError("--for", f"{text!r} is not a duration such as 90s, 30m or 1h") from None
