"""Candidates for one Lease, each with a clock of its own over one true time."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from reconciler.adapters.memory import MemoryLease, MemoryLeases
from reconciler.loops.lease.election import Election, ElectionTiming

TIMING = ElectionTiming()
_EPOCH = datetime(2026, 1, 31, 12, tzinfo=UTC)


class TrueTime:
    """What no candidate can read."""

    def __init__(self) -> None:
        self.seconds = 0.0


@dataclass(slots=True, kw_only=True)
class Candidate:
    """One replica: its election, its way to the Lease, and when it steps next."""

    election: Election
    way: MemoryLeases
    true_time: TrueTime
    rate: float
    due: float = 0.0
    running: bool = True
    """False: stopped by SIGSTOP, or the machine is suspended."""
    stepping: bool = False
    """A request of it is under way: its next step has to wait."""

    def step(self) -> None:
        """What its thread does when the next step is due."""
        self.stepping = True
        try:
            pause = self.election.step()
        finally:
            self.stepping = False
        self.due = self.true_time.seconds + pause / self.rate

    def release(self) -> None:
        """It ends in order."""
        self.stepping = True
        try:
            self.election.release()
        finally:
            self.stepping = False


@dataclass(slots=True)
class Field:
    """Candidates in one true time; two that may act at the same moment are an error."""

    lease: MemoryLease = field(default_factory=MemoryLease)
    time: TrueTime = field(default_factory=TrueTime)
    candidates: list[Candidate] = field(default_factory=list)

    def add(
        self, rate: float = 1.0, wall_skew_seconds: float = 0.0, identity: str = ""
    ) -> Candidate:
        """A replica whose clock runs `rate` seconds per second and whose wall clock is off."""
        time, offset = self.time, 1000.0 * len(self.candidates)
        way = MemoryLeases(lease=self.lease)
        election = Election(
            way,
            identity=identity or f"replica-{len(self.candidates)}",
            timing=TIMING,
            now=lambda: _EPOCH + timedelta(seconds=time.seconds + wall_skew_seconds),
            monotonic_seconds=lambda: offset + time.seconds * rate,
        )
        made = Candidate(election=election, way=way, true_time=time, rate=rate, due=time.seconds)
        self.candidates.append(made)
        return made

    def replace_process(self, dead: Candidate) -> Candidate:
        """The container of a pod is started again, when the one before it is dead."""
        self.candidates.remove(dead)
        return self.add(identity=dead.election.identity)

    @property
    def leaders(self) -> list[str]:
        """Who may act now."""
        return [c.election.identity for c in self.candidates if c.election.may_act()]

    def pass_time(self, seconds: float) -> None:
        """Time passes and every running candidate steps when it is due."""
        end = self.time.seconds + seconds
        while True:
            ready = [c for c in self.candidates if c.running and not c.stepping]
            following = min(ready, key=lambda c: c.due, default=None)
            if following is None or following.due > end:
                break
            self.time.seconds = max(self.time.seconds, following.due)
            following.step()
            self.check()
        self.time.seconds = max(self.time.seconds, end)
        self.check()

    def check(self) -> None:
        """The promise of the election."""
        assert len(self.leaders) <= 1, f"at {self.time.seconds}: {self.leaders} may act"
