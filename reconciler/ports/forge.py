"""The forge around the config repository: commit statuses and pull requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from reconciler.ports.repository import CommitId

StatusState = Literal["pending", "success", "failure", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitStatus:
    """What is shown beside a commit."""

    context: str
    """Which check this is: `fleet-reconciler/sectors.yaml`; the newest per context counts."""
    state: StatusState
    description: str
    """One line; forges cut it at about 140 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A pull (merge) request."""

    number: int
    url: str


class Forge(Protocol):
    """GitHub, GitLab or the like, through its REST API.

    Every method may raise Throttled, Forbidden, NotFound or Unavailable (nothing was changed) and
    OutcomeUnknown (sent, but the reply was lost).
    """

    def set_status(self, commit: CommitId, status: CommitStatus) -> None:
        """Show a status beside a commit; repeating it is harmless."""
        ...

    def statuses(self, commit: CommitId) -> Mapping[str, StatusState]:
        """The newest status of each context that is shown beside a commit."""
        ...

    def open_pull_request(self, branch: str, base: str, title: str, body: str) -> PullRequest:
        """The pull request from `branch` into `base`: the one that exists, or a new one.

        One that people closed is the one that exists: they said no, and are not asked again.
        """
        ...

    def comment(self, number: int, marker: str, body: str) -> None:
        """Show a text on a pull request, in place of the one shown before under this marker.

        Args:
            number: Of the pull request.
            marker: Names what the text is; the same one replaces, another stands beside.
            body: Markdown.
        """
        ...
