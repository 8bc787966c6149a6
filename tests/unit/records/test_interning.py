"""The table that makes equal specs one object."""

import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from reconciler.records.interning import InternTable, garbage_collection_paused


def test_table_is_bounded_and_keeps_what_is_used() -> None:
    """A loop that runs for months must not remember every spec it ever saw."""
    table: InternTable[int, str] = InternTable(entries_max=10)
    for number in range(1000):
        table.put(number, f"v{number}")
        assert table.get_or_build(0, lambda: "built again") == "v0"
    assert len(table) <= 20
    assert table.get(500) is None


def test_failed_build_leaves_nothing_behind() -> None:
    """A spec that could not be read once must not be found the second time."""
    table: InternTable[int, str] = InternTable(entries_max=10)

    def fail() -> str:
        raise ValueError("unreadable")

    with pytest.raises(ValueError, match="unreadable"):
        table.get_or_build(1, fail)
    assert table.get(1) is None


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
    for each in threads:
        each.start()
    for each in threads:
        each.join()
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
