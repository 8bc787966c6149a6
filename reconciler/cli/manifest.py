"""`reconciler manifest`: install.yaml of a sector config."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from reconciler import __version__
from reconciler.cli.options.config_argument import ConfigArgument, config_of
from reconciler.cli.options.gitops import (
    SecondLoopConfigsOption,
    SecondLoopOutOption,
    refuse_unread,
)
from reconciler.cli.terminal.output import print_document
from reconciler.config.catalogue import FILE_MAX_BYTES
from reconciler.config.environment import stated_cluster_name
from reconciler.config.loader import DEFAULT_FILE, parse_config, read_config_bytes
from reconciler.config.yaml_loader import decode
from reconciler.gitops.rendering.targets import DEFAULT_OUTPUT
from reconciler.install.iam import PolicyName, policy, policy_values
from reconciler.install.manifest import render_manifest
from reconciler.install.settings import (
    Gitops,
    Identity,
    InstallSettings,
    check,
    extra_paths,
    tolerations_of,
)
from reconciler.install.spot_nodes import SPOT_LABELS, without_node_watch
from reconciler.machine.plain_file import open_plain
from reconciler.model.errors import InputError, UsageError

EXAMPLE: Final = """\
reconciler manifest --config sectors.yaml --sector coordinate --image REGISTRY/fleet-reconciler:1 \
--identity irsa=arn:aws:iam::123456789012:role/analytics-fleet-reconciler | kubectl apply --server-side -f -
"""  # noqa: E501 - one command, to be copied


def command(
    ctx: typer.Context,
    config_file: ConfigArgument = None,
    *,
    config: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Sector config; - is stdin. RECONCILER_CONFIG is not read."
        ),
    ] = DEFAULT_FILE,
    cluster_name: Annotated[
        str | None, typer.Option(help="EKS cluster; overrides the config's.")
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(
            help="Container image, preferably by digest; required, except with --iam-policy."
        ),
    ] = None,
    namespace: Annotated[str, typer.Option(help="Namespace to install into.")] = "fleet-reconciler",
    identity: Annotated[
        str | None,
        typer.Option(help="AWS role: irsa=ROLE_ARN, pod-identity[=ROLE_ARN], none (the node's)."),
    ] = None,
    sector: Annotated[
        str | None,
        typer.Option(help="Sector on whose nodes it runs; a fleet of it needs min_capacity."),
    ] = None,
    replicas: Annotated[
        int, typer.Option(min=1, help="Number of replicas; one acts, the others stand by.")
    ] = 2,
    priority_class: Annotated[
        str, typer.Option(help="priorityClassName of the pods.")
    ] = "system-cluster-critical",
    repository: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Also run the second loop, with this git repository."),
    ] = None,
    branch: Annotated[str, typer.Option(help="Second loop: branch to follow.")] = "main",
    mode: Annotated[
        Literal["push", "pull-request"], typer.Option(help="Second loop: how it commits.")
    ] = "push",
    gitops_config: SecondLoopConfigsOption = None,
    out: SecondLoopOutOption = DEFAULT_OUTPUT,
    node_watch: Annotated[
        bool, typer.Option("--node-watch", help="Also read instance metadata on every spot node.")
    ] = False,
    iam_policy: Annotated[
        PolicyName | None, typer.Option(help="Print this IAM policy instead.")
    ] = None,
    node_role: Annotated[
        str | None,
        typer.Option(metavar="ARN", help="With --iam-policy ci-apply: role of the nodes."),
    ] = None,
) -> None:
    """Print install.yaml: everything that the cluster needs to run the reconciler.

    Namespace, ServiceAccount, least RBAC, ConfigMap, Deployment, Service, NetworkPolicy and
    PodDisruptionBudget. The same options give the same bytes. With --iam-policy it prints what
    the role needs in AWS instead, and needs no --image.
    """
    if not repository:
        refuse_unread(ctx, ("branch", "mode", "gitops_config", "out"), "--repository")
    config = config_of(config, config_file)
    content = read_config_bytes(config)
    folder = Path() if config == "-" else Path(config).parent
    named = stated_cluster_name(cluster_name)
    loaded = parse_config(content, name=config, cluster_name=named, directory=folder)
    if not loaded.cluster:
        raise UsageError("cluster", "the config names no cluster", "give --cluster-name")
    if iam_policy is not None:
        values = policy_values(iam_policy, loaded, loaded.cluster, node_role)
        print_document(policy(iam_policy, values))
        return
    settings = InstallSettings(
        cluster=loaded.cluster,
        config=decode(content),
        image=_image(image),
        namespace=namespace,
        identity=Identity.parsed(identity or "none"),
        sector=sector,
        tolerations=tolerations_of(loaded, sector),
        replicas=replicas,
        elects=loaded.leader_election.enabled,
        priority_class=priority_class,
        gitops=Gitops(
            repository=repository,
            branch=branch,
            mode=mode,
            configs=tuple(gitops_config or ()),
            output=out,
        )
        if repository
        else None,
        node_watch=node_watch,
        extra_files={path: _text(folder / path) for path in extra_paths(loaded)},
    )
    check(settings, loaded)
    if identity is None:
        sys.stderr.write(_NO_IDENTITY)
    unseen = without_node_watch(loaded) if node_watch else ()
    if unseen:
        sys.stderr.write(_no_node_watch(unseen))
    print_document(render_manifest(settings, __version__))


_NO_IDENTITY = (
    "warning: --identity is not given: the pods act with the role of their node, which as a rule"
    " may not change fleets (give irsa=ROLE_ARN or pod-identity=ROLE_ARN; none says that the"
    " node's role is meant)\n"
)


def _no_node_watch(fleets: Sequence[str]) -> str:
    labels = ", ".join(f"{key}={value}" for key, value in SPOT_LABELS)
    return (
        "warning: --node-watch: the config does not show that nodes of"
        f" {', '.join(fleets)} have one of the labels {labels}, by which the node watch finds spot"
        " nodes: without one it does not run there (set the first in the launch template,"
        " --node-labels)\n"
    )


def _image(stated: str | None) -> str:
    """Return the image to run.

    Raises:
        UsageError: None is stated.
    """
    if stated is None:
        raise UsageError(
            "--image",
            "no image is given, and there is no default image",
            "build the Dockerfile, push it, and give --image REGISTRY/fleet-reconciler:VERSION",
        )
    return stated


def _text(path: Path) -> str:
    try:
        with open_plain(path, links=True) as file:
            return file.read(FILE_MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"cannot be read: {error}") from error
