"""`reconciler plan`: one planning cycle, printed."""

from datetime import datetime
from typing import Annotated

import typer

from reconciler.cli.output import Output, OutputOption, wanted
from reconciler.cli.several import SeveralFiles
from reconciler.config.loader import DEFAULT_FILE
from reconciler.model.errors import UsageError

EXAMPLE = (
    "kubectl get nodes,pods,pvc,pv,pdb -A -o json > cluster.json; "
    "aws ec2 describe-fleets > fleets.json; "
    "reconciler plan --config sectors.yaml --cluster cluster.json --aws fleets.json"
)
CLASS = SeveralFiles


def command(
    *,
    config: Annotated[
        str, typer.Option(metavar="FILE", help="Sector config; - is stdin.")
    ] = DEFAULT_FILE,
    cluster: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE...", help="Kubernetes objects as kubectl prints them as JSON."),
    ] = None,
    aws: Annotated[
        list[str] | None, typer.Option(metavar="FILE...", help="Answers of the AWS CLI.")
    ] = None,
    now: Annotated[
        str | None, typer.Option(metavar="TIME", help="The clock, RFC 3339; default: now.")
    ] = None,
    cluster_name: Annotated[str | None, typer.Option(help="EKS cluster; wins over it.")] = None,
    regions: Annotated[str | None, typer.Option(help="Regions, the preferred first.")] = None,
    kubeconfig: Annotated[str | None, typer.Option(help="For planning from the live API.")] = None,
    pod_namespace: Annotated[str | None, typer.Option(help="Only its pods are demand.")] = None,
    lease_namespace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whose Lease counts when there are several."),
    ] = None,
    catalogue: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Prices and types, from `reconciler catalogue refresh`."),
    ] = None,
    explain: Annotated[
        list[str] | None,
        typer.Option(metavar="NS/POD", help="Say why, and what would place it; repeatable."),
    ] = None,
    explain_node: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE", help="Say why it stays or goes; repeatable."),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Plan once from the live APIs, or offline from files, and print the plan.

    Nothing is changed. Same inputs, same output. With --explain or --explain-node the table is
    the answer; the JSON is the plan with the key `explanations`.
    """
    from reconciler.bootstrap import planning  # noqa: PLC0415 - numpy: slow
    from reconciler.cli.explain_view import print_explained  # noqa: PLC0415 - as above
    from reconciler.cli.plan_view import print_plan  # noqa: PLC0415 - rich: slow

    flags = {
        "cluster-name": cluster_name,
        "regions": regions,
        "kubeconfig": kubeconfig,
        "pod-namespace": pod_namespace,
        "lease-namespace": lease_namespace,
        "catalogue": catalogue,
    }
    request = planning.PlanRequest(
        config=config,
        flags=flags,
        cluster_files=tuple(cluster or ()),
        aws_files=tuple(aws or ()),
        now=_moment(now),
    )
    made, snapshot, settings = planning.make_plan(request)
    as_json = wanted(output) is Output.JSON
    questions = planning.Questions(pods=tuple(explain or ()), nodes=tuple(explain_node or ()))
    if questions.pods or questions.nodes:
        answers = planning.explained(made, snapshot, settings, questions)
        print_explained(made, answers, as_json=as_json)
    else:
        print_plan(made, as_json=as_json)


def _moment(text: str | None) -> datetime | None:
    """An RFC 3339 time with an offset.

    Raises:
        UsageError: It is not one.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise UsageError("--now", f"{text!r} is not a time", "for example 2026-01-31T12:00:00Z")
    return moment
