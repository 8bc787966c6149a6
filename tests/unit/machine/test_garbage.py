"""The garbage collector, off and on again."""

import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from reconciler.machine.garbage import garbage_collection_paused


def test_collector_comes_back_after_bulk_decoding_even_when_it_fails() -> None:
    """A collector left off lets memory grow without end."""

    def decode() -> None:
        with garbage_collection_paused():
            assert not gc.isenabled()
            raise ValueError("x")

    assert gc.isenabled()
    with pytest.raises(ValueError, match="x"):
        decode()
    assert gc.isenabled()


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads that take turns as often as Python lets them."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_collector_runs_again_after_many_threads_paused_it(hasty_threads: None) -> None:
    """Left off for good, memory would grow until the kernel ends the process, weeks later."""

    def pause_often() -> None:
        for _ in range(40_000):
            with garbage_collection_paused():
                sum(range(50))

    threads = [threading.Thread(target=pause_often) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    running = gc.isenabled()
    gc.enable()  # the tests that follow are not to blame
    assert running


def test_collector_stays_off_where_it_was_off() -> None:
    """Whoever turned it off has reasons of their own."""
    gc.disable()
    try:
        with garbage_collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
