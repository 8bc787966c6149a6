"""`reconciler ci`: what pipelines call."""

from pathlib import Path
from typing import Annotated, Any

import typer

from reconciler.cli.ci_finish import finish
from reconciler.cli.ci_stage import apply_shown, plan_shown, show_nothing_to_apply
from reconciler.cli.options.ci import (
    BackendOption,
    ConfigOption,
    DetailedOption,
    DirOption,
    FilesOption,
    LockOption,
    TypesOption,
    UnusedLockOption,
    ci_stages,
)
from reconciler.cli.options.config_argument import PathArgument, PathsArgument, named_config
from reconciler.cli.options.folder import written_folder
from reconciler.cli.terminal.messages import tell
from reconciler.cli.terminal.output import (
    Output,
    OutputOption,
    print_data,
    print_line,
    print_table,
    print_text,
    wanted,
)
from reconciler.cli.terminal.progress_line import working
from reconciler.machine.private_folder import PrivateFolder
from reconciler.model.errors import InputError

EXAMPLE = "reconciler ci plan --dir terraform --out plan && reconciler ci apply --dir terraform --plan plan"  # noqa: E501 - one line to copy
EXAMPLES = {
    "plan": "reconciler ci plan --dir terraform --config sectors.yaml --out plan",
    "apply": "reconciler ci apply --dir terraform --config sectors.yaml --plan plan",
    "drift": "reconciler ci drift --dir terraform --config sectors.yaml --detailed-exitcode",
    "finish": "reconciler ci finish --dir terraform --config sectors.yaml",
    "unlock": "reconciler ci unlock --dir terraform 5e3a1f0c-8f0e-4d0a-9d3b-2b7c6a1e4f90",
    "comment": "reconciler ci comment --plan plan --name clusters/analytics/terraform",
    "roots": "reconciler ci roots --config 'clusters/*/sectors.yaml' --since origin/main",
}

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    help="Commands for pipelines: make a checked plan (plan), apply exactly that plan (apply),"
    " remove fleets whose approved removal is drained (finish), report drift (drift), release the"
    " lock of a dead run (unlock), show a plan on its pull request (comment), and list the root"
    " modules of a checkout (roots).",
)


@app.command("plan")
def plan(
    *,
    config_file: PathArgument = None,
    directory: DirOption,
    out: Annotated[
        Path,
        typer.Option(
            metavar="PLAN",
            parser=written_folder,
            help="Folder for the plan, its report and summary.",
        ),
    ],
    config: ConfigOption = None,
    backend_config: BackendOption = None,
    allow_type: TypesOption = None,
    allow_file: FilesOption = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Kubernetes objects, as `kubectl get -o json` prints them (see plan), to show what"
            " the plan means for running pods; - is stdin; repeatable.",
        ),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|DIR|s3://…",
            help="Recorded demand (see `reconciler record`), to show its cost, and which pods would"
            " have waited, with the config before and with this one.",
        ),
    ] = None,
    replay_base: Annotated[
        str, typer.Option(metavar="COMMIT", help="Commit whose config is the one before.")
    ] = "HEAD^1",
    lock_timeout: LockOption = 60,
    detailed_exitcode: DetailedOption = False,
    output: OutputOption = None,
) -> None:
    """Plan, check the plan, and save it with a Markdown summary (PLAN/summary.md).

    Exit code 1 when the guard refuses the plan; such a plan is not kept.
    """
    from reconciler.gitops.terraform_plan.report import report_json  # noqa: PLC0415 - heavy
    from reconciler.gitops.terraform_plan.summary import summary  # noqa: PLC0415 - heavy

    with plan_shown(directory) as outcome:
        stages = ci_stages(
            directory,
            out,
            backend_config,
            lock_timeout,
            config=named_config(config, config_file),
            allow_types=allow_type,
            allow_files=tuple(allow_file or ()),
            cluster_files=tuple(cluster or ()),
            replay=replay or "",
            replay_base=replay_base,
        )
        with working("planning with Terraform"):
            report = stages.plan()
        outcome.failed = not report.allowed
    if report.nothing_to_apply:
        show_nothing_to_apply(directory)
    if (form := wanted(output)) is not Output.TABLE:
        print_data(report_json(report), form)
    else:
        print_text(summary(report))
    for finding in report.findings:
        if finding.severity == "refused":
            tell("error", finding.where, finding.code, finding.message)
    if not report.allowed:
        raise typer.Exit(1)
    if detailed_exitcode and report.changes:
        raise typer.Exit(2)


