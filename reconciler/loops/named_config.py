"""Explains why a config that the settings name cannot be read from the followed branch."""

from reconciler.gitops.status import ClusterStatus
from reconciler.gitops.targets import RenderTarget
from reconciler.model.errors import InputError, NotFound
from reconciler.ports.repository import CommitId, Repository


def missing(repository: Repository, commit: CommitId, target: RenderTarget) -> ClusterStatus:
    """Return the status of a config that is not among the regular files of a commit."""
    detail = why_missing(repository, commit, target.config_path)
    return ClusterStatus(target=target, state="missing", detail=detail)


def why_missing(repository: Repository, commit: CommitId, path: str) -> str:
    """Return why a path is not among the regular files of a commit, and what to do about it."""
    try:
        repository.read(commit, path)
    except InputError as error:
        return str(error)
    except NotFound:
        pass
    return "the branch has no such file"
