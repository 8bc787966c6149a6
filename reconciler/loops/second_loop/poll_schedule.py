"""Decides when the second loop fetches and takes a turn: failures are retried ever later."""

from typing import Final

from reconciler.ports.clock import Clock
from reconciler.ports.repository import CommitId

STANDBY_SECONDS: Final = 1.0
"""How often a standby replica that follows no branch checks whether it may act."""
DOUBLINGS_MAX: Final = 10


class PollSchedule:
    """Delays what fails, and nothing else.

    The capacity loop's config comes with each fetch: a push that the remote refuses must not delay
    it.

    Args:
        clock: Its time.
        poll_seconds: Between two polls while nothing fails.
        longest_seconds: Between two attempts of what fails, unless polls are further apart.
    """

    def __init__(self, clock: Clock, poll_seconds: float, longest_seconds: float) -> None:
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._longest_seconds = max(poll_seconds, longest_seconds)
        self._fetches_failed = 0
        self._turns_failed = 0
        self._tip: CommitId | None = None
        """The commit that the last turn failed with."""
        self._again_seconds = 0.0
        """Monotonic time before which that commit is not retried."""

    def turn_is_due(self) -> bool:
        """Return whether to take a turn whatever the newest commit is."""
        return self._tip is None or self._clock.monotonic_seconds() >= self._again_seconds

    def is_news(self, tip: CommitId) -> bool:
        """Return whether the newest commit differs from the one that the last turn failed with."""
        return tip != self._tip

    def fetched(self) -> None:
        """Note that the remote answered."""
        self._fetches_failed = 0

    def turned(self) -> None:
        """Note that a turn succeeded."""
        self._turns_failed = 0
        self._tip = None

    def failed(self, tip: CommitId | None) -> None:
        """Note that a turn failed.

        Args:
            tip: The commit of the turn; None: the fetch failed.
        """
        if tip is None:
            self._fetches_failed += 1
            return
        self._fetches_failed = 0
        self._turns_failed += 1
        self._tip = tip
        self._again_seconds = self._clock.monotonic_seconds() + self._later(self._turns_failed)

    def make_due(self) -> None:
        """Make the next turn due now."""
        self._tip = None

    def pause_seconds(self) -> float:
        """Return the seconds until the next fetch."""
        return self._later(self._fetches_failed)

    def _later(self, failures: int) -> float:
        return min(self._poll_seconds * 2.0 ** min(failures, DOUBLINGS_MAX), self._longest_seconds)
