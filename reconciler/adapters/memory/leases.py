"""The Leases port in memory: one Lease, and a way to it for each candidate that tests can cut."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

from reconciler.model.errors import Conflict, OutcomeUnknown, Unavailable
from reconciler.ports.leases import LeaseRecord


class MemoryLease:
    """The one object that all candidates see."""

    def __init__(self) -> None:
        self._versions = count(1)
        self.record: LeaseRecord | None = None
        self.annotations: dict[str, str] = {}

    def annotate(self, key: str, value: str) -> None:
        """Someone writes an annotation: another version, the same holder."""
        self.annotations[key] = value
        if self.record is not None:
            self.record = replace(self.record, version=str(next(self._versions)))

    def write(self, record: LeaseRecord) -> LeaseRecord:
        """Under optimistic concurrency, as the API server does it."""
        if record.version != (self.record.version if self.record is not None else ""):
            raise Conflict("lease", "the object has been modified")
        self.record = replace(record, version=str(next(self._versions)))
        return self.record


@dataclass(slots=True, kw_only=True)
class MemoryLeases:
    """One candidate's way to the Lease."""

    lease: MemoryLease
    before: Callable[[], None] = lambda: None
    """Runs before each request, in the test's hands: lets time pass, cuts the way, and so on."""
    after: Callable[[], None] = lambda: None
    """Runs between a request's effect and its answer."""
    reachable: bool = True
    answers: bool = True
    """False: requests arrive and take effect, answers are lost."""

    def read(self) -> LeaseRecord | None:
        """The Lease as it is now."""
        self.before()
        if not (self.reachable and self.answers):
            raise Unavailable("lease", "no answer")
        found = self.lease.record
        self.after()
        return found

    def write(self, record: LeaseRecord) -> LeaseRecord:
        """Make the Lease say this."""
        self.before()
        if not self.reachable:
            raise Unavailable("lease", "no answer")
        written = self.lease.write(record)
        self.after()
        if not self.answers:
            raise OutcomeUnknown("lease", "the answer was lost")
        return written
