"""`reconciler gitops`: the second loop."""

from typing import Annotated

import typer

from reconciler.cli.options import gitops as options
from reconciler.cli.options import verbosity
from reconciler.cli.options.config_argument import PathsArgument, named_config
from reconciler.cli.terminal.messages import tell
from reconciler.cli.terminal.output import Output, OutputOption, print_data, print_table, wanted

EXAMPLE = "reconciler gitops --once --repository https://example.com/team/fleets.git --branch main"


def command(
    ctx: typer.Context,
    *,
    config_files: PathsArgument = None,
    repository: options.RepositoryOption,  # noqa: ARG001 - read by `gitops_options`
    branch: options.BranchOption = options.BRANCH,  # noqa: ARG001 - as above
    config: options.ConfigsOption = None,
    out: options.OutOption = options.OUT,  # noqa: ARG001 - as above
    once: Annotated[
        bool, typer.Option("--once", help="Handle the newest commit once and exit.")
    ] = False,
    interval: options.IntervalOption = options.INTERVAL_SECONDS,  # noqa: ARG001 - as above
    mode: options.ModeOption = "push",  # noqa: ARG001 - as above
    clone: options.CloneOption = None,  # noqa: ARG001 - as above
    cluster_name: Annotated[  # noqa: ARG001 - as above
        str | None,
        typer.Option(help="EKS cluster of configs that name none."),
    ] = None,
    forge: options.ForgeOption = "auto",  # noqa: ARG001 - as above
    forge_api: options.ForgeApiOption = "",  # noqa: ARG001 - as above
    supervised_by: Annotated[int | None, typer.Option(hidden=True)] = None,
    supervised_for: Annotated[str, typer.Option(hidden=True)] = "",
    supervised_catalogue: Annotated[
        bool, typer.Option("--supervised-catalogue", hidden=True)
    ] = False,
    output: OutputOption = None,
) -> None:
    """Watch the config repository; validate, render, commit and push what changed.

    Nothing is committed if nothing changed; an invalid config is reported and never rendered. With
    --once the exit code is 0, 2 for an invalid or missing config, and 1 if the push failed.
    """
    from reconciler.bootstrap.second_loop.loop import (  # noqa: PLC0415 - heavy
        git_repository,
        gitops_loop,
        watch_until_stopped,
    )
    from reconciler.gitops.repository.status import GitopsReport, report_json  # noqa: PLC0415 - heavy

    chosen = options.gitops_options(ctx.params, named_config(config, config_files))
    if supervised_by is not None:
        # This is how `run --gitops` starts it; the two processes talk over standard input and
        # output.
        from reconciler.bootstrap.second_loop.child import (  # noqa: PLC0415 - heavy
            run_supervised,
        )

        run_supervised(
            chosen,
            supervised_for,
            supervised_by,
            verbosity.current(),
            own_catalogue=not supervised_catalogue,
        )
        return
    if not once:
        if code := watch_until_stopped(chosen, verbosity.current()):
            raise typer.Exit(code)
        return
    with git_repository(chosen) as remote:
        report: GitopsReport = gitops_loop(chosen, remote).once()
    if (form := wanted(output)) is not Output.TABLE:
        print_data(report_json(report), form)
    else:
        rows = [(s.target.config_path, s.state, (s.commit or "")[:12]) for s in report.clusters]
        print_table(("config", "state", "commit"), rows)
    _print_faults(report_json(report)["clusters"])
    for reason in (*report.overlooked, *report.unshown):
        tell("warning", reason)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def _print_faults(clusters: list[dict[str, object]]) -> None:
    """Print what is wrong with each config on stderr, in the form of all errors."""
    for cluster in clusters:
        faults = cluster["faults"]
        if isinstance(faults, list) and faults:
            for fault in faults:
                place = f"{cluster['config']}:{fault['line']}:{fault['column']}"
                tell("error", place, fault["code"], fault["message"])
        elif cluster["state"] in {"invalid", "missing", "held", "refused"}:
            config = str(cluster["config"])
            tell("error", config, str(cluster["detail"]).removeprefix(f"{config}: "))
