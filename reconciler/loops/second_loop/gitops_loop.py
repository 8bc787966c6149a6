"""The second loop: fetch, validate, render, commit, push; again when the remote branch moved."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from reconciler.gitops.rendering.targets import (
    DEFAULT_OUTPUT,
    ONE_EACH,
    find_targets,
    overlooked,
    shared_outputs,
)
from reconciler.gitops.repository.commit_message import (
    RenderSource,
    commit_message,
    output_digest,
    review_branch,
    why_not_again,
)
from reconciler.gitops.repository.proposal import (
    Proposal,
    described_elsewhere,
    unchanged,
)
from reconciler.gitops.repository.status import ClusterState, ClusterStatus, GitopsReport
from reconciler.loops.second_loop.commit_statuses import CommitStatuses
from reconciler.loops.second_loop.poll_schedule import STANDBY_SECONDS, PollSchedule
from reconciler.loops.second_loop.preparing import GitopsPreparing, PreparedConfig, invalid
from reconciler.loops.second_loop.progress import GitopsProgress
from reconciler.loops.second_loop.publishing import GitopsPublishing, PublishedCommit, RenderCommit
from reconciler.loops.second_loop.turn_forge import TurnForge
from reconciler.model.errors import (
    ConfigError,
    Conflict,
    InputError,
    InvariantViolated,
    OutcomeUnknown,
    ReconcilerError,
    UsageError,
)
from reconciler.ports.clock import Clock
from reconciler.ports.forge import Forge
from reconciler.ports.repository import Commit, CommitId, Repository

Mode = Literal["push", "pull-request"]
TurnReporter = Callable[[GitopsReport | ReconcilerError], None]
Fetched = Callable[[Commit], None]
"""Called with each newest commit, on standby replicas too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitopsSettings:
    """Holds the settings of the second loop."""

    version: str
    """Of this program; it is part of the commits it makes."""
    branch: str = "main"
    """The branch that is followed; pull requests are opened against it."""
    configs: tuple[str, ...] = ("sectors.yaml",)
    """Paths or patterns inside the repository, see `find_targets`."""
    output: str = DEFAULT_OUTPUT
    """Output directory, relative to each config's own."""
    cluster_name: str | None = None
    """The name for the only config, whatever it says; of several configs, for those that name no
    cluster."""
    mode: Mode = "push"
    poll_seconds: float = 30.0
    attempts_max: int = 8
    """How many turns in a row may lose against the moving remote branch before the next poll."""
    backoff_seconds: float = 0.2
    """Pause after the first lost race; it doubles with each further one."""
    failing_poll_seconds_max: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drafted:
    """A decision about one cluster, before anything is pushed."""

    status: ClusterStatus
    commit: CommitId | None = None
    """The config's commit; None: it is older than the history that was fetched."""
    made: RenderCommit | None = None
    """The commit with its render; None: no commit was made."""


