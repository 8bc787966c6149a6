"""The forge around the config repository: commit statuses and pull requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from reconciler.ports.repository import CommitId

StatusState = Literal["pending", "success", "failure", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitStatus:
    """A status of a commit."""

    context: str
    """Which check this is: `fleet-reconciler/sectors.yaml`; the newest per context counts."""
    state: StatusState
    description: str
    """One line; forges cut it at about 140 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A pull (or merge) request."""

    number: int
    url: str
    closed: bool = False
    """Whether people closed it without merging it."""


class Forge(Protocol):
    """GitHub, GitLab or the like, used through its REST API.

    Every method may raise Throttled, Forbidden, NotFound or Unavailable (nothing was changed) and
    OutcomeUnknown (sent, but the reply was lost).
    """

    def set_status(self, commit: CommitId, status: CommitStatus) -> None:
        """Publish a status on a commit; repeating it is harmless."""
        ...

    def statuses(self, commit: CommitId) -> Mapping[str, StatusState]:
        """Return the newest status of each context on a commit."""
        ...

    def pull_request(self, branch: str, base: str) -> PullRequest | None:
        """Return the newest pull request from `branch` into `base`.

        None: there is none, or it was merged and its review is over.
        """
        ...

    def open_pull_request(self, branch: str, base: str, title: str, body: str) -> PullRequest:
        """Return the pull request from `branch` into `base`: the existing one, or a new one.

        A request that people closed counts as existing: they declined it, and are not asked again.
        One that was merged does not: its review is over.
        """
        ...

    def comment(self, number: int, marker: str, body: str) -> None:
        """Write a comment on a pull request, in place of an earlier one with this marker.

        Args:
            number: Of the pull request.
            marker: Identifies the comment; one with the same marker is replaced, others stay.
            body: Markdown.
        """
        ...
