"""The thread that takes part in the election, and its answers to the rest of the program."""

import threading
from collections.abc import Callable
from typing import Any

import structlog

from reconciler.loops.lease.election import Election
from reconciler.telemetry import events

JOIN_SECONDS = 5.0
"""How long `stop` waits for a server that does not answer; after that the Lease expires by
itself."""
IDLE_SECONDS = 1.0
"""How often a replica that may not lead checks whether it may by now."""


class Leadership:
    """Runs an Election in a thread of its own, so that no cycle, however long, delays a renewal.

    Args:
        election: This replica's part; None: leader election is off, this replica always leads.
        hindrance: Returns why this replica may not lead at all; empty if it may. A dry run must not
            keep others from acting.
        gained: Called when this replica began to lead.
        broken: Called when a bug ended the thread: this replica cannot lead any more, and the
            program has to end. `stop` raises the bug.
        lost: Called with the reason when this replica leads no longer.
    """

    def __init__(
        self,
        election: Election | None,
        hindrance: Callable[[], str],
        gained: Callable[[], None],
        broken: Callable[[], None] = lambda: None,
        lost: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._log: Any = structlog.get_logger()
        self._election = election
        self._hindrance = hindrance
        self._hindered_by = ""
        self._gained = gained
        self._broken = broken
        self._lost = lost
        self._bug: Exception | None = None
        self._due = threading.Event()
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._led = False
        self._thread = threading.Thread(target=self._run, name="election", daemon=True)

    @property
    def enabled(self) -> bool:
        """Return whether there is an election."""
        return self._election is not None

    @property
    def identity(self) -> str:
        """Return the identity of this process in the election; empty when there is none."""
        return "" if self._election is None else self._election.identity

    @property
    def holder(self) -> str:
        """Return who held the Lease when it was read last; empty when free or unknown."""
        return "" if self._election is None else self._election.holder

    @property
    def trouble(self) -> str:
        """Return why this replica could not take part in the election last time; else empty."""
        if self._election is None:
            return ""
        return self._hindered_by or self._election.trouble

    def may_act(self) -> bool:
        """Return whether this replica is certainly the leader at this moment."""
        return self._election is None or (self._bug is None and self._election.may_act())

    def start(self) -> None:
        """Start to take part."""
        if self._election is not None:
            self._thread.start()

    def look(self) -> None:
        """Read the Lease now, since it was written; a leader need not, as it probably wrote it."""
        if not self.may_act():
            self._due.set()

    def wait_until_leading(self, seconds: float) -> bool:
        """Wait for the lead; return whether it was gained within the time and before `stop`."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.may_act() or self._stopping.is_set() or self._bug is not None, seconds
            )
        return self.may_act()

    def stop(self) -> None:
        """End and let another replica take over at once; call it when nothing acts any more.

        Raises:
            Exception: The bug that ended the thread; the Lease runs out by itself.
        """
        self._stopping.set()
        self._due.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(JOIN_SECONDS)
        if self._bug is not None:
            raise self._bug

    def _run(self) -> None:
        if self._election is None:
            return
        try:
            self._take_part(self._election)
        except Exception as error:  # noqa: BLE001 - raised again by `stop`
            with self._changed:
                self._bug = error
                self._changed.notify_all()
            self._broken()

    def _take_part(self, election: Election) -> None:
        while True:
            self._due.clear()  # before the check of `stopping`, or a stop in between is missed
            if self._stopping.is_set():
                break
            self._hindered_by = self._hindrance()
            self._tell(election)  # a lead that expired is reported, also when this step regains it
            if self._hindered_by:
                election.release()
                pause_seconds = IDLE_SECONDS
            else:
                pause_seconds = election.step()
            self._tell(election)
            self._due.wait(pause_seconds)
        election.release()
        self._tell(election)

    def _tell(self, election: Election) -> None:
        leads = election.may_act()
        if leads == self._led:
            return
        self._led = leads
        if leads:
            self._log.info(events.LEADING_BEGAN, identity=election.identity)
            with self._changed:
                self._changed.notify_all()
            self._gained()
        else:
            reason = self._hindered_by or election.why_ended()
            self._log.warning(
                events.LEADING_ENDED,
                identity=election.identity,
                holder=election.holder,
                reason=reason,
            )
            self._lost(reason)
