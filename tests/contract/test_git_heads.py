"""Which branches the remote has, over real git."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.model.errors import NotFound
from tests.git_remote import git


@pytest.fixture
def repository(work: Path) -> Iterator[GitRepository]:
    """The port under test, following main."""
    port = GitRepository(GitSettings(url=str(work.parent / "remote.git")))
    yield port
    port.close()


def test_heads_are_those_of_exactly_these_names(repository: GitRepository, work: Path) -> None:
    """A branch of a stranger that only ends alike would count as this loop's proposal."""
    head = git(work, "rev-parse", "HEAD")
    git(work, "push", "-q", "origin", "HEAD:refs/heads/review/a", "HEAD:refs/heads/refs/heads/b")
    repository.fetch()
    assert repository.heads(["review/a", "a", "b", "main"]) == {"review/a": head, "main": head}
    assert repository.heads(["nothing"]) == {}


def test_heads_of_a_remote_that_is_gone_are_not_found(
    repository: GitRepository, work: Path
) -> None:
    """No answer is no proof that a branch is not there."""
    repository.fetch()
    (work.parent / "remote.git").rename(work.parent / "elsewhere.git")
    with pytest.raises(NotFound):
        repository.heads(["main"])
