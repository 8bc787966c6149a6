"""Pushes what the second loop committed, and opens the pull requests for it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from reconciler.gitops.repository.commit_message import RenderSource, commit_message, request_body
from reconciler.model.errors import Conflict, PortError
from reconciler.ports.forge import Forge
from reconciler.ports.repository import CommitId, Repository


class GitopsPublishing:
    """Brings commits to the remote.

    Args:
        repository: The config repository.
        forge: None: branches are pushed, pull requests are opened by people.
        base: The branch that is followed; every other one is for review.
    """

    def __init__(self, repository: Repository, forge: Forge | None, base: str) -> None:
        self._repository = repository
        self._forge = forge
        self._base = base

    def publish(
        self, heads: Mapping[str, CommitId], sources: Mapping[str, Sequence[RenderSource]]
    ) -> dict[str, str]:
        """Push every branch, whatever happens to the others.

        Args:
            heads: The newest commit by branch.
            sources: What the commits of each branch were rendered from, in their order.

        Returns:
            Addresses of pull requests by branch; empty without one.

        Raises:
            PortError: A branch was refused or its pull request not opened; the first such error.
        """
        opened: dict[str, str] = {}
        failures: list[PortError] = []
        for branch, head in heads.items():
            try:
                opened[branch] = self._publish(branch, head, sources[branch])
            except PortError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return opened

    def _publish(self, branch: str, head: CommitId, sources: Sequence[RenderSource]) -> str:
        if branch == self._base:
            self._repository.push(head)
            return ""
        # A branch that exists with another base proposes this already, and people may be reviewing
        # it: it is never rewritten. Its pull request may still be missing, when the last turn ended
        # between the push and the request.
        with suppress(Conflict):
            self._repository.push(head, branch)
        return self._open(branch, sources[-1])

    def _open(self, branch: str, source: RenderSource) -> str:
        if self._forge is None:
            return ""
        title, _, _ = commit_message(source).partition("\n\n")
        return self._forge.open_pull_request(branch, self._base, title, request_body(source)).url
