"""Follows the configs of the second loop through the stages of the pipeline."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from reconciler.gitops.repository.progress import progress_of, stage_context
from reconciler.gitops.repository.status import ClusterProgress, ClusterStatus, GitopsReport
from reconciler.model.errors import PortError, ToolError
from reconciler.ports.forge import Forge, StatusState
from reconciler.ports.repository import CommitId, Repository

COMMITS_MAX: Final = 10
"""Pipelines run for the last commit of a push; a render with more commits than this after it is not
followed any more."""

EAGER_LOOKS: Final = 20
SELDOM: Final = 20
"""After this many looks without a change only every 20th asks the forge: forges limit requests, and
a pipeline may wait for days for its approval, or have no token to publish a status with."""


def is_due(looks: int) -> bool:
    """Return whether the forge is asked again after so many looks at what it answered."""
    return looks <= EAGER_LOOKS or looks % SELDOM == 0


@dataclass(slots=True, kw_only=True)
class _Reported:
    """What the forge answered about the render of one root module."""

    render: CommitId
    found: Mapping[str, StatusState] = field(default_factory=dict)
    looks: int = 0
    """Since the last change."""


class GitopsProgress:
    """Asks the forge how the pipeline's stages ended.

    Args:
        repository: The config repository; it must have been fetched right before `look` is called.
        forge: None: the stages of the pipeline are not known.
    """

    def __init__(self, repository: Repository, forge: Forge | None) -> None:
        self._repository = repository
        self._forge = forge
        self._tip: CommitId | None = None
        self._commits: dict[str, tuple[CommitId, ...]] = {}
        """By root module: the commit of its render and later ones, newest first."""
        self._reported: dict[str, _Reported] = {}
        """By root module: what the forge answered about its render."""

    def look(self, report: GitopsReport) -> tuple[ClusterProgress, ...]:
        """Return where each cluster stands; what the forge does not answer counts as not done."""
        if self._tip != report.tip.id:
            self._tip, self._commits = report.tip.id, {}
        asked: dict[CommitId, Mapping[str, StatusState]] = {}
        return tuple(
            progress_of(cluster, self._checks(report, cluster, asked))
            for cluster in report.clusters
        )

    def _checks(
        self,
        report: GitopsReport,
        status: ClusterStatus,
        asked: dict[CommitId, Mapping[str, StatusState]],
    ) -> Mapping[str, StatusState] | None:
        if self._forge is None:
            return None
        if status.state != "unchanged":
            return {}  # just pushed, or not rendered at all
        return {
            context: state
            for root in status.roots
            for context, state in self._of_root(report.tip.id, root, asked).items()
        }

    def _of_root(
        self, tip: CommitId, root: str, asked: dict[CommitId, Mapping[str, StatusState]]
    ) -> Mapping[str, StatusState]:
        """Return the statuses since one root module changed.

        A commit that changes the files of one Region only is planned and applied there only; the
        statuses of the others are those of their own last render.
        """
        if root not in self._commits:
            self._commits[root] = self._since_render(tip, root)
        commits = self._commits[root]
        render = commits[-1]
        reported = self._reported.get(root)
        if reported is None or reported.render != render:
            reported = self._reported[root] = _Reported(render=render)
        applied, planned = stage_context("apply", root), stage_context("plan", root)
        reported.looks += 1
        if reported.found.get(applied) == "success":
            return reported.found  # nothing more can change
        if not is_due(reported.looks):
            return reported.found
        found = self._newest(commits, frozenset({planned, applied}), asked)
        if found != reported.found:
            reported.found, reported.looks = found, 0
        return found

    def _newest(
        self,
        commits: Iterable[CommitId],
        contexts: frozenset[str],
        asked: dict[CommitId, Mapping[str, StatusState]],
    ) -> Mapping[str, StatusState]:
        """Return the newest status of each context on commits, newest first."""
        found: dict[str, StatusState] = {}
        for commit in commits:
            if commit not in asked:
                asked[commit] = self._statuses(commit)
            for context in contexts & asked[commit].keys():
                found.setdefault(context, asked[commit][context])
        return found

    def _since_render(self, tip: CommitId, root: str) -> tuple[CommitId, ...]:
        try:
            render = self._repository.last_change(tip, [root], deep=True)
        except (PortError, ToolError):
            # The turn's work is done: what is known so far has to suffice.
            render = self._repository.last_change(tip, [root])
        if render is None:
            return (tip,)
        return self._repository.since(tip, render.id, COMMITS_MAX)

    def _statuses(self, commit: CommitId) -> Mapping[str, StatusState]:
        try:
            return {} if self._forge is None else self._forge.statuses(commit)
        except (PortError, ToolError):
            return {}
