"""The commands by name, imported only when they are called.

To add one: a line in `COMMANDS` and a file `reconciler/cli/<name>.py` (`-` becomes `_`) with
- `command`, a function for typer, or `app`, a `typer.Typer` with sub-commands; and
- `CLASS`, optional, typer's class for it when its arguments need parsing of their own; and
- `EXAMPLE`, one or more command lines for the end of `--help`; and
- `EXAMPLES`, optional, those of sub-commands that have their own, by name.
Every command gets `-v`; heavy imports go inside the function.
"""

import keyword
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from reconciler.cli.options import verbosity

COMMANDS: Final = {
    "run": "Run the capacity loop; with --gitops also the second loop.",
    "plan": "Plan once and print the plan; nothing is changed.",
    "simulate": "Simulate a config on recorded demand: its cost, and which pods would have waited.",
    "record": "Record the demand of a cluster, for simulate.",
    "snapshot": "Save what a planning cycle observes, for offline planning and bug reports.",
    "catalogue": "Show instance types and prices, or refresh them from EC2.",
    "validate": "Check sector configs and print every fault with its line and column.",
    "render": "Write the Terraform root module of a sector config.",
    "import": "Write a sector config, and Terraform import blocks, for existing fleets and groups.",
    "manifest": "Print install.yaml for a sector config.",
    "node-watch": "On a node: write EC2's notices for its instance onto its Node object.",
    "gitops": "Run the second loop: watch the config repository, validate, render, commit, push.",
    "ci": "Commands for pipelines: plan, apply, finish, drift, unlock, comment, roots.",
    "sandbox": "Run an emulated AWS and a simulated cluster on loopback.",
    "demo": "Run a complete example in the sandbox, and narrate it.",
    "status": "Show what the running reconciler is doing and why.",
    "explain": "Explain why a pod waits, why a node stays, or why a fleet has its size.",
    "completion": "Print a completion script for bash, zsh or fish.",
}
"""Name and one-line help, in the order in which `--help` lists them."""

USAGE_ERROR: Final[type[Any]] = typer.BadParameter.__mro__[1]
"""click's UsageError, wherever typer keeps click (newer versions bundle their own)."""


def module_of(name: str) -> str:
    """Return the module of a command; a word of Python's own gets a trailing `_`."""
    return f"reconciler.cli.{name.replace('-', '_')}" + "_" * keyword.iskeyword(name)


class LazyGroup(TyperGroup):
    """Lists commands without importing them and imports the one that is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        """Return all commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command, imported only now; None if there is none with this name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        return load_command(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name.

        Raises:
            UsageError: There is none; the message has the nearest names.
        """
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            near = get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise USAGE_ERROR(f"no such command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, from the table instead of from their modules."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


def load_command(name: str) -> Any:
    """Import a command and give it `-v`, its one-line help and its example."""
    module = import_module(module_of(name))
    app = getattr(module, "app", None)
    example = example_text(module.EXAMPLE)
    if app is None:
        app = typer.Typer(rich_markup_mode=None, add_completion=False)
        kind = getattr(module, "CLASS", None)
        app.command(name, cls=kind, epilog=example)(module.command)
        built: Any = typer.main.get_command(app)
    else:
        built = typer.main.get_group(app)
        built.epilog = built.epilog or example
    built.name = name
    built.rich_markup_mode = None
    built.short_help = COMMANDS[name]
    own = getattr(module, "EXAMPLES", {})
    for command in [built, *getattr(built, "commands", {}).values()]:
        command.rich_markup_mode = None
        command.epilog = command.epilog or example_text(own.get(command.name, module.EXAMPLE))
        _name_values(command)
        _hide_types(command)
        _add_verbose(command)
    return built


def _name_values(command: Any) -> None:
    """Name each option's value after the option, instead of `<str>`: `--kubeconfig KUBECONFIG`."""
    for parameter in command.params:
        flag = getattr(parameter, "is_flag", False) or getattr(parameter, "count", False)
        if parameter.param_type_name == "option" and not (
            parameter.metavar or flag or _has_choices(parameter)
        ):
            longest = max(parameter.opts, key=len)
            parameter.metavar = longest.rpartition("-")[2].upper()


def _hide_types(command: Any) -> None:
    """Show an argument by its name alone: `FILE`, not `FILE <str>`."""
    for parameter in command.params:
        if parameter.param_type_name == "argument" and not _has_choices(parameter):
            parameter.display_type_rich = _no_type


def _no_type(**_: Any) -> str:
    return ""


def _has_choices(parameter: Any) -> bool:
    """Return whether the help lists the values; their place differs between typer versions."""
    kind = getattr(parameter, "type_descriptor", None) or getattr(parameter, "type", None)
    return bool(getattr(kind, "choices", None))


def example_text(example: str) -> str:
    """Return the end of a help text: the example on its own lines, not wrapped, ready to copy."""
    lines = [f"  {line.strip()}" for line in example.strip().splitlines()]
    return "\n".join(["\b", "Example:", *lines])


def _add_verbose(command: Any) -> None:
    """Accept `-v` after the command too."""
    taken = {option for parameter in command.params for option in parameter.opts}
    if not taken & {"-v", "--verbose"}:
        command.params.append(verbose_option())


def verbose_option() -> Any:
    """Return `-v`, `-vv`, `-vvv` for any command; the highest count wins.

    It is taken from a command that typer builds, as the option's class differs between versions.
    """
    app = typer.Typer(add_completion=False)
    app.command()(_only_verbose)
    (option,) = (p for p in typer.main.get_command(app).params if "-v" in p.opts)
    option.expose_value = False
    return option


def _only_verbose(
    *,
    verbose: Annotated[
        int,
        typer.Option(
            "-v",
            "--verbose",
            count=True,
            show_default=False,
            help="Log more; may be given up to three times.",
            callback=lambda value: verbosity.raise_to(value or 0),
        ),
    ] = 0,
) -> None:
    """A command that has only `-v`."""


def where(argv: Sequence[str], error: Exception | None = None) -> str:
    """Return the command of a command line, for messages: `reconciler ci plan`."""
    context = getattr(error, "ctx", None)
    if context is not None:
        return str(context.command_path)
    called = [word for word in argv if word in COMMANDS]
    return " ".join(["reconciler", *called[:1]])
