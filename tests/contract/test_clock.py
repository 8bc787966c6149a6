"""What every Clock promises."""

import os
import signal
import threading
from datetime import UTC, timedelta

import pytest

from reconciler.adapters.memory import ManualClock
from reconciler.adapters.system_clock import SystemClock, stop_on_signals
from reconciler.ports.clock import Clock


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock()], ids=lambda c: type(c).__name__)
def test_waiting_moves_both_clocks(clock: Clock) -> None:
    """A pause that does not pass ends no cool-off."""
    now, started = clock.now(), clock.monotonic_seconds()
    assert now.tzinfo is UTC
    clock.wait_seconds(0.05)
    assert clock.now() - now >= timedelta(seconds=0.04)
    assert clock.monotonic_seconds() - started >= 0.04
    clock.wait_seconds(-1)


def test_jump_of_the_wall_clock_leaves_durations_alone() -> None:
    """Simulations of a wrong clock would time out everything at once."""
    clock = ManualClock()
    now, started = clock.now(), clock.monotonic_seconds()
    clock.jump(3600)
    assert clock.now() - now == timedelta(hours=1)
    assert clock.monotonic_seconds() == started


def test_what_is_due_runs_in_order_and_at_its_time() -> None:
    """An instance that runs before it was launched would break every simulation."""
    clock, seen = ManualClock(), list[tuple[str, float]]()

    def note(name: str) -> None:
        seen.append((name, clock.monotonic_seconds()))

    def early() -> None:
        note("early")
        clock.call_later(5, lambda: note("between"))

    clock.call_later(20, lambda: note("late"))
    clock.call_later(10, early)
    clock.advance(30)
    assert seen == [("early", 10), ("between", 15), ("late", 20)]
    assert clock.monotonic_seconds() == 30


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_ends_the_wait_and_wakes_others(number: signal.Signals) -> None:
    """A pod that ignores SIGTERM is killed in the middle of a drain.

    Whoever closes the laptop's terminal must not leave a Lease behind that others wait for.
    """
    # A run that `nohup` or a shell's background started ignores some of them.
    of_this_run = signal.signal(number, signal.SIG_DFL)
    stop, woken = threading.Event(), threading.Event()
    clock = SystemClock(stop)
    try:
        with stop_on_signals(stop, [woken.set]):
            os.kill(os.getpid(), number)
            clock.wait_seconds(30)
            assert stop.is_set()
            assert woken.wait(60)
            assert signal.getsignal(number) == signal.SIG_DFL
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, of_this_run)
    started = clock.monotonic_seconds()
    clock.wait_seconds(600)
    assert clock.monotonic_seconds() - started < 300


def test_hangup_that_is_ignored_stays_ignored() -> None:
    """`nohup reconciler run` goes on when its terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop = threading.Event()
    try:
        with stop_on_signals(stop):
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not stop.is_set()