class GitopsLoop:
    """Brings the rendered directories of a config repository in line with its configs.

    Only `wake` and `stop` may be called from other threads.
    """

    def __init__(
        self,
        repository: Repository,
        clock: Clock,
        settings: GitopsSettings,
        forge: Forge | None = None,
        fetched: Fetched | None = None,
    ) -> None:
        self._repository = repository
        self._clock = clock
        self._settings = settings
        self._forge = None if forge is None else TurnForge(forge, clock)
        self._may_act: Callable[[], bool] = lambda: True
        self._statuses = CommitStatuses(self._forge)
        self._publishing = GitopsPublishing(repository, self._forge, settings.branch, self._leads)
        self._progress = GitopsProgress(repository, self._forge)
        self._preparing = GitopsPreparing(repository, settings.configs, settings.cluster_name)
        self._fetched = fetched
        self._tip: CommitId | None = None
        """The commit that was fetched last; None: the last fetch failed."""
        self._settled: GitopsReport | None = None
        """The last turn, when repeating it from the same commit could not achieve more."""
        self._woken = threading.Event()
        self._stopped = threading.Event()

    def once(self) -> GitopsReport:
        """Take one turn, repeated while the remote branch moves.

        Raises:
            Conflict: The remote branch moved more often than `attempts_max`.
            PortError: The remote refused, see Repository.
            ToolError: git is missing or failed.
            UsageError: The configured paths are invalid.
        """
        if self._forge is not None:
            self._forge.begin()
        attempt = 1
        while True:
            try:
                report = self._attempt()
                return replace(report, attempts=attempt, progress=self._progress.look(report))
            except (Conflict, OutcomeUnknown):
                # When the reply to a push was lost, the next fetch shows whether it arrived.
                last = attempt >= self._settings.attempts_max or self._stopped.is_set()
                if last or not self._leads():
                    raise
            self._clock.wait_seconds(self._settings.backoff_seconds * 2 ** (attempt - 1))
            attempt += 1

    def watch(self, report: TurnReporter, may_act: Callable[[], bool] = lambda: True) -> None:
        """Take a turn at once, then every `poll_seconds` and after each `wake`, until `stop`.

        A turn that fails is reported and tried again, later each time, or when the branch moves;
        the repository keeps its last good state meanwhile. Only a bug ends the loop.

        Args:
            report: Called with the result of each turn.
            may_act: Asked before each turn, each further attempt and each push; while it returns
                False nothing is pushed and no turn is taken, and the branch is only followed, if a
                follower is set.
        """
        self._may_act = may_act
        settings = self._settings
        schedule = PollSchedule(
            self._clock, settings.poll_seconds, settings.failing_poll_seconds_max
        )
        while not self._stopped.is_set():
            acts = may_act()
            if not acts and self._fetched is None:
                self._woken.wait(STANDBY_SECONDS)
                self._woken.clear()
                continue
            try:
                tip = None if acts and schedule.turn_is_due() else self._fetch().id
                if acts and (tip is None or schedule.is_news(tip)):
                    turn = self.once()
                    report(turn)
                    if turn.push_refused:
                        schedule.failed(self._tip)
                    else:
                        schedule.turned()
                schedule.fetched()
            except InvariantViolated:
                raise
            except ReconcilerError as error:
                schedule.failed(self._tip)
                report(error)
            if self._woken.wait(schedule.pause_seconds()):
                schedule.make_due()
            self._woken.clear()

    def wake(self) -> None:
        """Take the next turn now, for instance when a webhook reports a push."""
        self._woken.set()

    def stop(self) -> None:
        """End `watch` after the current turn."""
        self._stopped.set()
        self._woken.set()

    def _leads(self) -> bool:
        return self._may_act()

    def _attempt(self) -> GitopsReport:
        tip = self._fetch()
        settled = self._settled
        if settled is not None and settled.tip == tip and not self._publishing.review_changed():
            return settled
        report = self._turn(tip)
        # A change is proposed once: a branch that a reviewer deleted must not come back by itself.
        pushed = report.branch == self._settings.branch
        again = pushed or report.unshown or report.push_refused
        self._settled = None if again else report
        return report

    def _fetch(self) -> Commit:
        self._tip = None
        tip = self._repository.fetch()
        self._tip = tip.id
        if self._fetched is not None:
            self._fetched(tip)
        return tip

    def _turn(self, tip: Commit) -> GitopsReport:
        files = {file.path: file.blob for file in self._repository.files(tip.id)}
        targets = find_targets(tuple(files), self._settings.configs, self._settings.output)
        submodules, shared = self._repository.submodules(tip.id), shared_outputs(targets)
        prepared = [
            self._preparing.refused(
                tip, target, files, UsageError("--config", shared[target], ONE_EACH)
            )
            if target in shared
            else self._preparing.prepared(tip, target, files)
            for target in targets
        ]
        claimed = _claimed(prepared)
        heads: dict[str, CommitId] = {}
        drafts = [self._draft(tip, heads, prepared_config, claimed) for prepared_config in prepared]
        drafts = _with_copies(drafts, prepared)
        drafts = self._published(tip, drafts)
        unshown = self._statuses.show(tip.id, [(d.commit, d.status) for d in drafts])
        clusters = tuple(draft.status for draft in drafts)
        first = next((status for status in clusters if status.branch), None)
        return GitopsReport(
            tip=tip,
            clusters=clusters,
            branch=first.branch if first else "",
            pull_request=first.pull_request if first else "",
            unshown=unshown,
            overlooked=overlooked(tuple(files), submodules, self._settings.configs),
        )

    def _draft(
        self,
        tip: Commit,
        heads: dict[str, CommitId],
        prepared: PreparedConfig,
        claimed: Mapping[str, Sequence[str]],
    ) -> _Drafted:
        """Decide about one cluster and make its commit, on top of other new ones of its branch.

        Args:
            tip: The commit that the decision is based on.
            heads: The newest commit by branch; takes the one that is made.
            prepared: The cluster.
            claimed: Configs by what they describe.
        """
        target, status = prepared.target, prepared.ended
        if status is not None and (status.state == "missing" or self._forge is None):
            return _Drafted(status=status)  # its commit's id, shown elsewhere, is of no use here
        commit: CommitId | None = None
        try:
            found = self._repository.last_change(tip.id, [target.config_path])
            commit = None if found is None else found.id
            if prepared.proposal is not None:
                return self._decide(tip, heads, prepared, prepared.proposal, claimed, commit)
        except (ConfigError, InputError, UsageError) as error:
            status = invalid(target, error)
        assert status is not None, "without a proposal it ended already"
        return _Drafted(status=status, commit=commit)

    def _decide(
        self,
        tip: Commit,
        heads: dict[str, CommitId],
        prepared: PreparedConfig,
        proposal: Proposal,
        claimed: Mapping[str, Sequence[str]],
        commit: CommitId | None,
    ) -> _Drafted:
        """Make the commit of one cluster if anything differs; see `_draft`."""
        target = prepared.target
        status = unchanged(target, proposal)
        if self._repository.holds(tip.id, proposal.changes):
            self._preparing.needs_no_commit(prepared, status)
            return _Drafted(status=status, commit=commit)
        others = described_elsewhere(target, proposal.claims, claimed)
        if others:
            return _Drafted(status=replace(status, state="invalid", detail=others), commit=commit)
        source = self._source(tip, prepared, proposal)
        rendered = any(path != target.config_path for path, _ in prepared.seen)
        last = rendered and self._repository.last_change(tip.id, proposal.directories, deep=True)
        reason = why_not_again(
            source,
            last or None,
            lambda: self._preparing.output_there(tip, prepared),
            lambda path: any(file.path == path for file in self._repository.files(tip.id)),
        )
        if reason:
            return _Drafted(status=replace(status, state="held", detail=reason), commit=commit)
        branch = self._branch(tip, source, proposal)
        made = self._repository.commit(
            heads.get(branch, tip.id), proposal.changes, commit_message(source)
        )
        if made is None:
            return _Drafted(status=status, commit=commit)
        heads[branch] = made.id
        state: ClusterState = "committed" if self._settings.mode == "push" else "proposed"
        status = replace(status, state=state)
        kept = RenderCommit(source=source, changes=proposal.changes, commit=made.id, branch=branch)
        return _Drafted(status=status, commit=source.commit.id, made=kept)

    def _source(self, tip: Commit, prepared: PreparedConfig, proposal: Proposal) -> RenderSource:
        """Return what is rendered; older history is searched for the config's commit if need be."""
        path = prepared.target.config_path
        return RenderSource(
            target=prepared.target,
            blob=prepared.blob,
            commit=self._repository.last_change(tip.id, [path], deep=True) or tip,
            version=self._settings.version,
            output=output_digest(proposal.files),
        )

    def _branch(self, tip: Commit, source: RenderSource, proposal: Proposal) -> str:
        """Return the branch for a render: a review is of one config and one commit of it.

        A branch that exists proposes this render already, whichever loop pushed it. So its name
        tells the config and its directory as well: loops that follow one config each may find the
        same commit. What differs after its review (a newer program, an edit by hand) goes to a
        branch named after the commit that it would change, since the branch of the earlier review
        may still exist after it was merged or closed.
        """
        if self._settings.mode == "push":
            return self._settings.branch
        paths = [source.target.config_path, *proposal.directories]
        newest = self._repository.last_change(tip.id, paths)
        return review_branch(source.target, newest.short if newest else source.blob[:12])

    def _published(self, tip: Commit, drafts: list[_Drafted]) -> list[_Drafted]:
        """Push every branch and return the drafts with what became of their commits."""
        found = self._publishing.publish(tip.id, [d.made for d in drafts if d.made is not None])
        return [
            d
            if d.made is None
            else replace(d, status=_published(d.status, d.made, found[d.status.target.config_path]))
            for d in drafts
        ]


