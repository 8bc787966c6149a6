"""The election's thread: when it takes part, whom it tells, how it ends."""

import threading
import time
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from reconciler.adapters.memory import MemoryLease, MemoryLeases
from reconciler.adapters.system_clock import SystemClock
from reconciler.loops.lease.election import Election, ElectionTiming
from reconciler.loops.lease.leadership import Leadership
from reconciler.model.errors import Unavailable
from reconciler.ports.leases import LeaseRecord
from reconciler.telemetry import events

QUICK = ElectionTiming(
    lease_duration_seconds=30.0, renew_deadline_seconds=20.0, retry_period_seconds=0.05
)
"""Renewed often; nothing here waits for a Lease to run out."""
LONG_SECONDS = 60.0
"""What no test waits for, however slow the machine."""


class Replica:
    """One Leadership over a shared Lease."""

    def __init__(self, lease: MemoryLease, name: str) -> None:
        clock = SystemClock()
        self.hindrance = ""
        self.gained = threading.Event()
        self.steps = threading.Semaphore(0)
        """Released before each step."""
        self.election = Election(
            MemoryLeases(lease=lease), name, QUICK, clock.now, clock.awake_seconds
        )
        self.told: list[str] = []
        """The reasons for which the lead ended."""
        self.leadership = Leadership(
            self.election, self._hindered, self.gained.set, lost=self.told.append
        )
        self.leadership.start()

    def _hindered(self) -> str:
        self.steps.release()
        return self.hindrance


def test_second_replica_leads_as_soon_as_the_first_ended() -> None:
    """The one that waits is told, and need not look."""
    lease = MemoryLease()
    first = Replica(lease, "first")
    assert first.leadership.wait_until_leading(LONG_SECONDS)
    assert first.gained.wait(LONG_SECONDS)
    second = Replica(lease, "second")
    for _ in range(2):  # the first step has ended when the second one begins
        assert second.steps.acquire(timeout=LONG_SECONDS)
    assert not second.leadership.may_act()
    assert second.leadership.holder == "first"
    first.leadership.stop()
    assert not first.leadership.may_act()
    assert second.leadership.wait_until_leading(LONG_SECONDS)
    second.leadership.stop()
    assert lease.record is not None
    assert lease.record.holder == ""


def test_dry_run_never_takes_the_lease_and_lets_go_of_it() -> None:
    """A trial on a laptop must not stop the replicas in the cluster from acting."""
    lease = MemoryLease()
    trial = Replica(lease, "trial")
    assert trial.leadership.wait_until_leading(LONG_SECONDS)
    trial.hindrance = "this is a dry run"
    other = Replica(lease, "other")
    assert other.leadership.wait_until_leading(LONG_SECONDS)
    assert not trial.leadership.may_act()
    assert trial.leadership.trouble == "this is a dry run"
    trial.leadership.stop()
    other.leadership.stop()
    assert (trial.told, other.told) == (["this is a dry run"], ["released"])


def test_bug_in_the_election_ends_the_program() -> None:
    """The replica would stand by for ever, although it says that it is ready."""

    def hindrance() -> str:
        raise RuntimeError("a bug")

    clock, broken = SystemClock(), threading.Event()
    lease = MemoryLease()
    election = Election(MemoryLeases(lease=lease), "one", QUICK, clock.now, clock.awake_seconds)
    election.step()
    assert election.may_act()
    leadership = Leadership(election, hindrance, lambda: None, broken.set)
    leadership.start()
    assert broken.wait(LONG_SECONDS)
    assert not leadership.wait_until_leading(LONG_SECONDS)
    with pytest.raises(RuntimeError, match="a bug"):
        leadership.stop()


def test_without_an_election_the_one_replica_always_leads() -> None:
    """`--no-leader-elect`."""
    alone = Leadership(None, lambda: "", lambda: None)
    alone.start()
    assert alone.may_act()
    assert (alone.enabled, alone.holder, alone.identity, alone.trouble) == (False, "", "", "")
    alone.stop()


def test_stop_ends_a_wait_for_the_lead() -> None:
    """SIGTERM during `--once` must not wait for another replica's Lease."""
    lease = MemoryLease()
    holder, waiting = Replica(lease, "holder"), Replica(lease, "waiting")
    assert holder.leadership.wait_until_leading(LONG_SECONDS)
    ender = threading.Timer(0.1, waiting.leadership.stop)
    ender.start()
    began = time.monotonic()
    assert not waiting.leadership.wait_until_leading(600)
    assert time.monotonic() - began < 300
    ender.join()
    holder.leadership.stop()


class SlowDays:
    """A Lease whose second renewal fails late, and a clock that its calls move."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.writes = 0
        self._lease = MemoryLeases(lease=MemoryLease())

    def read(self) -> LeaseRecord | None:
        return self._lease.read()

    def write(self, record: LeaseRecord) -> LeaseRecord:
        self.writes += 1
        if self.writes == 2:
            self.seconds += 0.9 * QUICK.renew_deadline_seconds
            raise Unavailable("api", "timed out")
        return self._lease.write(record)

    def hindrance(self) -> str:
        """Asked before each step: after the failure the deadline passes before the next."""
        if self.writes == 2:
            self.seconds += 0.2 * QUICK.renew_deadline_seconds
        return ""


def test_lead_that_lapsed_and_came_back_is_reported_again() -> None:
    """What a cycle could not do in between would wait for the next event."""
    days, gained = SlowDays(), threading.Semaphore(0)
    election = Election(days, "one", QUICK, SystemClock().now, lambda: days.seconds)
    leadership = Leadership(election, days.hindrance, gained.release)
    with capture_logs() as logs:
        leadership.start()
        assert gained.acquire(timeout=LONG_SECONDS)
        assert gained.acquire(timeout=LONG_SECONDS)
        leadership.stop()
    told = [log["event"] for log in logs]
    assert told[:3] == [events.LEADING_BEGAN, events.LEADING_ENDED, events.LEADING_BEGAN]
    assert logs[1]["reason"] == "not renewed within 20 s: api: timed out"


class Frozen:
    """A replica whose machine freezes after its first renewal, longer than its Lease lasts."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.lease = MemoryLease()
        self.looks = 0

    def hindrance(self) -> str:
        """Asked before each step; the second time the machine has been frozen in between."""
        self.looks += 1
        if self.looks == 2:
            self.seconds += 22.0
        return ""


def test_lead_that_ran_out_is_not_called_released() -> None:
    """People looked for what had ended the leader in order, and nothing had."""
    frozen, gained = Frozen(), threading.Semaphore(0)
    election = Election(
        MemoryLeases(lease=frozen.lease), "one", QUICK, SystemClock().now, lambda: frozen.seconds
    )
    leadership = Leadership(election, frozen.hindrance, gained.release)
    with capture_logs() as logs:
        leadership.start()
        assert gained.acquire(timeout=LONG_SECONDS)
        assert gained.acquire(timeout=LONG_SECONDS)
        leadership.stop()
    reasons = [log["reason"] for log in logs if log["event"] == events.LEADING_ENDED]
    assert reasons == ["not renewed within 20 s", "released"]


def test_lead_that_another_took_names_who() -> None:
    """Of two replicas' logs each must say what became of the other."""
    frozen = Frozen()
    election = Election(
        MemoryLeases(lease=frozen.lease), "one", QUICK, SystemClock().now, lambda: frozen.seconds
    )
    election.step()
    assert frozen.lease.record is not None
    frozen.lease.write(replace(frozen.lease.record, holder="two"))
    election.step()
    assert not election.may_act()
    assert election.why_ended() == "two has taken the Lease"
