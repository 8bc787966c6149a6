"""The forge within one turn: one that does not answer is not waited for again and again."""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from reconciler.model.errors import OutcomeUnknown, Throttled, Unavailable
from reconciler.ports.clock import Clock
from reconciler.ports.forge import CommitStatus, Forge, PullRequest, StatusState
from reconciler.ports.repository import CommitId

WAITED_SECONDS_MAX: Final = 5.0
"""How long calls that fail may take together. The turn waits for them, and the capacity loop hears
of the next commit when the turn is over; with fifty clusters that was an hour. Failures that come
at once, such as one commit of which the forge answers 500, stop no other call."""

_Answer = TypeVar("_Answer")


class TurnForge:
    """A forge that is not asked again in a turn in which it did not answer, or asked for a pause.

    Args:
        forge: The forge.
        clock: Its time.
    """

    def __init__(self, forge: Forge, clock: Clock) -> None:
        self._forge = forge
        self._clock = clock
        self._waited_seconds = 0.0
        self._away = ""
        """Why it is not asked any more in this turn."""

    def begin(self) -> None:
        """Ask it again, since a new turn begins."""
        self._waited_seconds, self._away = 0.0, ""

    def set_status(self, commit: CommitId, status: CommitStatus) -> None:
        """See Forge.set_status."""
        self._asked(lambda: self._forge.set_status(commit, status))

    def statuses(self, commit: CommitId) -> Mapping[str, StatusState]:
        """See Forge.statuses."""
        return self._asked(lambda: self._forge.statuses(commit))

    def pull_request(self, branch: str, base: str) -> PullRequest | None:
        """See Forge.pull_request."""
        return self._asked(lambda: self._forge.pull_request(branch, base))

    def open_pull_request(self, branch: str, base: str, title: str, body: str) -> PullRequest:
        """See Forge.open_pull_request."""
        return self._asked(lambda: self._forge.open_pull_request(branch, base, title, body))

    def comment(self, number: int, marker: str, body: str) -> None:
        """See Forge.comment."""
        self._asked(lambda: self._forge.comment(number, marker, body))

    def _asked(self, call: Callable[[], _Answer]) -> _Answer:
        """Return what a call answers.

        Raises:
            Unavailable: It is not asked any more in this turn; and as the call does.
        """
        if self._away:
            raise Unavailable("the forge", f"not asked again in this turn: {self._away}")
        began = self._clock.monotonic_seconds()
        try:
            return call()
        except (Throttled, Unavailable, OutcomeUnknown) as error:
            self._waited_seconds += self._clock.monotonic_seconds() - began
            if isinstance(error, Throttled) or self._waited_seconds >= WAITED_SECONDS_MAX:
                self._away = str(error)
            raise
