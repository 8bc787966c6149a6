"""`--once` without the lead: what it tells the person who waits."""

from datetime import UTC, datetime

import pytest

from reconciler.adapters.memory import MemoryLease, MemoryLeases
from reconciler.adapters.system_clock import SystemClock
from reconciler.bootstrap.capacity_loop.leadership import wait_for_lead
from reconciler.config.loader import parse_config
from reconciler.loops.lease.election import Election, ElectionTiming
from reconciler.loops.lease.leadership import Leadership
from reconciler.model.errors import ReconcilerError
from reconciler.ports.leases import LeaseRecord

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
CONFIG = b"""\
cluster: c
leader_election: {lease_duration: 0.3s, renew_deadline: 0.2s, retry_period: 0.01s}
"""


def waited(way: MemoryLeases) -> str:
    """What is said when the lead does not come."""
    election = Election(way, "us", ElectionTiming(), lambda: AT, lambda: 0.0)
    election.step()
    leadership = Leadership(election, lambda: "", lambda: None)
    with pytest.raises(ReconcilerError) as caught:
        wait_for_lead(leadership, parse_config(CONFIG), SystemClock())
    return str(caught.value)


def test_api_server_that_does_not_answer_is_not_called_a_holder() -> None:
    """The message said that the Lease is held by "GET /apis/…: Connection refused"."""
    said = waited(MemoryLeases(lease=MemoryLease(), reachable=False))
    assert said == "Lease fleet-reconciler: could not be taken: lease: no answer"


def test_replica_that_holds_the_lease_is_named() -> None:
    """Whoever starts it on a laptop has to know where else it runs."""
    lease = MemoryLease()
    lease.write(LeaseRecord(holder="pod-1_uid", duration_seconds=15, renewed_at=AT))
    said = waited(MemoryLeases(lease=lease))
    assert "is held by pod-1_uid, which acts" in said
