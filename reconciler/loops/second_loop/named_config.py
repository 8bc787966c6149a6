"""Explains why a config that the settings name cannot be read from the followed branch."""

from reconciler.gitops.rendering.targets import RenderTarget
from reconciler.gitops.repository.status import ClusterStatus
from reconciler.model.errors import InputError, NotFound
from reconciler.ports.repository import CommitId, Repository


def status_of_missing(
    repository: Repository, commit: CommitId, target: RenderTarget
) -> ClusterStatus:
    """Return the status of a config that is not among the regular files of a commit, and why."""
    detail = "the branch has no such file"
    try:
        repository.read(commit, target.config_path)
    except InputError as error:
        detail = str(error)
    except NotFound:
        pass
    return ClusterStatus(target=target, state="missing", detail=detail)