@app.command("apply")
def apply(
    *,
    config_file: PathArgument = None,
    directory: DirOption,
    kept: Annotated[
        Path, typer.Option("--plan", metavar="PLAN", help="Folder that `ci plan` wrote.")
    ],
    digest: Annotated[
        str, typer.Option(help="Digest that was approved; default: the one in PLAN.")
    ] = "",
    allow_newer_commit: Annotated[
        bool,
        typer.Option(
            "--allow-newer-commit",
            help="Apply also if the checkout is at a newer commit that changed neither DIR nor the"
            " config, as with many clusters in one repository.",
        ),
    ] = False,
    config: ConfigOption = None,
    backend_config: BackendOption = None,
    allow_type: TypesOption = None,
    allow_file: FilesOption = None,
    lock_timeout: LockOption = 60,
    output: OutputOption = None,
) -> None:
    """Apply exactly the plan that `ci plan` saved, or nothing.

    Refused if commit, files or state changed since the plan. If only live capacity changed, the
    plan is made again first, and applied if it still does the same. An approved removal of a fleet
    that is not drained yet is left out: everything else is applied, and the exit code is 1.
    """
    with apply_shown(directory, kept) as outcome:
        stages = ci_stages(
            directory,
            kept,
            backend_config,
            lock_timeout,
            config=named_config(config, config_file),
            allow_types=allow_type,
            allow_files=tuple(allow_file or ()),
            allow_newer_commit=allow_newer_commit,
        )
        with working("applying with Terraform"):
            applied = stages.apply(digest=digest, accepted=outcome.accepted)
        outcome.failed = bool(applied.waiting)
        outcome.detail = "everything but removals that wait for a drain: see the job"
    if (form := wanted(output)) is not Output.TABLE:
        print_data(
            {
                "message": applied.message,
                "replans": applied.replans,
                "waiting": list(applied.waiting),
            },
            form,
        )
    else:
        print_text(applied.message + "\n")
    for waiting in applied.waiting:
        hint = "everything else was applied; plan again then"
        tell("error", waiting, "the capacity loop drains it first", hint=hint)
    if applied.waiting:
        raise typer.Exit(1)


app.command("finish")(finish)


@app.command("drift")
def drift(
    *,
    config_file: PathArgument = None,
    directory: DirOption,
    config: ConfigOption = None,
    backend_config: BackendOption = None,
    allow_file: FilesOption = None,
    lock_timeout: UnusedLockOption = 60,
    detailed_exitcode: DetailedOption = False,
    output: OutputOption = None,
) -> None:
    """Report what differs between config, state and EC2; changes nothing, takes no lock.

    Capacity belongs to the capacity loop: only what is outside the config's limits is reported. An
    invalid config does not fail this command; dependent checks are skipped with a note.
    """
    from reconciler.gitops.drift.drift import drift_json  # noqa: PLC0415 - heavy

    with PrivateFolder("ci") as scratch:
        stages = ci_stages(
            directory,
            scratch,
            backend_config,
            lock_timeout,
            config=named_config(config, config_file),
            allow_files=tuple(allow_file or ()),
            needs_config=False,
        )
        with working("comparing with Terraform and EC2"):
            report = stages.drift()
    if (form := wanted(output)) is not Output.TABLE:
        print_data(drift_json(report), form)
    elif report.found:
        rows = [(d.kind, d.fleet or d.address, d.type, d.detail) for d in report.drifts]
        print_table(("kind", "fleet", "type", "detail"), rows)
    else:
        print_line("no drift")
    for note in report.notes:
        tell("warning", note)
    if detailed_exitcode and report.found:
        raise typer.Exit(2)


