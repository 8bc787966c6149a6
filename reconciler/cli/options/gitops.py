"""Options of the second loop: as `gitops` has them, and shorter as `run --gitops` has them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from reconciler.cli.options.config_argument import is_on_the_command_line
from reconciler.model.errors import UsageError

if TYPE_CHECKING:
    from reconciler.bootstrap.second_loop.loop import GitopsOptions

Mode = Literal["push", "pull-request"]
ForgeName = Literal["auto", "github", "gitlab", "none"]

BRANCH: Final = "main"
OUT: Final = "terraform"
INTERVAL_SECONDS: Final = 30.0
CONFIGS: Final = ("sectors.yaml",)


def _repository(text: str) -> Any:
    return typer.Option(metavar="URL", envvar="RECONCILER_GIT_REPOSITORY", help=text)


def _branch(text: str) -> Any:
    return typer.Option(envvar="RECONCILER_GIT_BRANCH", help=text)


def _configs(text: str) -> Any:
    return typer.Option(metavar="PATH", help=text)


def _folder(text: str) -> Any:
    return typer.Option(metavar="DIR", help=text)


def _interval(text: str) -> Any:
    return typer.Option(metavar="SECONDS", min=1.0, max=86_400.0, help=text)


def _forge(text: str) -> Any:
    return typer.Option(envvar="RECONCILER_FORGE", help=text)


def _forge_api(text: str) -> Any:
    return typer.Option(metavar="URL", envvar="RECONCILER_FORGE_API", help=text)


RepositoryOption = Annotated[
    str,
    _repository(
        "Config repository; credentials come from RECONCILER_GIT_TOKEN,"
        " RECONCILER_GIT_TOKEN_FILE or ssh, never from the address."
    ),
]
BranchOption = Annotated[str, _branch("Branch to follow.")]
ConfigsOption = Annotated[
    list[str] | None,
    _configs(
        "Sector config in the repository; repeatable; * matches one directory."
        " Default: sectors.yaml."
    ),
]
OutOption = Annotated[str, _folder("Folder to render into, next to each config.")]
IntervalOption = Annotated[float, _interval("Seconds between polls of the remote.")]
ModeOption = Annotated[
    Mode, typer.Option(help="Commit to the branch itself, or to a branch for review.")
]
CloneOption = Annotated[
    Path | None, _folder("Directory in which the local clone is kept between runs.")
]
ForgeOption = Annotated[
    ForgeName,
    _forge(
        "Forge for commit statuses and pull requests; auto: by the repository's host."
        " The token comes from RECONCILER_FORGE_TOKEN or RECONCILER_FORGE_TOKEN_FILE,"
        " else it is the one for git."
    ),
]
ForgeApiOption = Annotated[str, _forge_api("Address of the forge's REST API.")]

SecondLoopOption = Annotated[
    bool,
    typer.Option(
        "--gitops", help="Also run the second loop; both loops then use the repository's config."
    ),
]
SecondLoopRepositoryOption = Annotated[str | None, _repository("Second loop: config repository.")]
SecondLoopBranchOption = Annotated[str, _branch("Second loop: branch to follow.")]
SecondLoopConfigsOption = Annotated[
    list[str] | None, _configs("Second loop: sector config in it; repeatable.")
]
SecondLoopOutOption = Annotated[str, _folder("Second loop: folder to render into.")]
SecondLoopIntervalOption = Annotated[
    float, _interval("Second loop: seconds between polls of the remote.")
]
SecondLoopModeOption = Annotated[Mode, typer.Option(help="Second loop: how it commits.")]
SecondLoopCloneOption = Annotated[
    Path | None, _folder("Second loop: directory of the local clone.")
]
SecondLoopForgeOption = Annotated[
    ForgeName, _forge("Second loop: forge that gets commit statuses and pull requests.")
]
SecondLoopForgeApiOption = Annotated[
    str, _forge_api("Second loop: address of the forge's REST API.")
]


def refuse_unread(ctx: typer.Context, names: Iterable[str], needed: str) -> None:
    """Refuse options of the second loop for a command that does not run it.

    Variables are for every command, so those are not refused.

    Args:
        ctx: The command's context.
        names: The names of their parameters.
        needed: The option without which the second loop does not run.

    Raises:
        UsageError: One of the options was given.
    """
    for name in names:
        if is_on_the_command_line(ctx, name):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(option, "is for the second loop, which does not run", f"add {needed}")


def gitops_options(given: Mapping[str, Any], configs: list[str] | None) -> "GitopsOptions":
    """Return the second loop's options.

    Args:
        given: The parameters of the command, by name.
        configs: The sector configs that were named, if any.
    """
    from reconciler.bootstrap.second_loop.loop import GitopsOptions  # noqa: PLC0415 - heavy

    return GitopsOptions(
        repository=given["repository"],
        branch=given["branch"],
        configs=tuple(configs or CONFIGS),
        output=given["out"],
        clone=given["clone"],
        mode=given["mode"],
        poll_seconds=given["interval"],
        cluster_name=given["cluster_name"],
        forge=given["forge"],
        forge_api=given["forge_api"],
    )
