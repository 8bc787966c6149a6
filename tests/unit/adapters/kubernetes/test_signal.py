"""The signal that changes of the cluster set: how long a burst is gathered."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from reconciler.adapters.kubernetes.signal import BURSTS_MAX, ThreadedChangeSignal
from reconciler.ports.changes import Window

SHORT_SECONDS = 0.2
"""What is waited for in a test."""
LONG_SECONDS = 60.0
"""What no test waits for, however slow the machine."""


def gathered_seconds(
    signal: ThreadedChangeSignal,
    window_seconds: float = LONG_SECONDS,
    longest_seconds: float = LONG_SECONDS,
    calm_seconds: float = 0.0,
) -> float:
    """How long gathering took."""
    began = time.monotonic()
    signal.gather(Window(window_seconds, longest_seconds, calm_seconds))
    return time.monotonic() - began


@contextmanager
def notifying(
    signal: ThreadedChangeSignal, every_seconds: float, namespace: str = ""
) -> Iterator[None]:
    """Another thread notifies again and again."""
    stop = threading.Event()

    def keep_notifying() -> None:
        while not stop.wait(every_seconds):
            signal.notify("test", namespace=namespace)

    thread = threading.Thread(target=keep_notifying)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_gather_without_a_ring_returns_at_once() -> None:
    """A periodic cycle must not wait for a burst that never comes."""
    assert gathered_seconds(ThreadedChangeSignal()) < LONG_SECONDS


def test_gather_after_one_ring_waits_for_the_window() -> None:
    """A Deployment's pods come one by one; planning for the first alone buys twice."""
    signal, began = ThreadedChangeSignal(), time.monotonic()
    signal.notify("test")
    signal.gather(Window(SHORT_SECONDS, LONG_SECONDS, LONG_SECONDS))
    assert SHORT_SECONDS <= time.monotonic() - began < LONG_SECONDS


def test_gather_counts_from_the_first_ring() -> None:
    """Time that passed before the wait began, in the last cycle, is not waited for again."""
    ticks = iter([0.0, LONG_SECONDS])
    signal = ThreadedChangeSignal(monotonic=lambda: next(ticks))
    signal.notify("test")
    assert gathered_seconds(signal) < LONG_SECONDS


def test_gather_of_an_endless_burst_ends_at_the_limit() -> None:
    """In a large cluster something always changes; planning must happen all the same."""
    signal, began = ThreadedChangeSignal(), time.monotonic()
    signal.notify("test")
    with notifying(signal, every_seconds=0.02):
        signal.gather(Window(LONG_SECONDS, SHORT_SECONDS, LONG_SECONDS))
    assert SHORT_SECONDS <= time.monotonic() - began < LONG_SECONDS


def test_gather_waits_for_the_rest_of_a_burst_that_was_cut_off() -> None:
    """The first of 5,000 pods would be planned alone while the watch is begun again."""
    signal, began = ThreadedChangeSignal(), time.monotonic()
    signal.notify("test")
    signal.expect_more(2 * SHORT_SECONDS)
    signal.gather(Window(0.0, LONG_SECONDS, LONG_SECONDS))
    assert time.monotonic() - began >= 2 * SHORT_SECONDS
    signal.expect_more(LONG_SECONDS)
    assert gathered_seconds(signal, 0.0, SHORT_SECONDS) < LONG_SECONDS


def test_gathering_tells_how_long_the_window_was() -> None:
    """Time spent on the cycle before would pass for batching, and its slowness be hidden."""
    now = [0.0]
    signal = ThreadedChangeSignal(monotonic=lambda: now[0])
    assert signal.gather(Window(0.5, 2.0, 5.0)) == 0.0
    for busy_seconds, window_seconds in ((1.25, 1.0), (5.0, 1.0)):
        signal.clear()
        signal.notify("test")
        now[0] += busy_seconds
        assert signal.gather(Window(window_seconds, 2.0, 5.0)) == window_seconds


def test_window_of_a_burst_is_what_was_waited() -> None:
    """Half a second would be taken off where two were waited, and look like a slow cycle."""
    signal = ThreadedChangeSignal()
    signal.notify("test")
    signal.expect_more(2 * SHORT_SECONDS)
    began = time.monotonic()
    window_seconds = signal.gather(Window(SHORT_SECONDS, LONG_SECONDS, LONG_SECONDS))
    assert window_seconds >= 2 * SHORT_SECONDS - 0.05
    assert window_seconds <= SHORT_SECONDS + time.monotonic() - began


def test_changes_that_ask_for_nothing_wait_for_each_other() -> None:
    """Of the plans in a busy cluster most would be made for pods that were bound or ended."""
    signal, began = ThreadedChangeSignal(), time.monotonic()
    signal.notify("test", calm=True)
    signal.notify("test", calm=True)
    assert signal.gather(Window(0.0, 0.0, SHORT_SECONDS)) >= SHORT_SECONDS - 0.05
    assert SHORT_SECONDS <= time.monotonic() - began < LONG_SECONDS


