"""The Leases port in memory: one Lease, and a connection per candidate that tests can cut."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

from reconciler.model.errors import Conflict, OutcomeUnknown, Unavailable
from reconciler.ports.leases import LeaseRecord


class MemoryLease:
    """The one object that all candidates read and write."""

    def __init__(self) -> None:
        self._versions = count(1)
        self.record: LeaseRecord | None = None
        self.annotations: dict[str, str] = {}

    def annotate(self, key: str, value: str) -> None:
        """Write an annotation as somebody else: a new version, the same holder."""
        self.annotations[key] = value
        if self.record is not None:
            self.record = replace(self.record, version=str(next(self._versions)))

    def write(self, record: LeaseRecord) -> LeaseRecord:
        """Write under optimistic concurrency, as the API server does."""
        if record.version != (self.record.version if self.record is not None else ""):
            raise Conflict("lease", "the object has been modified")
        self.record = replace(record, version=str(next(self._versions)))
        return self.record


@dataclass(slots=True, kw_only=True)
class MemoryLeases:
    """One candidate's connection to the Lease."""

    lease: MemoryLease
    before: Callable[[], None] = lambda: None
    """Called before each request, for tests: to let time pass, to cut the connection, and so on."""
    after: Callable[[], None] = lambda: None
    """Called between a request's effect and its answer."""
    reachable: bool = True
    answers: bool = True
    """False: requests arrive and take effect, but answers are lost."""

    def read(self) -> LeaseRecord | None:
        """Return the current Lease."""
        self.before()
        if not (self.reachable and self.answers):
            raise Unavailable("lease", "no answer")
        lease_record = self.lease.record
        self.after()
        return lease_record

    def write(self, record: LeaseRecord) -> LeaseRecord:
        """Write this record."""
        self.before()
        if not self.reachable:
            raise Unavailable("lease", "no answer")
        written = self.lease.write(record)
        self.after()
        if not self.answers:
            raise OutcomeUnknown("lease", "the answer was lost")
        return written
