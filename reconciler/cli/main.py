"""The program's entry point: options of all commands, and errors as one line.

Errors go to stderr as `error: WHERE: WHAT (HINT)`; a traceback only with `-vvv`.
"""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from reconciler import __version__
from reconciler.cli import commands, completion
from reconciler.cli.options import verbosity
from reconciler.cli.options.ci import DETAILED_EXITCODE
from reconciler.cli.terminal import streams
from reconciler.cli.terminal.messages import tell, tell_error, tell_traceback
from reconciler.model.errors import ConfigError, ReconcilerError

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130
"""128 + SIGINT, the shell's convention."""


def _print_version(value: bool) -> None:  # noqa: FBT001 - typer's callback
    """Print the version and end."""
    if value:
        typer.echo(f"fleet-reconciler {__version__}")
        raise typer.Exit


def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Node autoscaler for EKS on EC2 Fleets.

    A capacity loop in the cluster, and a second loop through git and Terraform.
    """


def build() -> Any:
    """Return the root command."""
    app = typer.Typer(
        name="reconciler",
        cls=commands.LazyGroup,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=commands.example_text("reconciler validate sectors.yaml"),
    )
    app.callback()(_root)
    root = typer.main.get_group(app)
    root.params.append(commands.verbose_option())
    return root


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    streams.prepare()
    code = run(sys.argv[1:] if argv is None else argv)
    try:
        sys.stdout.flush()
    except OSError as error:
        code = _report_output(error)
    sys.exit(code)


def run(argv: Sequence[str]) -> int:
    """Run the command line.

    Returns:
        The exit code: 0 done, 1 failed, 2 wrong usage or invalid config, 130 interrupted.
        With --detailed-exitcode 2 means changes, and every error ends with 1.
    """
    verbosity.reset()
    completion.prepare()
    try:
        code = build().main(args=list(argv), prog_name="reconciler", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last boundary: one line, never a traceback
        failed = _report_error(error, argv)
        # With this option 2 means changes, so no error may end with it, not even wrong usage.
        detailed = any(each.partition("=")[0] == DETAILED_EXITCODE for each in argv)
        return EXIT_FAILED if detailed else failed
    return code if isinstance(code, int) else 0


def _report_error(error: Exception, argv: Sequence[str]) -> int:
    """Report an error; return the exit code of its kind."""
    if isinstance(error, ConfigError):
        return _report_faults(error)
    if isinstance(error, ReconcilerError):
        _tell_traceback_if_wanted()
        tell_error(error)
        return error.exit_code
    return _report_other(error, argv)


def _report_other(error: Exception, argv: Sequence[str]) -> int:
    """Report wrong usage, or an unexpected error."""
    where = commands.where(argv, error)
    if isinstance(error, commands.USAGE_ERROR):
        text = getattr(error, "format_message", error.__str__)().rstrip(".")
        text = text.replace("Value error, ", "")  # what the parser puts before its own message
        if type(error).__name__ == "NoArgsIsHelpError":  # a group alone: its help is printed
            sys.stderr.write(text + "\n")
            return EXIT_USAGE
        return _report(where, text, f"{where} --help", code=EXIT_USAGE)
    if isinstance(error, OSError) and error.filename == streams.STANDARD_OUTPUT:
        return _report_output(error)
    if isinstance(error, OSError) and error.filename is not None:
        return _report(str(error.filename), str(error.strerror))
    what = f"{type(error).__name__}: {error}"
    return _report(where, what, "run again with -vvv for a traceback")


def _report_faults(error: ConfigError) -> int:
    """Report every fault of a config, each as an error of its own."""
    _tell_traceback_if_wanted()
    if not error.problems[0].line:  # the file itself cannot be read
        tell_error(error)
        return error.exit_code
    for p in error.problems:
        place = f"{error.file}:{p.line}:{p.column}: {p.code}"
        tell("error", place, p.message, hint=error.hint_on_each)
    return error.exit_code


def _report(where: str, what: str, hint: str = "", code: int = EXIT_FAILED) -> int:
    """Print an error as one line on stderr; with `-vvv` the traceback before it."""
    _tell_traceback_if_wanted()
    tell("error", where, what, hint=hint)
    return code


def _report_output(error: OSError) -> int:
    """Report that standard output cannot be written."""
    streams.give_up_output()
    return _report(str(error.filename or streams.STANDARD_OUTPUT), str(error.strerror))


def _tell_traceback_if_wanted() -> None:
    if verbosity.current() >= verbosity.TRACEBACK_LEVEL:
        tell_traceback()
