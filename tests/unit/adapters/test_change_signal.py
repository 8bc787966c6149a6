"""The signal that changes of the cluster set: how long a burst is gathered."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from reconciler.adapters.kubernetes.cache import ChangeSignal

SHORT_SECONDS = 0.2
"""What is waited for in a test."""
LONG_SECONDS = 60.0
"""What no test waits for, however slow the machine."""


def gathered_seconds(
    signal: ChangeSignal,
    window_seconds: float = LONG_SECONDS,
    longest_seconds: float = LONG_SECONDS,
) -> float:
    """How long gathering took."""
    began = time.monotonic()
    signal.gather(window_seconds, longest_seconds)
    return time.monotonic() - began


@contextmanager
def notifying(signal: ChangeSignal, every_seconds: float) -> Iterator[None]:
    """Another thread notifies again and again."""
    stop = threading.Event()

    def keep_notifying() -> None:
        while not stop.wait(every_seconds):
            signal.notify()

    thread = threading.Thread(target=keep_notifying)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_gather_without_a_ring_returns_at_once() -> None:
    """A periodic cycle must not wait for a burst that never comes."""
    assert gathered_seconds(ChangeSignal()) < LONG_SECONDS


def test_gather_after_one_ring_waits_for_the_window() -> None:
    """A Deployment's pods come one by one; planning for the first alone buys twice."""
    signal, began = ChangeSignal(), time.monotonic()
    signal.notify()
    signal.gather(SHORT_SECONDS, LONG_SECONDS)
    assert SHORT_SECONDS <= time.monotonic() - began < LONG_SECONDS


def test_gather_counts_from_the_first_ring() -> None:
    """Time that passed before the wait began, in the last cycle, is not waited for again."""
    ticks = iter([0.0, LONG_SECONDS])
    signal = ChangeSignal(monotonic=lambda: next(ticks))
    signal.notify()
    assert gathered_seconds(signal) < LONG_SECONDS


def test_gather_of_an_endless_burst_ends_at_the_limit() -> None:
    """In a large cluster something always changes; planning must happen all the same."""
    signal, began = ChangeSignal(), time.monotonic()
    signal.notify()
    with notifying(signal, every_seconds=0.02):
        signal.gather(LONG_SECONDS, SHORT_SECONDS)
    assert SHORT_SECONDS <= time.monotonic() - began < LONG_SECONDS


def test_gather_waits_for_the_rest_of_a_burst_that_was_cut_off() -> None:
    """The first of 5,000 pods would be planned alone while the watch is begun again."""
    signal, began = ChangeSignal(), time.monotonic()
    signal.notify()
    signal.expect_more(2 * SHORT_SECONDS)
    signal.gather(0.0, LONG_SECONDS)
    assert time.monotonic() - began >= 2 * SHORT_SECONDS
    signal.expect_more(LONG_SECONDS)
    assert gathered_seconds(signal, 0.0, SHORT_SECONDS) < LONG_SECONDS


def test_gathering_tells_how_long_the_window_was() -> None:
    """Time spent on the cycle before would pass for batching, and its slowness be hidden."""
    now = [0.0]
    signal = ChangeSignal(monotonic=lambda: now[0])
    assert signal.gather(0.5, 2.0) == 0.0
    for busy_seconds, window_seconds in ((1.25, 1.0), (5.0, 1.0)):
        signal.clear()
        signal.notify()
        now[0] += busy_seconds
        assert signal.gather(window_seconds, 2.0) == window_seconds


def test_window_of_a_burst_is_what_was_waited() -> None:
    """Half a second would be taken off where two were waited, and look like a slow cycle."""
    signal = ChangeSignal()
    signal.notify()
    signal.expect_more(2 * SHORT_SECONDS)
    began = time.monotonic()
    window_seconds = signal.gather(SHORT_SECONDS, LONG_SECONDS)
    assert window_seconds >= 2 * SHORT_SECONDS - 0.05
    assert window_seconds <= SHORT_SECONDS + time.monotonic() - began


def test_closed_bell_gathers_no_longer() -> None:
    """A stop must not wait for a burst."""
    signal = ChangeSignal()
    signal.notify()
    signal.close()
    assert gathered_seconds(signal) < LONG_SECONDS