def _claimed(prepared: Sequence[PreparedConfig]) -> dict[str, list[str]]:
    """Return the paths of configs by what they describe."""
    claimed: dict[str, list[str]] = {}
    for prepared_config in prepared:
        for claim in prepared_config.claims:
            claimed.setdefault(claim, []).append(prepared_config.target.config_path)
    return claimed


def _with_copies(drafts: Sequence[_Drafted], prepared: Sequence[PreparedConfig]) -> list[_Drafted]:
    """Return the drafts, in which unchanged configs that describe the same are invalid.

    A folder that was copied with its render changes nothing, so no status would tell of it. Where
    one of the two is invalid already, that one tells of it, and the other goes on.
    """
    both = list(zip(drafts, prepared, strict=True))
    claimed = _claimed(
        [prepared_config for draft, prepared_config in both if draft.status.state != "invalid"]
    )
    found = []
    for draft, each in both:
        status, others = draft.status, ""
        if status.state == "unchanged":
            others = described_elsewhere(each.target, each.claims, claimed)
        if others:
            status = replace(status, state="invalid", detail=others)
        found.append(replace(draft, status=status))
    return found


def _published(
    status: ClusterStatus, made: RenderCommit, published: PublishedCommit
) -> ClusterStatus:
    """Return the status of a config whose commit was pushed, refused, or is not wanted."""
    if published.closed:
        closed = replace(status, state="held", detail=published.closed)
        return replace(closed, pull_request=published.pull_request)
    if published.commit is None:
        return replace(status, state="refused", detail=published.refused)
    return replace(
        status,
        commit=published.commit,
        branch=made.branch,
        pull_request=published.pull_request,
    )
