"""The tests' own way of waiting: it looks, it pauses, and it says what it saw last."""

import subprocess
import sys

import pytest

from tests.waiting import until


def test_found_thing_is_returned_after_as_many_pauses_as_it_took() -> None:
    """A wait that spins takes the processor from what it waits for."""
    pauses: list[float] = []
    found = until("three pauses", lambda: pauses[2:], look_seconds=0.5, pause=pauses.append)
    assert (found, pauses) == ([0.5], [0.5, 0.5, 0.5])


def test_message_has_what_was_waited_for_and_seen_last() -> None:
    """A wait that ends with "timeout" alone has to be debugged by running it again."""
    with pytest.raises(AssertionError, match=r"not within 0 s: two nodes\nseen last: \[\]"):
        until("two nodes", list, seconds=0, look_seconds=0.01)


def test_end_of_the_process_ends_the_wait() -> None:
    """Nobody else would do it; what it did at last still counts."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        assert until("its output", lambda: "output", process=process) == "output"
        with pytest.raises(AssertionError, match="the process ended: its output"):
            until(lambda: "its output", str, process=process)
