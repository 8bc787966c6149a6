"""What the second loop shows beside config commits: each end once, failures told, nothing lost."""

from collections.abc import Iterable

from reconciler.gitops.status import ClusterStatus
from reconciler.model.errors import OutcomeUnknown, PortError, Throttled, ToolError, Unavailable
from reconciler.ports.forge import CommitStatus, Forge
from reconciler.ports.repository import CommitId

DESCRIPTION_MAX = 140


class CommitStatuses:
    """Shows the end of each config beside the commit that changed it last.

    Args:
        forge: Where; None shows nothing.
    """

    def __init__(self, forge: Forge | None) -> None:
        self._forge = forge
        self._shown: dict[str, tuple[CommitId | None, CommitStatus]] = {}
        """The last one per config: fifty clusters must not cost fifty calls at every commit."""

    def show(
        self, tip: CommitId, ends: Iterable[tuple[CommitId | None, ClusterStatus]]
    ) -> tuple[str, ...]:
        """Show what is new.

        Args:
            tip: The newest commit; a failure is shown there, once, when the config's own commit
                is too old to be known.
            ends: Config commit (None: too old to be known) and what came of it, one per config.

        Returns:
            Why statuses that may be taken another time were not; one refused for good is dropped.
        """
        if self._forge is None:
            return ()
        missed = []
        for commit, end in ends:
            status = _status(end)
            if self._known(commit, status):
                continue
            try:
                self._forge.set_status(commit or tip, status)
            except (Throttled, Unavailable, OutcomeUnknown, ToolError) as error:
                missed.append(str(error))
                continue
            except PortError as error:
                missed.append(str(error))
            self._shown[status.context] = (commit, status)
        return tuple(missed)

    def _known(self, commit: CommitId | None, status: CommitStatus) -> bool:
        """Whether there is nothing to show: fifty old configs would cost fifty calls a commit."""
        last = self._shown.get(status.context)
        if commit is not None:
            return last == (commit, status)
        told = None if last is None else last[1]
        was_healthy = told is None or told.state == "success"
        return told == status or (was_healthy and status.state == "success")


def _status(end: ClusterStatus) -> CommitStatus:
    return CommitStatus(
        context=f"fleet-reconciler/{end.target.config_path}",
        state="success" if end.healthy else "failure",
        description=(end.detail or end.state)[:DESCRIPTION_MAX],
    )
