"""Leader election: of several replicas, the one that holds the Lease acts.

The rules are client-go's: candidates never compare clocks. A candidate takes the Lease when it has
seen it unchanged for its whole lease duration, by its own clock: only renewals that it saw count,
never a time that another candidate wrote. A Lease that somebody deleted counts as unchanged, since
its holder still acts. A leader that did not renew within the shorter renew deadline, counted from
before its last successful request was sent, has stopped acting by then. The difference between the
two times is the margin for calls in flight and for clocks that do not run equally fast.
"""

import math
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.errors import Conflict, PortError, UsageError
from reconciler.ports.leases import LeaseRecord, Leases

TRANSITIONS_MAX: Final = 2**31 - 1
"""An int32 in coordination.k8s.io/v1: the server refuses more."""
JITTER = 1.2
"""Candidates try at random intervals of up to this many retry periods, so that they do not all try
at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionTiming:
    """Holds the three times of client-go's leader election; the defaults are its own."""

    lease_duration_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 2.0

    def __post_init__(self) -> None:
        """Refuse times that would let two replicas act at once.

        Raises:
            UsageError: They are not lease duration > renew deadline > 1.2 x retry period > 0.
        """
        retry = self.retry_period_seconds * JITTER
        if not self.lease_duration_seconds > self.renew_deadline_seconds > retry > 0:
            raise UsageError(
                "leader_election",
                "needs lease_duration > renew_deadline > 1.2 x retry_period > 0",
                "15s, 10s and 2s are the defaults",
            )


class Election:
    """Takes one replica's part in the election. `step` is for one thread; the rest is thread-safe.

    Args:
        leases: The Lease.
        identity: Of this process; no other live process may use it.
        timing: The times.
        now: The wall clock; it is written for others to read and decides nothing.
        monotonic_seconds: A clock that never jumps, and runs on while the machine is suspended.
    """

    def __init__(
        self,
        leases: Leases,
        identity: str,
        timing: ElectionTiming,
        now: Callable[[], datetime],
        monotonic_seconds: Callable[[], float],
    ) -> None:
        self.identity = identity
        self._leases = leases
        self._timing = timing
        self._now = now
        self._monotonic_seconds = monotonic_seconds
        self._lock = threading.Lock()
        self._acts_until = float("-inf")
        self._seen: LeaseRecord | None = None
        self._seen_at = float("-inf")
        self._trouble = ""
        self._released = False

    @property
    def holder(self) -> str:
        """Return who held the Lease when it was read last; empty: nobody, or it was never read."""
        return self._seen.holder if self._seen is not None else ""

    @property
    def trouble(self) -> str:
        """Return why the last step failed; empty when it did not."""
        return self._trouble

    def may_act(self) -> bool:
        """Return whether this replica is certainly the leader now."""
        return self._monotonic_seconds() < self._acts_until

    def step(self) -> float:
        """Renew the Lease, or take it if that is allowed.

        Returns:
            Seconds until the next step is due.
        """
        with self._lock:
            began = self._monotonic_seconds()
            try:
                if not self._renew_unread(began):
                    self._read_and_try()
                self._trouble = ""
            except PortError as error:
                self._trouble = str(error)
            return self._pause_seconds()

    def why_ended(self) -> str:
        """Return why this replica is no longer the leader."""
        if self._released:
            return "released"
        if self.holder not in {"", self.identity}:
            return f"{self.holder} has taken the Lease"
        late = f"not renewed within {self._timing.renew_deadline_seconds:g} s"
        return f"{late}: {self._trouble}" if self._trouble else late

    def release(self) -> None:
        """Stop acting and let another replica take over at once; for an orderly end.

        If the Lease cannot be written, the others wait for the lease duration.
        """
        with self._lock:
            leads = self.may_act()
            self._acts_until = float("-inf")
            if not leads or self._seen is None:
                return
            self._released = True
            try:
                self._let_go()
            except PortError as error:
                self._trouble = str(error)

    def _let_go(self) -> None:
        """Remove our name from the Lease; its annotations may have changed since it was renewed."""
        while self._seen is not None and self._seen.holder == self.identity:
            free = replace(self._seen, holder="", duration_seconds=1, renewed_at=self._stamp())
            try:
                self._note_read(self._leases.write(free))
            except Conflict:
                self._note_read(self._leases.read() or LeaseRecord())

    def _renew_unread(self, began: float) -> bool:
        """Renew the Lease as last read; False when it is not ours or has changed since."""
        seen = self._seen
        if seen is None or seen.holder != self.identity or not self.may_act():
            return False
        try:
            self._write(seen, began)
        except Conflict:  # somebody wrote an annotation, or another replica took the Lease
            return False
        return True

    def _read_and_try(self) -> None:
        lease_record = self._leases.read() or LeaseRecord()
        began = self._monotonic_seconds()
        if self._is_lost(lease_record):
            # Its holder acts until its next renewal, and creates the Lease again then.
            may_take = began - self._seen_at >= self._timing.lease_duration_seconds
        else:
            self._note_read(lease_record)
            may_take = self._is_free(lease_record, began)
        if may_take:
            self._write(lease_record, began)
        elif lease_record.holder != self.identity:
            self._acts_until = float("-inf")

    def _is_lost(self, found: LeaseRecord) -> bool:
        """Return whether another replica's Lease is gone without a release: somebody deleted it.

        Writing an annotation may have created it again since, without a holder.
        """
        seen = self._seen
        untouched = not found.holder and found.renewed_at is None
        return untouched and seen is not None and seen.holder not in {"", self.identity}

    def _is_free(self, found: LeaseRecord, now: float) -> bool:
        if found.holder in {"", self.identity}:
            return True
        # Our own duration counts, whatever the Lease says: a wrong or hostile value would keep
        # every replica from leading. All replicas are given the same times.
        return now - self._seen_at >= self._timing.lease_duration_seconds

    def _write(self, before: LeaseRecord, began: float) -> None:
        """Write our name; the lead counts from the moment before the request was sent."""
        stamp = self._stamp()
        ours = before.holder == self.identity
        record = LeaseRecord(
            holder=self.identity,
            duration_seconds=math.ceil(self._timing.lease_duration_seconds),
            acquired_at=before.acquired_at if ours else stamp,
            renewed_at=stamp,
            transitions=min(
                before.transitions + (0 if ours or not before.version else 1), TRANSITIONS_MAX
            ),
            version=before.version,
        )
        self._note_read(self._leases.write(record))
        self._acts_until = began + self._timing.renew_deadline_seconds
        self._released = False

    def _note_read(self, record: LeaseRecord) -> None:
        """Note what was read, and when it changed; a new resourceVersion is not a change."""
        seen = self._seen
        if seen is None or replace(seen, version="") != replace(record, version=""):
            self._seen_at = self._monotonic_seconds()
        self._seen = record

    def _stamp(self) -> datetime:
        """Return a wall-clock time other than the last one, so that replicas see the renewal."""
        now = self._now()
        before = self._seen.renewed_at if self._seen is not None else None
        return now if now != before else now + timedelta(microseconds=1)

    def _pause_seconds(self) -> float:
        now = self._monotonic_seconds()
        retry = self._timing.retry_period_seconds
        if self.may_act():
            return retry
        share = zlib.crc32(self.identity.encode()) / 2**32
        pause = retry * (1.0 + (JITTER - 1.0) * share)
        if self._seen is None or self._seen.holder in {"", self.identity}:
            return pause
        left = self._seen_at + self._timing.lease_duration_seconds - now
        return min(pause, left) if left > 0 else pause
