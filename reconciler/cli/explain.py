"""`reconciler explain`: why a pod waits, why a node stays, why a fleet has its size."""

from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli import planning_options as options
from reconciler.cli.output import Output, OutputOption, wanted
from reconciler.cli.several import SeveralFiles
from reconciler.config.loader import DEFAULT_FILE

if TYPE_CHECKING:
    from reconciler.bootstrap.planning import PlanRequest, Questions

EXAMPLE = "reconciler explain pod web/api-1 --config sectors.yaml"
EXAMPLES = {
    "pod": "reconciler explain pod web/api-1 --config sectors.yaml --cluster cluster.json",
    "node": "reconciler explain node ip-10-0-0-7.us-west-2.compute.internal",
    "fleet": "reconciler explain fleet primary-small --config sectors.yaml --output json",
}

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    help="Why a pod waits and what would place it, why a node stays or goes, why a fleet has its"
    " size. Plans once from the live APIs, or offline from files, and changes nothing.",
)


@app.command("pod", cls=SeveralFiles)
def pod(
    names: Annotated[list[str], typer.Argument(metavar="NS/POD...", help="Namespace and name.")],
    *,
    config: options.ConfigOption = DEFAULT_FILE,
    cluster: options.ClusterOption = None,
    aws: options.AwsOption = None,
    now: options.NowOption = None,
    cluster_name: options.ClusterNameOption = None,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
    catalogue: options.CatalogueOption = None,
    output: OutputOption = None,
) -> None:
    """Say why pods wait, with the numbers of every fleet, and the smallest change that helps."""
    from reconciler.bootstrap.planning import Questions  # noqa: PLC0415 - numpy: slow

    flags = {
        "cluster_name": cluster_name,
        "kubeconfig": kubeconfig,
        "context": context,
        "catalogue": catalogue,
    }
    request = options.request_of(config, cluster, aws, now, **flags)
    _answer(request, Questions(pods=tuple(names)), output)


@app.command("node", cls=SeveralFiles)
def node(
    names: Annotated[list[str], typer.Argument(metavar="NODE...", help="Names of nodes.")],
    *,
    config: options.ConfigOption = DEFAULT_FILE,
    cluster: options.ClusterOption = None,
    aws: options.AwsOption = None,
    now: options.NowOption = None,
    cluster_name: options.ClusterNameOption = None,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
    catalogue: options.CatalogueOption = None,
    output: OutputOption = None,
) -> None:
    """Say why nodes stay or go."""
    from reconciler.bootstrap.planning import Questions  # noqa: PLC0415 - numpy: slow

    flags = {
        "cluster_name": cluster_name,
        "kubeconfig": kubeconfig,
        "context": context,
        "catalogue": catalogue,
    }
    request = options.request_of(config, cluster, aws, now, **flags)
    _answer(request, Questions(nodes=tuple(names)), output)


@app.command("fleet", cls=SeveralFiles)
def fleet(
    names: Annotated[list[str], typer.Argument(metavar="FLEET...", help="<sector>-<size>.")],
    *,
    config: options.ConfigOption = DEFAULT_FILE,
    cluster: options.ClusterOption = None,
    aws: options.AwsOption = None,
    now: options.NowOption = None,
    cluster_name: options.ClusterNameOption = None,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
    catalogue: options.CatalogueOption = None,
    output: OutputOption = None,
) -> None:
    """Say why fleets have the size that the plan gives them, and what their nodes are kept by."""
    from reconciler.bootstrap.planning import Questions  # noqa: PLC0415 - numpy: slow

    flags = {
        "cluster_name": cluster_name,
        "kubeconfig": kubeconfig,
        "context": context,
        "catalogue": catalogue,
    }
    request = options.request_of(config, cluster, aws, now, **flags)
    _answer(request, Questions(fleets=tuple(names)), output)


def _answer(request: "PlanRequest", questions: "Questions", output: Output | None) -> None:
    from reconciler.bootstrap import planning  # noqa: PLC0415 - numpy: slow
    from reconciler.cli.explain_view import print_explanations  # noqa: PLC0415 - as above

    made, snapshot, settings = planning.make_plan(request)
    answers = planning.explained(made, snapshot, settings, questions)
    print_explanations(answers, form=wanted(output))
