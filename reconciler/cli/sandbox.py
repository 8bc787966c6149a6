"""`reconciler sandbox up`: embedded AWS and a cluster, simulated or real, on loopback."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from reconciler.cli.options.control_plane import ControlPlaneOption, programs_of
from reconciler.cli.sandbox_interrupt import interrupt
from reconciler.cli.terminal.messages import tell
from reconciler.cli.terminal.output import Output, OutputOption, print_data, wanted
from reconciler.model.errors import ConfigError, ToolError
from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.cluster.settings import ClusterSettings
from reconciler.sandbox.faults.script import FaultScript, load_script
from reconciler.sandbox.joiner import JoinerSettings
from reconciler.sandbox.requirements import check_packages
from reconciler.sandbox.stack import Sandbox, SandboxSettings

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

EXAMPLE = "reconciler sandbox up -- kubectl get nodes"
EXAMPLES = {"interrupt": "reconciler sandbox interrupt --percent 30"}

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)


@app.callback()
def _group() -> None:
    """Run an emulated AWS and a Kubernetes cluster on loopback; nothing leaves this machine."""


app.command("interrupt")(interrupt)


@app.command("up")
def up(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="Command to run inside the sandbox, after --; its exit code becomes that of this"
            " command.",
        ),
    ] = None,
    *,
    launch_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds from the launch of an instance to running.")
    ] = 2.0,
    join_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds from a running instance to its Node object.")
    ] = 1.0,
    pod_start_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds from binding a pod to Running.")
    ] = 0.0,
    job_seconds: Annotated[float, typer.Option(min=0, help="How long a Job's pod runs.")] = 5.0,
    region: Annotated[
        str, typer.Option(help="Region of the emulated AWS, as in AWS_REGION.")
    ] = "us-west-2",
    cluster_name: Annotated[
        str,
        typer.Option(
            help="Only instances whose tags and user data name this cluster join as nodes; empty:"
            " those of any cluster (docs/sandbox.md)."
        ),
    ] = "",
    control_plane: ControlPlaneOption = "simulated",
    faults: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Script of faults to inject (docs/sandbox.md)."),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Start the sandbox; stays until Ctrl-C, or runs a command in it.

    Without a command the environment is printed: as lines for a shell, or as JSON.
    """
    check_packages()
    settings = SandboxSettings(
        delays=Delays(launch_seconds=launch_seconds),
        cluster=ClusterSettings(pod_start_seconds=pod_start_seconds, job_seconds=job_seconds),
        joiner=JoinerSettings(cluster=cluster_name, join_seconds=join_seconds),
        faults=None if faults is None else _read_faults(faults),
        region=region,
        programs=programs_of(control_plane),
    )
    raise typer.Exit(_run(settings, command or [], wanted(output)))


def _run(settings: SandboxSettings, command: list[str], output: Output) -> int:
    previous = {number: signal.signal(number, _interrupt) for number in _ENDING}
    if not command or sys.stderr.isatty():  # a command's errors stay alone in a pipe
        sys.stderr.write("starting AWS and the cluster …\n")
        sys.stderr.flush()
    stays = False
    try:
        with Sandbox(settings) as sandbox:
            queue = {"SANDBOX_QUEUE_URL": sandbox.interruption_queue()}
            if command:
                return _run_inside(sandbox.environment() | queue, command)
            _print_environment(sandbox.environment() | queue, output)
            stays = True
            while True:
                signal.pause()
    except KeyboardInterrupt:
        return 0 if stays else 130  # Ctrl-C is how a sandbox that is up is ended
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: object) -> None:
    """Handle SIGTERM like Ctrl-C; a second one does not interrupt the cleaning up."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _run_inside(inside: Mapping[str, str], command: list[str]) -> int:
    environment = {**os.environ, **inside}  # noqa: TID251 - a child inherits ours
    try:
        child = subprocess.Popen(command, env=environment)  # noqa: S603 - the user's own command
    except OSError as error:
        what = f"cannot be started: {error.strerror or error}"
        raise ToolError(
            command[0], what, "what follows -- is a command and its arguments"
        ) from error
    try:
        code = child.wait()
    except BaseException:
        child.terminate()
        child.wait()
        raise
    return code if code >= 0 else 128 - code


def _print_environment(environment: dict[str, str], output: Output) -> None:
    if output is not Output.TABLE:
        print_data(environment, output, indent=None)
        sys.stdout.flush()
        return
    lines = [f"export {key}={shlex.quote(value)}" for key, value in environment.items()]
    text = "\n".join([*lines, "# Ctrl-C ends the sandbox."])
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _read_faults(file: str) -> FaultScript:
    """Return the script in a file; print what is wrong with it and end with exit code 2."""
    try:
        return load_script(file)
    except ConfigError as error:
        for p in error.problems:
            place = f"{file}:{p.line}:{p.column}: {p.code}" if p.line else file
            tell("error", place, p.message, hint="docs/sandbox.md lists every key")
        raise typer.Exit(error.exit_code) from None