def test_change_that_asks_for_something_ends_the_calm() -> None:
    """A pod would wait for its node because another one had ended before."""
    signal = ThreadedChangeSignal()
    signal.notify("test", calm=True)
    asking = threading.Timer(SHORT_SECONDS, signal.notify, ["test"], {"demand": True})
    asking.start()
    assert gathered_seconds(signal, SHORT_SECONDS, LONG_SECONDS, LONG_SECONDS) < LONG_SECONDS
    asking.join()
    signal.clear()
    signal.notify("test", calm=True)
    assert signal.gather(Window(0.0, 0.0, SHORT_SECONDS)) >= SHORT_SECONDS - 0.05


def test_namespace_whose_pods_keep_coming_prolongs_no_window_of_others() -> None:
    """One tenant who writes all the time would have every other one wait for two seconds."""
    now = [0.0]
    signal = made(now)
    signal.notify("pods", demand=True, namespace="stream")
    now[0] += 0.125
    signal.notify("pods", demand=True, namespace="other")
    for _ in range(4):
        now[0] += 0.125
        signal.notify("pods", demand=True, namespace="stream")
    assert signal.gather(Window(0.5, LONG_SECONDS, 0.0)) == 0.5, "the other's burst is over"


def test_namespace_that_takes_long_to_plan_is_planned_for_seldom() -> None:
    """Each pod of another would wait for the end of a long plan that began just before."""
    signal, began = ThreadedChangeSignal(), time.monotonic()
    signal.notify("pods", demand=True, namespace="long")
    signal.gather(Window(0.0, SHORT_SECONDS, 0.0, {"long"}))
    assert time.monotonic() - began >= SHORT_SECONDS


def test_burst_of_another_does_not_wait_for_the_one_that_takes_long() -> None:
    """A pod that comes while it is gathered is planned for after the usual window."""
    signal, began = ThreadedChangeSignal(), time.monotonic()
    signal.notify("pods", demand=True, namespace="long")
    other = threading.Timer(SHORT_SECONDS, signal.notify, ["pods"], {"namespace": "other"})
    other.start()
    signal.gather(Window(SHORT_SECONDS, LONG_SECONDS, 0.0, {"long"}))
    assert 2 * SHORT_SECONDS <= time.monotonic() - began < LONG_SECONDS
    other.join()


def test_burst_that_begins_while_another_is_gathered_may_end_first() -> None:
    """A pod that comes into the middle of a burst would wait for all of it."""
    signal = ThreadedChangeSignal()
    with notifying(signal, every_seconds=0.02, namespace="stream"):
        timer = threading.Timer(SHORT_SECONDS, signal.notify, ["pods"], {"namespace": "other"})
        timer.start()
        assert gathered_seconds(signal, window_seconds=2 * SHORT_SECONDS) < LONG_SECONDS
        timer.join()


def test_bursts_of_many_namespaces_are_bounded() -> None:
    """Namespaces made by a program would be remembered without an end; no change is lost."""
    now = [0.0]
    signal = made(now)
    for number in range(BURSTS_MAX + 5):
        signal.notify("pods", demand=True, namespace=f"team-{number}")
    now[0] += 0.5
    assert signal.demand
    assert signal.gather(Window(0.5, LONG_SECONDS, 0.0)) == 0.5


def test_closed_bell_gathers_no_longer() -> None:
    """A stop must not wait for a burst."""
    signal = ThreadedChangeSignal()
    signal.notify("test")
    signal.close()
    assert gathered_seconds(signal) < LONG_SECONDS


def made(now: list[float]) -> ThreadedChangeSignal:
    """A signal whose clock is `now[0]`."""
    return ThreadedChangeSignal(monotonic=lambda: now[0])


def test_sources_of_a_cycle_are_named_with_how_long_they_waited() -> None:
    """Nothing would say which of several sources wakes the loop, or that one of them waits."""
    now = [10.0]
    signal = made(now)
    for at, source in ((10.0, "queue"), (11.0, "kubernetes/Pod"), (12.0, "queue")):
        now[0] = at
        signal.notify(source)
    signal.clear()
    now[0] = 14.0
    found = [(each.source, each.seconds) for each in signal.acknowledge()]
    assert found == [("kubernetes/Pod", 3.0), ("queue", 4.0)]
    signal.clear()
    assert signal.acknowledge() == ()


def test_change_after_the_observation_is_left_to_the_next_cycle() -> None:
    """A change that no plan has seen would count as handled."""
    now = [0.0]
    signal = made(now)
    signal.notify("queue")
    signal.clear()
    now[0] = 5.0
    signal.notify("queue")
    assert [each.seconds for each in signal.acknowledge()] == [5.0]
    assert signal.wait(0)
    signal.clear()
    now[0] = 6.0
    assert [each.seconds for each in signal.acknowledge()] == [1.0]


def test_change_that_a_failed_cycle_saw_is_acknowledged_by_the_next() -> None:
    """The time since the first change would begin again with every failed cycle."""
    now = [0.0]
    signal = made(now)
    signal.notify("queue")
    signal.clear()
    now[0] = 5.0
    signal.notify("queue")
    signal.clear()
    now[0] = 6.0
    assert [each.seconds for each in signal.acknowledge()] == [6.0]
