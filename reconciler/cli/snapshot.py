"""`reconciler snapshot`: what a live cycle would see, as files."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.options.config_argument import ConfigArgument, config_or_variable
from reconciler.cli.options.planning import ContextOption
from reconciler.cli.terminal.output import Output, OutputOption, print_data, print_line, wanted
from reconciler.cli.terminal.progress_line import working
from reconciler.config.loader import DEFAULT_FILE

EXAMPLE = (
    "reconciler snapshot --config sectors.yaml --out today; "
    "reconciler plan --config sectors.yaml --cluster today/cluster.json --aws today/aws-*.json"
)


def command(
    ctx: typer.Context,
    config_file: ConfigArgument = None,
    *,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the files; created if needed.")
    ],
    config: Annotated[
        str,
        typer.Option(metavar="FILE", envvar="RECONCILER_CONFIG", help="Sector config; - is stdin."),
    ] = DEFAULT_FILE,
    cluster_name: Annotated[
        str | None, typer.Option(help="EKS cluster; overrides the config's.")
    ] = None,
    regions: Annotated[
        str | None, typer.Option(help="Regions, comma separated, the preferred one first.")
    ] = None,
    kubeconfig: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Kubeconfig. Default: in-cluster, else kubectl's."),
    ] = None,
    context: ContextOption = None,
    lease_namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="Namespace of the Lease.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Save what a planning cycle observes, for offline planning and bug reports.

    Left out: env values, commands, arguments, foreign annotations, user data, and parameters of
    storage. Nothing is changed.
    """
    from reconciler.bootstrap.snapshot import save_snapshot  # noqa: PLC0415 - slow to load

    config = config_or_variable(ctx, config, config_file)
    flags = {
        "cluster-name": cluster_name,
        "regions": regions,
        "kubeconfig": kubeconfig,
        "context": context,
        "lease-namespace": lease_namespace,
    }
    with working("reading the cluster and EC2"):
        files = [str(each) for each in save_snapshot(config, flags, out)]
    if (form := wanted(output)) is not Output.TABLE:
        print_data({"cluster": files[:1], "aws": files[1:]}, form)
        return
    for file in files:
        print_line(file)
    options = shlex.join(["--cluster", files[0], "--aws", *files[1:]])
    print_line("")
    print_line(f"reconciler plan --config {shlex.quote(config)} {options}")
