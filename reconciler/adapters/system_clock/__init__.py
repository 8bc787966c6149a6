"""The machine's clock, whose waits end early when the program is to stop."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""SIGHUP comes when the terminal, or the session to this machine, is closed."""


class SystemClock:
    """The Clock port over the machine's clocks.

    Args:
        stop: Set when the program is to stop; every wait then returns at once.
    """

    def __init__(self, stop: threading.Event | None = None) -> None:
        self.stop = stop if stop is not None else threading.Event()

    def now(self) -> datetime:
        """Return the wall clock's time, aware UTC."""
        return datetime.now(UTC)  # noqa: TID251 - this is the one place that reads it

    def monotonic_seconds(self) -> float:
        """Return the time of a clock that never jumps."""
        return time.monotonic()

    def awake_seconds(self) -> float:
        """Return the time of a clock that never jumps and, where possible, runs during suspends.

        Linux's CLOCK_MONOTONIC stops during suspends: after waking up, a laptop would consider the
        Lease that it renewed last night fresh.
        """
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

    def wait_seconds(self, seconds: float) -> None:
        """Wait; not at all when `stop` is set already."""
        self.stop.wait(max(0.0, seconds))


@dataclass(slots=True)
class Stopped:
    """The signal that asked the program to stop."""

    number: int | None = None
    """None until then."""


@contextmanager
def stop_on_signals(
    stop: threading.Event, wake: Sequence[Callable[[], None]] = ()
) -> Iterator[Stopped]:
    """Set `stop` at the first SIGTERM, SIGINT or SIGHUP; a second one has its default effect.

    A SIGHUP that is ignored, as under nohup, stays ignored.

    Args:
        stop: The event to set.
        wake: Called after that, to end waits that do not check the event themselves.
    """
    stopped = Stopped()
    before = {int(number): signal.getsignal(number) for number in STOP_SIGNALS}
    if before[signal.SIGHUP] is signal.SIG_IGN:
        del before[signal.SIGHUP]

    def on_signal(number: int, _frame: FrameType | None) -> None:
        stopped.number = number
        signal.signal(number, before[number])
        # Not here: the handler runs between any two steps of the main thread, which may hold the
        # event's own lock at that moment.
        threading.Thread(target=tell, name="stop", daemon=True).start()

    def tell() -> None:
        stop.set()
        for each in wake:
            each()

    for number in before:
        signal.signal(number, on_signal)
    try:
        yield stopped
    finally:
        for restored, handler in before.items():
            signal.signal(restored, handler)
