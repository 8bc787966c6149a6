"""The bell that changes of the cluster ring: how long a burst is gathered."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from reconciler.adapters.kubernetes.cache import Bell

WINDOW_SECONDS = 0.1
LONGEST_SECONDS = 0.4


def gathered_seconds(bell: Bell) -> float:
    """How long gathering took."""
    began = time.monotonic()
    bell.gather(WINDOW_SECONDS, LONGEST_SECONDS)
    return time.monotonic() - began


@contextmanager
def ringing(bell: Bell, every_seconds: float) -> Iterator[None]:
    """Another thread rings on and on."""
    stop = threading.Event()

    def ring() -> None:
        while not stop.wait(every_seconds):
            bell.ring()

    thread = threading.Thread(target=ring)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_gather_without_a_ring_returns_at_once() -> None:
    """A periodic cycle must not wait for a burst that never comes."""
    assert gathered_seconds(Bell()) < WINDOW_SECONDS


def test_gather_after_one_ring_waits_for_the_window() -> None:
    """A Deployment's pods come one by one; planning for the first alone buys twice."""
    bell = Bell()
    bell.ring()
    assert WINDOW_SECONDS <= gathered_seconds(bell) < LONGEST_SECONDS


def test_gather_counts_from_the_first_ring() -> None:
    """Time that passed before the wait began, in the last cycle, is not waited for again."""
    ticks = iter([0.0, 50.0])
    bell = Bell(monotonic=lambda: next(ticks))
    bell.ring()
    assert gathered_seconds(bell) < WINDOW_SECONDS


def test_gather_of_an_endless_burst_ends_at_the_limit() -> None:
    """In a large cluster something always changes; planning must happen all the same."""
    bell = Bell()
    bell.ring()
    with ringing(bell, every_seconds=0.02):
        taken = gathered_seconds(bell)
    assert LONGEST_SECONDS - 0.05 <= taken < 2 * LONGEST_SECONDS


def test_closed_bell_gathers_no_longer() -> None:
    """A stop must not wait for a burst."""
    bell = Bell()
    bell.ring()
    bell.close()
    assert gathered_seconds(bell) < WINDOW_SECONDS
