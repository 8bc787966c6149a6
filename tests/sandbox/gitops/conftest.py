"""A config repository, second loops over it, and a team with everything running."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.loops.second_loop.gitops_loop import GitopsLoop, GitopsSettings
from tests.git_remote import make_remote
from tests.sandbox.gitops.enforced import Enforced, enforcing
from tests.sandbox.gitops.local_checkout import new_checkout
from tests.sandbox.gitops.loop_world import (
    SETTINGS,
    ImmediateClock,
    Loops,
    RecordingForge,
    config,
    remote_of,
)
from tests.sandbox.gitops.team import Team, running_team


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A person's clone of a config repository."""
    return make_remote(tmp_path, {"sectors.yaml": config(5), "README.md": "ours\n"})


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git checkout with a root module in `terraform/`."""
    return new_checkout(tmp_path)


@pytest.fixture
def loops(work: Path) -> Iterator[Loops]:
    """Makes loops over the remote, and closes their repositories."""
    opened: list[GitRepository] = []

    def make(
        settings: GitopsSettings = SETTINGS,
        repository: GitRepository | None = None,
        forge: RecordingForge | None = None,
    ) -> GitopsLoop:
        port = repository or GitRepository(GitSettings(url=remote_of(work)))
        opened.append(port)
        return GitopsLoop(port, ImmediateClock(), settings, forge)

    yield make
    for port in opened:
        port.close()


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    """Both loops and a pipeline; nothing is in EC2 yet."""
    with running_team(tmp_path) as running:
        yield running


@pytest.fixture
def enforced() -> Iterator[Enforced]:
    """An account that enforces IAM, with an empty bucket for state."""
    with enforcing() as account:
        yield account
