"""`reconciler status`: what the running reconciler is doing and why."""

import sys
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reconciler.cli.options.config_argument import ConfigArgument, config_or_variable
from reconciler.cli.options.running_program import StatusUrlOption, TokenFileOption, program_of
from reconciler.cli.terminal.messages import tell_error
from reconciler.cli.terminal.output import Output, OutputOption, print_data, wanted
from reconciler.cli.terminal.streams import reader_ended
from reconciler.config.loader import DEFAULT_FILE
from reconciler.model.errors import PortError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


EXAMPLE = "reconciler status --listen 127.0.0.1:9235 --output json"

Json = dict[str, Any]


def command(
    ctx: typer.Context,
    config_file: ConfigArgument = None,
    *,
    listen: StatusUrlOption = None,
    config: Annotated[
        str,
        typer.Option(
            metavar="FILE", envvar="RECONCILER_CONFIG", help="Sector config, read for `listen`."
        ),
    ] = DEFAULT_FILE,
    listen_token_file: TokenFileOption = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep running and show each change until Ctrl-C.")
    ] = False,
    interval: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.2, max=3600, help="Seconds between two updates of --watch."
        ),
    ] = 2.0,
    output: OutputOption = None,
) -> None:
    """Show what the running reconciler is doing and why; the verdict is the first line.

    In a cluster: kubectl port-forward the reconciler's port 9235 first.
    """
    from reconciler.web.client import ask_status  # noqa: PLC0415 - slow to load

    # With an address no config is needed: any cluster's program may run there.
    named = config_or_variable(ctx, config, config_file)
    asked = program_of(listen, listen_token_file, named, cluster="any")
    address, token = asked.address, asked.token
    form = wanted(output)
    if watch:
        watched(lambda: ask_status(address, token), form, interval)
        return
    _print(ask_status(address, token), form)


def _print(status: Json, form: Output) -> None:
    """Print one answer."""
    if form is not Output.TABLE:
        print_data(status, form)
        return
    from reconciler.cli.views.status import console, view_of  # noqa: PLC0415 - slow to load

    console().print(view_of(status))


def watched(ask: Callable[[], Json], form: Output, interval_seconds: float) -> None:
    """Show answers until interrupted, or until the reader of standard output has ended.

    A failed one is shown, and asked for again.
    """
    from reconciler.cli.views.status import console  # noqa: PLC0415 - slow to load

    if form is not Output.TABLE:
        # One document after another, as `kubectl get --watch -o json` prints.
        _repeated(lambda: _print_document(ask, form), interval_seconds)
        return
    screen = console()
    if screen.is_terminal and not screen.is_dumb_terminal:
        _in_place(ask, screen, interval_seconds)
        return
    # Where nothing can be overwritten, one table after another, with an empty line between them.
    _repeated(lambda: screen.print(_shown(ask), end="\n\n"), interval_seconds)


def _repeated(show: Callable[[], None], interval_seconds: float) -> None:
    """Show something again and again, until the reader of standard output has ended."""
    pause = Event()
    while not reader_ended():
        show()
        sys.stdout.flush()
        pause.wait(interval_seconds)


def _print_document(ask: Callable[[], Json], form: Output) -> None:
    """Print one answer for programs; why there is none goes to standard error."""
    try:
        print_data(ask(), form, indent=None)
    except PortError as error:
        tell_error(error)


def _in_place(ask: Callable[[], Json], screen: "Console", interval_seconds: float) -> None:
    """Show answers on a terminal, each in the place of the one before."""
    from rich.live import Live  # noqa: PLC0415 - slow to load

    pause = Event()
    with Live(console=screen, auto_refresh=False, vertical_overflow="visible") as live:
        while True:
            live.update(_shown(ask), refresh=True)
            pause.wait(interval_seconds)


def _shown(ask: Callable[[], Json]) -> "RenderableType":
    """Return one answer, or why there is none."""
    from rich.text import Text  # noqa: PLC0415 - slow to load

    from reconciler.cli.views.status import view_of  # noqa: PLC0415 - as above

    try:
        return view_of(ask())
    except PortError as error:
        return Text(f"NO ANSWER: {error}", style="bold red")
