"""Pushes what the second loop committed, and opens the pull requests for it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from reconciler.gitops.repository.commit_message import RenderSource, commit_message, request_body
from reconciler.loops.second_loop.progress import is_due
from reconciler.model.errors import Conflict, Forbidden, PortError, Refused, ToolError
from reconciler.ports.forge import Forge, PullRequest
from reconciler.ports.repository import CommitId, FileChange, Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderCommit:
    """The commit of one config's render, before it is pushed."""

    source: RenderSource
    changes: tuple[FileChange, ...]
    commit: CommitId
    """On top of the earlier ones of its branch."""
    branch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCommit:
    """What became of one config's commit."""

    commit: CommitId | None
    """The commit that the remote has; None: it refused it."""
    pull_request: str = ""
    """Address of the pull request, when a forge opened one."""
    closed: str = ""
    """What to tell where people closed the pull request: nothing is pushed for it any more."""
    refused: str = ""
    """Why the remote or the forge refused it."""


class GitopsPublishing:
    """Brings commits to the remote.

    Args:
        repository: The config repository.
        forge: None: branches are pushed, pull requests are opened by people.
        base: The branch that is followed; every other one is for review.
        may_act: Asked right before each push and each pull request: a turn may take minutes, and
            another replica may lead by then.
    """

    def __init__(
        self,
        repository: Repository,
        forge: Forge | None,
        base: str,
        may_act: Callable[[], bool],
    ) -> None:
        self._repository = repository
        self._forge = forge
        self._base = base
        self._may_act = may_act
        self._reviews: dict[str, bool] = {}
        """By branch for review: whether its pull request was closed when the last turn asked."""
        self._looks = 0
        """How often `review_changed` was called since the last turn."""

    def review_changed(self) -> bool:
        """Return whether people closed or reopened a pull request since the last turn.

        The forge is asked at the first calls after a turn, later seldom; what it does not answer
        counts as unchanged.
        """
        self._looks += 1
        if self._forge is None or not is_due(self._looks):
            return False
        for branch, was_closed in self._reviews.items():
            try:
                pull_request = self._forge.pull_request(branch, self._base)
            except (PortError, ToolError):
                return False
            if pull_request is not None and pull_request.closed != was_closed:
                return True
        return False

    def publish(self, tip: CommitId, made: Sequence[RenderCommit]) -> dict[str, PublishedCommit]:
        """Push every branch, whatever happens to the others.

        Args:
            tip: The commit that the first commit of each branch is based on.
            made: The commits, those of one branch in their order.

        Returns:
            What became of them, by the path of the config.

        Raises:
            PortError: A branch was not pushed or its pull request not opened for another reason
                than a missing right; the first such error.
        """
        self._reviews, self._looks = {}, 0
        published_commits: dict[str, PublishedCommit] = {}
        failures: list[PortError] = []
        for branch in dict.fromkeys(render_commit.branch for render_commit in made):
            of_branch = [render_commit for render_commit in made if render_commit.branch == branch]
            try:
                published_commits |= self._publish(tip, of_branch)
            except PortError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return published_commits

    def _publish(self, tip: CommitId, made: Sequence[RenderCommit]) -> dict[str, PublishedCommit]:
        """Publish the commits of one branch."""
        try:
            if made[-1].branch == self._base:
                self._push(made[-1].commit)
            else:
                return {made[-1].source.target.config_path: self._propose(made[-1])}
        except Forbidden as error:
            if len(made) > 1:
                return self._one_by_one(tip, made)
            return {made[0].source.target.config_path: _refused(error)}
        return {
            render_commit.source.target.config_path: PublishedCommit(commit=render_commit.commit)
            for render_commit in made
        }

    def _one_by_one(
        self, tip: CommitId, made: Sequence[RenderCommit]
    ) -> dict[str, PublishedCommit]:
        """Push to the followed branch what the remote takes.

        A rule of the forge may protect one cluster's paths, and the refusal of a push does not say
        which commit it is about.
        """
        published_commits: dict[str, PublishedCommit] = {}
        for render_commit in made:
            again = self._repository.commit(
                tip, render_commit.changes, commit_message(render_commit.source)
            )
            assert again is not None, "no other commit changes these files"
            path = render_commit.source.target.config_path
            try:
                self._push(again.id)
            except Forbidden as error:
                published_commits[path] = _refused(error)
                continue
            tip = again.id
            published_commits[path] = PublishedCommit(commit=again.id)
        return published_commits

    def _propose(self, made: RenderCommit) -> PublishedCommit:
        """Push a branch for review, and ask for its review where there is a forge.

        Forges delete the branch of a pull request that was closed; it must not come back.
        """
        known = self._known_request(made.branch)
        if known is not None and known.closed:
            what = f"its pull request {known.number} was closed: reopen it, or change the config"
            return PublishedCommit(commit=None, pull_request=known.url, closed=what)
        commit = self._pushed(made)
        if self._forge is None:
            return PublishedCommit(commit=commit)
        self._reviews[made.branch] = False
        if known is not None:
            return PublishedCommit(commit=commit, pull_request=known.url)
        title, _, _ = commit_message(made.source).partition("\n\n")
        body = request_body(made.source)
        self._assert_leads()
        request = self._forge.open_pull_request(made.branch, self._base, title, body)
        return PublishedCommit(commit=commit, pull_request=request.url)

    def _known_request(self, branch: str) -> PullRequest | None:
        """Return the pull request of a branch; None as well where it may not be read."""
        if self._forge is None:
            return None
        with suppress(Forbidden):
            pull_request = self._forge.pull_request(branch, self._base)
            self._reviews[branch] = pull_request is not None and pull_request.closed
            return pull_request
        return None

    def _push(self, commit: CommitId, branch: str | None = None) -> None:
        self._assert_leads()
        self._repository.push(commit, branch)

    def _assert_leads(self) -> None:
        """Raise Refused when this replica leads no more; nothing was sent then."""
        if not self._may_act():
            raise Refused("gitops", "this replica is not the leader")

    def _pushed(self, made: RenderCommit) -> CommitId:
        """Return the commit that the remote has on the branch for review.

        A branch that exists with another base proposes this already, and people may be reviewing
        it: it is never rewritten. Its pull request may still be missing, when the last turn ended
        between the push and the request.

        Raises:
            Conflict: The remote has no such branch and did not take it now.
            Forbidden: It cannot take it while a branch has the name of a folder of this one.
        """
        try:
            self._push(made.commit, made.branch)
        except Conflict:
            above = [str(parent) for parent in PurePosixPath(made.branch).parents][:-1]
            there = self._repository.heads([made.branch, *above])
            if made.branch in there:
                return there[made.branch]
            if there:
                what = f"the branch {', '.join(there)} is in the way of {made.branch}"
                raise Forbidden("git push", what, "give it another name, or remove it") from None
            raise
        return made.commit


def _refused(error: Forbidden) -> PublishedCommit:
    return PublishedCommit(commit=None, refused=str(error))
