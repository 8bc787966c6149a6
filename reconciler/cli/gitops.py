"""`reconciler gitops`: the second loop."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from reconciler.cli import verbosity
from reconciler.cli.output import Output, OutputOption, print_data, print_table, wanted
from reconciler.cli.told import tell

EXAMPLE = "reconciler gitops --once --repository https://example.com/team/fleets.git --branch main"


def command(
    repository: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar="RECONCILER_GIT_REPOSITORY",
            help="Config repository; credentials come from RECONCILER_GIT_TOKEN,"
            " RECONCILER_GIT_TOKEN_FILE or ssh, never from the address.",
        ),
    ],
    *,
    branch: Annotated[
        str, typer.Option(envvar="RECONCILER_GIT_BRANCH", help="Branch to follow.")
    ] = "main",
    config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="Sector config in the repository; repeatable; * matches one directory."
            " Default: sectors.yaml.",
        ),
    ] = None,
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Folder to render into, beside each config.")
    ] = "terraform",
    once: Annotated[
        bool, typer.Option("--once", help="Handle the newest commit once and exit.")
    ] = False,
    interval: Annotated[
        float, typer.Option(min=1.0, help="Seconds between polls of the remote.")
    ] = 30.0,
    mode: Annotated[
        Literal["push", "pull-request"],
        typer.Option(help="Commit to the branch itself, or to a branch for review."),
    ] = "push",
    clone: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Directory in which the local clone is kept between runs."
        ),
    ] = None,
    cluster_name: Annotated[
        str | None,
        typer.Option(help="EKS cluster; with several configs for those that name none."),
    ] = None,
    forge: Annotated[
        Literal["auto", "github", "gitlab", "none"],
        typer.Option(
            envvar="RECONCILER_FORGE",
            help="Forge for commit statuses and pull requests; auto: by the repository's host."
            " The token comes from RECONCILER_FORGE_TOKEN or RECONCILER_FORGE_TOKEN_FILE,"
            " else it is the one for git.",
        ),
    ] = "auto",
    forge_api: Annotated[
        str,
        typer.Option(
            metavar="URL", envvar="RECONCILER_FORGE_API", help="Address of the forge's REST API."
        ),
    ] = "",
    supervised_by: Annotated[int | None, typer.Option(hidden=True)] = None,
    supervised_for: Annotated[str, typer.Option(hidden=True)] = "",
    output: OutputOption = None,
) -> None:
    """Watch the config repository; validate, render, commit and push what changed.

    Nothing is committed when nothing changed; an invalid config is reported and never rendered.
    With --once: exit code 0, 2 with an invalid or missing config, 1 when the push failed.
    """
    from reconciler.bootstrap.gitops import (  # noqa: PLC0415 - heavy
        GitopsOptions,
        git_repository,
        gitops_loop,
        watch_until_stopped,
    )
    from reconciler.gitops.status import GitopsReport, report_json  # noqa: PLC0415 - heavy

    options = GitopsOptions(
        repository=repository,
        branch=branch,
        configs=tuple(config or ["sectors.yaml"]),
        output=out,
        clone=clone,
        mode=mode,
        poll_seconds=interval,
        cluster_name=cluster_name,
        forge=forge,
        forge_api=forge_api,
    )
    if supervised_by is not None:
        # How `run --gitops` starts it: the two talk over standard input and output.
        from reconciler.bootstrap.second_loop_child import (  # noqa: PLC0415 - heavy
            run_supervised,
        )

        run_supervised(options, supervised_for, supervised_by, verbosity.current())
        return
    if not once:
        if code := watch_until_stopped(options, verbosity.current()):
            raise typer.Exit(code)
        return
    with git_repository(options) as remote:
        report: GitopsReport = gitops_loop(options, remote).once()
    if (form := wanted(output)) is not Output.TABLE:
        print_data(report_json(report), form)
    else:
        rows = [(s.target.config_path, s.state, (s.commit or "")[:12]) for s in report.clusters]
        print_table(("config", "state", "commit"), rows)
    _print_faults(report_json(report)["clusters"])
    if not report.clusters:
        wanted_paths = ", ".join(options.configs)
        tell("warning", f"no sector config there is called {wanted_paths}")
    for reason in report.unshown:
        tell("warning", reason)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def _print_faults(clusters: list[dict[str, object]]) -> None:
    """What is wrong with each config, on stderr, in the form of all errors."""
    for cluster in clusters:
        faults = cluster["faults"]
        if isinstance(faults, list) and faults:
            for fault in faults:
                place = f"{cluster['config']}:{fault['line']}:{fault['column']}"
                tell("error", place, fault["code"], fault["message"])
        elif cluster["state"] in {"invalid", "missing", "held"}:
            tell("error", cluster["config"], cluster["detail"])
