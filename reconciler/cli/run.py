"""`reconciler run`: the capacity loop."""

from typing import Annotated, Any, Final

import typer

from reconciler.cli.options import gitops as second_loop
from reconciler.cli.options import verbosity
from reconciler.cli.options.config_argument import ConfigArgument, config_or_variable
from reconciler.cli.options.planning import CatalogueOption, ContextOption, PodNamespaceOption
from reconciler.model.errors import UsageError

EXAMPLE = "reconciler run --config sectors.yaml --kubeconfig ~/.kube/config --dry-run -v"

FLAGS: Final = (
    "cluster_name",
    "regions",
    "kubeconfig",
    "context",
    "catalogue",
    "pod_namespace",
    "idle_threshold",
    "type_idle_threshold",
    "instance_init_time",
    "sleep",
    "slack_hook",
    "listen",
    "listen_token_file",
    "dry_run",
    "lease_namespace",
)
"""Options that are also keys of the config."""
OF_THE_SECOND_LOOP: Final = (
    "repository",
    "branch",
    "gitops_config",
    "out",
    "interval",
    "mode",
    "clone",
    "forge",
    "forge_api",
)
"""Options that nothing reads without --gitops."""

ConfigOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        envvar="RECONCILER_CONFIG",
        help="Sector config, reloaded on change. Default: sectors.yaml. With --gitops it is"
        " optional, and used only until the repository's config has been read.",
        show_default=False,
    ),
]
ClusterOption = Annotated[str | None, typer.Option(help="EKS cluster; overrides the config's.")]
RegionsOption = Annotated[
    str | None, typer.Option(help="Regions, comma separated, the preferred one first.")
]
KubeconfigOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Kubeconfig. Default: in-cluster, else kubectl's."),
]
IdleOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Time after which an empty node is removed.")
]
TypeIdleOption = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Time for which spares of each instance type are kept."),
]
InitOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Time allowed from launch to Ready before an instance counts as stuck."
    ),
]
SleepOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Longest pause between cycles.")
]
SlackOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Slack webhook. RECONCILER_SLACK_HOOK is safer, as others can see arguments.",
    ),
]
ListenOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Address of health checks, metrics and status page."),
]
ListenTokenOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="File with the bearer token that clients of --listen must send."
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Log what would be done; change nothing.")
]
LeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--leader-elect/--no-leader-elect",
        help="Act only while this replica holds the Lease fleet-reconciler (the default).",
        show_default=False,
    ),
]
LeaseNamespaceOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Namespace of the Lease; default: the pod's namespace, else fleet-reconciler.",
    ),
]
OnceOption = Annotated[bool, typer.Option("--once", help="Run one cycle and exit.")]


def command(
    ctx: typer.Context,
    config_file: ConfigArgument = None,
    *,
    config: ConfigOption = None,
    cluster_name: ClusterOption = None,  # noqa: ARG001 - read by its name, as all of FLAGS
    regions: RegionsOption = None,  # noqa: ARG001 - as above
    kubeconfig: KubeconfigOption = None,  # noqa: ARG001 - as above
    context: ContextOption = None,  # noqa: ARG001 - as above
    catalogue: CatalogueOption = None,  # noqa: ARG001 - as above
    pod_namespace: PodNamespaceOption = None,  # noqa: ARG001 - as above
    idle_threshold: IdleOption = None,  # noqa: ARG001 - as above
    type_idle_threshold: TypeIdleOption = None,  # noqa: ARG001 - as above
    instance_init_time: InitOption = None,  # noqa: ARG001 - as above
    sleep: SleepOption = None,  # noqa: ARG001 - as above
    slack_hook: SlackOption = None,  # noqa: ARG001 - as above
    listen: ListenOption = None,  # noqa: ARG001 - as above
    listen_token_file: ListenTokenOption = None,  # noqa: ARG001 - as above
    dry_run: DryRunOption = False,  # noqa: ARG001 - as above
    leader_elect: LeaderOption = None,
    lease_namespace: LeaseNamespaceOption = None,  # noqa: ARG001 - as above
    once: OnceOption = False,
    gitops: second_loop.SecondLoopOption = False,
    repository: second_loop.SecondLoopRepositoryOption = None,  # noqa: ARG001 - read by `_gitops`
    branch: second_loop.SecondLoopBranchOption = second_loop.BRANCH,  # noqa: ARG001 - as above
    gitops_config: second_loop.SecondLoopConfigsOption = None,  # noqa: ARG001 - as above
    out: second_loop.SecondLoopOutOption = second_loop.OUT,  # noqa: ARG001 - as above
    interval: second_loop.SecondLoopIntervalOption = second_loop.INTERVAL_SECONDS,  # noqa: ARG001
    mode: second_loop.SecondLoopModeOption = "push",  # noqa: ARG001 - as above
    clone: second_loop.SecondLoopCloneOption = None,  # noqa: ARG001 - as above
    forge: second_loop.SecondLoopForgeOption = "auto",  # noqa: ARG001 - as above
    forge_api: second_loop.SecondLoopForgeApiOption = "",  # noqa: ARG001 - as above
) -> None:
    """Keep the fleets as large as the pods need, until SIGTERM or Ctrl-C.

    Flags override RECONCILER_… variables, and these override the file. AWS credentials come from
    boto3's default chain. With an invalid config it exits with code 2 before anything is changed.
    """
    from reconciler.bootstrap.capacity_loop.run import RunOptions, run_capacity_loop  # noqa: PLC0415 - heavy

    if not gitops:
        second_loop.refuse_unread(ctx, OF_THE_SECOND_LOOP, "--gitops")
    given: dict[str, Any] = ctx.params
    flags = {name.replace("_", "-"): given[name] for name in FLAGS}
    # False would count as not given.
    elect = {} if leader_elect is None else {"leader-elect": str(leader_elect).lower()}
    options = RunOptions(
        config=config_or_variable(ctx, config, config_file),
        flags={**flags, **elect, "verbosity": verbosity.current()},
        once=once,
        gitops=_gitops(given) if gitops else None,
    )
    code = run_capacity_loop(options)
    if code:
        raise typer.Exit(code)


def _gitops(given: dict[str, Any]) -> Any:
    """Return the second loop's options; UsageError when they do not go together."""
    if given["once"] or not given["repository"]:
        what = "cannot be combined with --once" if given["once"] else "needs --repository"
        raise UsageError("--gitops", what, "see reconciler gitops --help")
    return second_loop.gitops_options(given, given["gitops_config"])
