"""`reconciler plan`: one planning cycle, printed."""

from typing import Annotated

import typer

from reconciler.cli.options import planning as options
from reconciler.cli.options.config_argument import ConfigArgument, config_of
from reconciler.cli.options.several import SeveralFiles
from reconciler.cli.terminal.output import OutputOption, wanted
from reconciler.cli.terminal.progress_line import working
from reconciler.config.loader import DEFAULT_FILE

EXAMPLE = (
    "kubectl get nodes,pods,pvc,pv,pdb,sc,csinodes,ns,ds,leases -A -o json > cluster.json; "
    "aws ec2 describe-fleets > fleets.json; "
    "reconciler plan --config sectors.yaml --cluster cluster.json --aws fleets.json"
)
CLASS = SeveralFiles


def command(
    config_file: ConfigArgument = None,
    *,
    config: options.ConfigOption = DEFAULT_FILE,
    cluster: options.ClusterOption = None,
    aws: options.AwsOption = None,
    now: options.NowOption = None,
    cluster_name: options.ClusterNameOption = None,
    regions: options.RegionsOption = None,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
    pod_namespace: options.PodNamespaceOption = None,
    lease_namespace: options.LeaseNamespaceOption = None,
    catalogue: options.CatalogueOption = None,
    explain: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/POD", help="Explain why this pod waits and what would place it; repeatable."
        ),
    ] = None,
    explain_node: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE", help="Explain why this node stays or leaves; repeatable."),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Plan once from the live APIs, or offline from files, and print the plan.

    Nothing is changed. The same inputs give the same output. With --explain or --explain-node the
    table has only the answers, and the JSON is the plan with the key `explanations`.
    """
    from reconciler.bootstrap.planning import planning  # noqa: PLC0415 - numpy: slow
    from reconciler.cli.views.explain import print_explained  # noqa: PLC0415 - as above
    from reconciler.cli.views.plan import print_plan  # noqa: PLC0415 - rich: slow

    request = options.request_of(
        config_of(config, config_file),
        cluster,
        aws,
        now,
        cluster_name=cluster_name,
        regions=regions,
        kubeconfig=kubeconfig,
        context=context,
        pod_namespace=pod_namespace,
        lease_namespace=lease_namespace,
        catalogue=catalogue,
    )
    with working("reading and planning"):
        made, snapshot, settings = planning.make_plan(request)
    form = wanted(output)
    questions = planning.Questions(pods=tuple(explain or ()), nodes=tuple(explain_node or ()))
    if questions.pods or questions.nodes:
        answers = planning.explained(made, snapshot, settings, questions)
        print_explained(made, answers, form=form)
    else:
        print_plan(made, form=form)
