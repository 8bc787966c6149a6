"""Wires the second loop to git and a forge."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reconciler import __version__
from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.adapters.system_clock import SystemClock, stop_on_signals
from reconciler.bootstrap.forge import ForgeChoice, forge_for
from reconciler.bootstrap.second_loop.log import GitopsLog
from reconciler.bootstrap.stop_deadline import StopDeadline, exit_code_of, stop_seconds_of
from reconciler.config.rules.names import check_cluster_name
from reconciler.gitops.rendering.targets import DEFAULT_OUTPUT
from reconciler.loops.second_loop.gitops_loop import Fetched, GitopsLoop, GitopsSettings, Mode
from reconciler.telemetry.logging import set_up_logging
from reconciler.telemetry.scrubbing import secrets_of

TOKEN = "RECONCILER_GIT_TOKEN"  # noqa: S105 - a variable's name
TOKEN_FILE = "RECONCILER_GIT_TOKEN_FILE"  # noqa: S105 - a variable's name
USERNAME = "RECONCILER_GIT_USERNAME"
SIGNING_KEY_FILE = "RECONCILER_GIT_SIGNING_KEY_FILE"
AUTHOR_NAME = "RECONCILER_GIT_AUTHOR_NAME"
AUTHOR_EMAIL = "RECONCILER_GIT_AUTHOR_EMAIL"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitopsOptions:
    """Holds the options of `reconciler gitops` and `run --gitops`."""

    repository: str
    branch: str = "main"
    configs: tuple[str, ...] = ("sectors.yaml",)
    output: str = DEFAULT_OUTPUT
    clone: Path | None = None
    mode: Mode = "push"
    poll_seconds: float = 30.0
    cluster_name: str | None = None
    forge: ForgeChoice = "auto"
    forge_api: str = ""
    """Root of the REST API; empty: the usual one of the repository's host."""

    def __post_init__(self) -> None:
        """Refuse a cluster name that would make every config invalid."""
        if self.cluster_name is not None:
            check_cluster_name(self.cluster_name)


def check_options(options: GitopsOptions) -> None:
    """Refuse options with which the second loop could not start.

    Raises:
        UsageError: What is wrong.
    """
    _git_settings(options)
    forge_for(options.repository, options.forge, options.forge_api)


@contextmanager
def git_repository(options: GitopsOptions) -> Iterator[GitRepository]:
    """Yield the config repository; its local copy is released at the end."""
    repository = GitRepository(_git_settings(options))
    try:
        yield repository
    finally:
        repository.close()


def gitops_loop(
    options: GitopsOptions, repository: GitRepository, fetched: Fetched | None = None
) -> GitopsLoop:
    """Build the second loop over a real remote.

    Args:
        options: Its options.
        repository: Where its configs are.
        fetched: Called with each newest commit, whether the loop acts or not.
    """
    settings = GitopsSettings(
        version=__version__,
        branch=options.branch,
        configs=options.configs,
        output=options.output,
        cluster_name=options.cluster_name,
        mode=options.mode,
        poll_seconds=options.poll_seconds,
    )
    return GitopsLoop(
        repository,
        SystemClock(),
        settings,
        forge_for(options.repository, options.forge, options.forge_api),
        fetched,
    )


def watch_until_stopped(options: GitopsOptions, verbosity: int = 0) -> int:
    """Run the second loop until SIGTERM, SIGINT or SIGHUP, logging what changes to stderr.

    It does not wait for a git command that hangs: the next start fetches its result.

    Returns:
        The exit code: 0; 130 after SIGINT.
    """
    set_up_logging(verbosity, secrets_of(os.environ))  # noqa: TID251 - masked, not read
    clock = SystemClock()
    deadline = StopDeadline(lambda: exit_code_of(stopped), lambda: stop_seconds_of(stopped))
    with git_repository(options) as repository:
        loop = gitops_loop(options, repository)
        with stop_on_signals(clock.stop, [loop.stop, deadline.arm]) as stopped:
            loop.watch(GitopsLog())
    deadline.disarm()
    return exit_code_of(stopped)


def _git_settings(options: GitopsOptions) -> GitSettings:
    users = os.environ  # noqa: TID251 - credentials and identity come from nowhere else
    file, key = users.get(TOKEN_FILE, ""), users.get(SIGNING_KEY_FILE, "")
    return GitSettings(
        url=options.repository,
        branch=options.branch,
        directory=options.clone,
        token=users.get(TOKEN, ""),
        token_file=Path(file) if file else None,
        signing_key_file=Path(key) if key else None,
        username=users.get(USERNAME, "x-access-token"),
        author_name=users.get(AUTHOR_NAME, "fleet-reconciler"),
        author_email=users.get(AUTHOR_EMAIL, "fleet-reconciler@localhost"),
    )