@app.command("unlock")
def unlock(
    lock_id: Annotated[
        str, typer.Argument(metavar="ID", help="ID of the lock, as the refused run printed it.")
    ],
    *,
    directory: DirOption,
    backend_config: BackendOption = None,
    allow_file: FilesOption = None,
) -> None:
    """Release the state lock of a run that is dead.

    Make sure that it is dead: otherwise it would continue to write the state without a lock.
    """
    from reconciler.bootstrap.pipeline.stages import unlock as unlocked  # noqa: PLC0415 - heavy

    unlocked(directory, tuple(backend_config or ()), lock_id, tuple(allow_file or ()))
    print_line(f"lock {lock_id} is gone")


@app.command("comment")
def comment(
    kept: Annotated[
        Path, typer.Option("--plan", metavar="PLAN", help="Folder that `ci plan` wrote.")
    ],
    *,
    name: Annotated[
        str,
        typer.Option(help="Name of what was planned; each name has a comment of its own."),
    ] = "plan",
) -> None:
    """Show the summary of a plan on the pull request that this pipeline runs for.

    The comment of an earlier run is replaced; if PLAN has no summary, because the job failed before
    its plan, the comment says so and the exit code is 1. The token is in RECONCILER_FORGE_TOKEN, or
    in the file that RECONCILER_FORGE_TOKEN_FILE names. Outside of a pull request nothing is done.
    """
    from reconciler.bootstrap.forge import pipeline_request  # noqa: PLC0415 - heavy
    from reconciler.gitops.terraform_plan.directory import (  # noqa: PLC0415 - heavy
        NO_PLAN,
        PlanDirectory,
    )

    try:
        text = PlanDirectory(kept).summary()
    except InputError:
        if (request := pipeline_request()) is not None:
            request.forge.comment(request.number, name, NO_PLAN)
        raise
    request = pipeline_request()
    if request is None:
        print_line("no pull request: nothing to comment on")
        return
    request.forge.comment(request.number, name, text)
    print_line(f"shown on pull request {request.number}")


@app.command("roots")
def roots(
    *,
    config_files: PathsArgument = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="Sector config in the checkout; repeatable; * matches one directory."
            " Default: sectors.yaml.",
        ),
    ] = None,
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Folder rendered next to each config.")
    ] = "terraform",
    since: Annotated[
        str,
        typer.Option(
            metavar="COMMIT",
            help="List only roots that changed since this commit; all if it does not exist.",
        ),
    ] = "",
    rendered: Annotated[
        bool,
        typer.Option(
            "--rendered",
            help="List only rendered roots; the config of a new cluster is committed before its"
            " root.",
        ),
    ] = False,
    removing: Annotated[
        bool,
        typer.Option(
            "--removing",
            help="List only roots whose config has fleets in allow_destroy, for `ci finish`.",
        ),
    ] = False,
    output: OutputOption = None,
) -> None:
    """List the root modules of this checkout, to run a job for each.

    As JSON: {"roots": [{"cluster", "config", "dir", "name"}], "gone": [config]}; `name` is fit for
    an artifact, `cluster` for choosing a role; `gone` are configs that were removed and did not
    move.
    """
    from reconciler.bootstrap.pipeline.checkout_roots import roots_of_checkout  # noqa: PLC0415 - heavy

    configs = tuple(named_config(config, config_files) or ["sectors.yaml"])
    found = roots_of_checkout(configs, out, since, rendered=rendered, removing=removing)
    if (form := wanted(output)) is not Output.TABLE:
        print_data(
            {"gone": list(found.gone), "roots": [_root_json(root) for root in found.roots]}, form
        )
    else:
        rows = [(r.cluster, r.target.config_path, r.target.output_dir) for r in found.roots]
        print_table(("cluster", "config", "dir"), rows)
    for reason in found.overlooked:
        tell("warning", reason)
    for path, new in found.moved.items():
        tell(
            "warning",
            f"{path} moved to {new}: fleets and state stay as they are; remove what is left in the"
            " old folder, and let --gitops-config of the capacity loop find the new one",
        )
    for path in found.gone:
        tell(
            "warning",
            f"{path} was removed, and its fleets stay in EC2: bring it back, list them in"
            " allow_destroy, take them out of it, and remove it when they are gone",
        )


def _root_json(root: Any) -> dict[str, str]:
    from reconciler.gitops.repository.roots import root_name  # noqa: PLC0415 - heavy

    return {
        "cluster": root.cluster,
        "config": root.target.config_path,
        "dir": root.target.output_dir,
        "name": root_name(root.target.output_dir),
    }
