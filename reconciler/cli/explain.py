"""`reconciler explain`: why a pod waits, why a node stays, why a fleet has its size."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reconciler.cli.options import planning as options
from reconciler.cli.options.config_argument import is_on_the_command_line
from reconciler.cli.options.running_program import StatusUrlOption, TokenFileOption, program_of
from reconciler.cli.options.several import SeveralFiles
from reconciler.cli.terminal.output import Output, OutputOption, wanted
from reconciler.config.loader import DEFAULT_FILE
from reconciler.model.errors import InputError, Unavailable, UsageError

if TYPE_CHECKING:
    from reconciler.bootstrap.planning.planning import PlanRequest, Questions

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
    help="Explain why a pod waits and what would place it, why a node stays or leaves, or why a"
    " fleet has its size. The answer comes from the last plan of the running reconciler if one"
    " answers at --status-url, else from a plan made now, from the live APIs or offline from files."
    " Nothing is changed.",
)


def _command(field: str, metavar: str, text: str, doc: str) -> Callable[..., None]:
    """Return the command that answers one kind of question.

    Args:
        field: The field of `Questions` that its arguments are.
        metavar: What an argument is called.
        text: The help of its arguments.
        doc: Its own help.
    """

    def command(
        ctx: typer.Context,
        names: Annotated[list[str], typer.Argument(metavar=metavar, help=text)],
        *,
        config: options.ConfigOption = DEFAULT_FILE,
        cluster: options.ClusterOption = None,
        aws: options.AwsOption = None,
        now: options.NowOption = None,
        cluster_name: options.ClusterNameOption = None,
        kubeconfig: options.KubeconfigOption = None,
        context: options.ContextOption = None,
        catalogue: options.CatalogueOption = None,
        status_url: StatusUrlOption = None,
        listen_token_file: TokenFileOption = None,
        output: OutputOption = None,
    ) -> None:
        from reconciler.bootstrap.planning.planning import Questions  # noqa: PLC0415 - numpy: slow

        flags = {
            "cluster_name": cluster_name,
            "kubeconfig": kubeconfig,
            "context": context,
            "catalogue": catalogue,
        }
        request = options.request_of(config, cluster, aws, now, **flags)
        asked = Questions(**{field: tuple(names)})
        is_named = is_on_the_command_line(ctx, "status_url")
        _answer(request, asked, _Program(status_url, listen_token_file, is_named), output)

    command.__doc__ = doc
    return command


app.command("pod", cls=SeveralFiles)(
    _command(
        "pods",
        "NS/POD",
        "Namespace and name.",
        "Explain why pods wait: the numbers of every fleet, and the smallest change that helps.",
    )
)
app.command("node", cls=SeveralFiles)(
    _command("nodes", "NODE", "Names of nodes.", "Explain why nodes stay or leave.")
)
app.command("fleet", cls=SeveralFiles)(
    _command(
        "fleets",
        "FLEET",
        "Names of fleets: <sector>-<size>.",
        "Explain why fleets have the size that the plan gives them, and what keeps their nodes.",
    )
)


@dataclass(frozen=True, slots=True)
class _Program:
    """The options about the running reconciler."""

    status_url: str | None
    token_file: Path | None
    is_named: bool
    """Whether the command line names it; an address of the environment counts like `listen`."""


def _answer(
    request: "PlanRequest", questions: "Questions", program: _Program, output: Output | None
) -> None:
    """Answer from the running loop's last plan, else from a new plan."""
    from reconciler.cli.views.explain import print_explanations  # noqa: PLC0415 - numpy: slow

    found = _from_running(request, questions, program)
    print_explanations(found or _planned(request, questions), form=wanted(output))


def _from_running(
    request: "PlanRequest", questions: "Questions", program: _Program
) -> dict[str, Any] | None:
    """Return the running loop's answers; None if it is not asked, or cannot be reached.

    With files, another time or other credentials the plan differs from the running loop's.

    Raises:
        UsageError: The command line names the program and also another source.
    """
    sources = {
        "--cluster": request.cluster_files,
        "--aws": request.aws_files,
        "--now": request.now,
    }
    other = [option for option, value in sources.items() if value]
    if program.is_named and other:
        raise UsageError(
            f"--status-url and {' and '.join(other)}",
            "the running reconciler answers from its own plan, not from these",
            "leave one of them out",
        )
    flags = ("kubeconfig", "context", "catalogue")
    if not program.is_named and (other or any(request.flags.get(flag) for flag in flags)):
        return None
    from reconciler.web.client import ask_explanations  # noqa: PLC0415 - slow to load

    name = request.flags.get("cluster-name")
    asked = program_of(
        program.status_url, program.token_file, request.config, str(name) if name else None
    )
    names = {"pod": questions.pods, "node": questions.nodes, "fleet": questions.fleets}
    try:
        found = ask_explanations(asked.address, names, asked.cluster, asked.token)
    except (Unavailable, InputError):
        if program.is_named:
            raise
        return None
    sys.stderr.write(f"from the last plan of the reconciler at {asked.address}\n")
    return found


def _planned(request: "PlanRequest", questions: "Questions") -> dict[str, Any]:
    from reconciler.bootstrap.planning import planning  # noqa: PLC0415 - numpy: slow
    from reconciler.records.explanations import explanations_to_json  # noqa: PLC0415 - as above

    made, snapshot, settings = planning.make_plan(request)
    return explanations_to_json(planning.explained(made, snapshot, settings, questions))
