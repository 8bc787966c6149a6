"""Publishes commit statuses for config commits, each result once; failed ones are retried."""

from collections.abc import Iterable

from reconciler.gitops.repository.status import ClusterStatus
from reconciler.model.errors import OutcomeUnknown, PortError, Throttled, ToolError, Unavailable
from reconciler.ports.forge import CommitStatus, Forge
from reconciler.ports.repository import CommitId

DESCRIPTION_MAX = 140


class CommitStatuses:
    """Publishes the result of each config on the commit that changed the config last.

    Args:
        forge: Where statuses are published; None: nowhere.
    """

    def __init__(self, forge: Forge | None) -> None:
        self._forge = forge
        self._shown: dict[str, tuple[CommitId | None, CommitStatus]] = {}
        """The last one per config, so that a new commit does not cost one call per config."""
        self._failed: list[str] = []
        """Contexts with which a turn's failures began, the latest last: each had its try."""

    def show(
        self, tip: CommitId, ends: Iterable[tuple[CommitId | None, ClusterStatus]]
    ) -> tuple[str, ...]:
        """Publish what is new.

        Args:
            tip: The newest commit; when the config's own commit is too old to be known, a failure
                is published here, once.
            ends: Config commit (None: too old to be known) and its result, one per config.

        Returns:
            Why statuses that will be retried were not accepted; one that was refused permanently is
            dropped.
        """
        if self._forge is None:
            return ()
        missed: list[str] = []
        wanted = [(commit, _status(end)) for commit, end in ends]
        # A forge that hangs with one status is not asked about those after it in the same turn.
        wanted.sort(key=lambda each: self._tried(each[1].context))
        for commit, status in wanted:
            if self._is_published(commit, status):
                continue
            try:
                self._forge.set_status(commit or tip, status)
            except (Throttled, Unavailable, OutcomeUnknown, ToolError) as error:
                if not missed:
                    self._goes_last(status.context)
                missed.append(str(error))
                continue
            except PortError as error:
                missed.append(str(error))
            self._shown[status.context] = (commit, status)
        return tuple(missed)

    def _tried(self, context: str) -> int:
        """Return the place in the order of a turn; the same for all that began no failures."""
        return self._failed.index(context) + 1 if context in self._failed else 0

    def _goes_last(self, context: str) -> None:
        self._failed = [*(each for each in self._failed if each != context), context]

    def _is_published(self, commit: CommitId | None, status: CommitStatus) -> bool:
        """Return whether there is nothing to publish; old configs cost no call per commit."""
        last = self._shown.get(status.context)
        if commit is not None:
            return last == (commit, status)
        previous = None if last is None else last[1]
        was_healthy = previous is None or previous.state == "success"
        return previous == status or (was_healthy and status.state == "success")


def _status(end: ClusterStatus) -> CommitStatus:
    return CommitStatus(
        context=f"fleet-reconciler/{end.target.config_path}",
        state="success" if end.healthy else "failure",
        description=(end.detail or end.state)[:DESCRIPTION_MAX],
    )
