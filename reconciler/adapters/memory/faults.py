"""Failures injected into calls, the record of all calls, and crashes of the program."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from reconciler.adapters.memory.clock import ManualClock
from reconciler.model.errors import PortError


class Crash(BaseException):
    """`kill -9`: what the program has in memory is lost, the world stays as it is.

    It is not an Exception, so that no handler of the program treats it as an error of a port.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that the program made."""

    operation: str
    """The port's method."""
    subject: str
    """The object that it was about."""
    detail: str = ""
    arguments: tuple[object, ...] = field(default=(), compare=False)
    """What was passed, for watchers."""


@dataclass(slots=True, kw_only=True)
class _Fault:
    operation: str
    error: PortError
    times: int
    applied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kill:
    number: int
    after: bool


class CrashDecision(Protocol):
    """Says whether the program crashes at a call."""

    def __call__(self, call: Call, *, after: bool) -> bool:
        """Return whether it crashes right before the call or, `after`, once it has taken effect."""
        ...


def _no_crash(call: Call, *, after: bool) -> bool:  # noqa: ARG001 - as the protocol says
    """Return False: the program does not crash at this call."""
    return False


class CallLog:
    """Records calls, makes the next ones fail on request, and crashes the program at one of them.

    Args:
        clock: Virtual time, which calls may take some of.
    """

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.calls: list[Call] = []
        self.keeps_calls = True
        """Whether `calls` grows; off for long simulations."""
        self.made = 0
        """Calls since the world began; a crash is planned at one of these numbers, from 1."""
        self.seconds_each = 0.0
        """How long a call takes before it has an effect; the world continues meanwhile."""
        self.watchers: list[Callable[[Call], None]] = []
        """Called right before a call takes effect; not when it takes none."""
        self.dies: CrashDecision = _no_crash
        """Called before each call, and after each that took effect."""
        self._faults: list[_Fault] = []
        self._kill: _Kill | None = None

    def fail_next(
        self, operation: str, error: PortError, *, times: int = 1, applied: bool = False
    ) -> None:
        """Make the next calls of an operation fail.

        Args:
            operation: The port's method.
            error: What they raise.
            times: How many calls fail.
            applied: Whether they are executed nevertheless (the reply was lost).
        """
        fault = _Fault(operation=operation, error=error, times=times, applied=applied)
        self._faults.append(fault)

    def stop_failing(self) -> None:
        """Remove all faults that have not occurred yet."""
        self._faults.clear()

    def stop_crashing(self) -> None:
        """Remove a planned crash."""
        self._kill = None

    def crash_at(self, number: int, *, after: bool) -> None:
        """Crash the program at the call of this number, before or after it took effect."""
        self._kill = _Kill(number=number, after=after)

    @contextmanager
    def call(
        self, operation: str, subject: str, detail: str = "", arguments: tuple[object, ...] = ()
    ) -> Iterator[None]:
        """Record a call; raise an injected failure before it or after it."""
        made = Call(operation=operation, subject=subject, detail=detail, arguments=arguments)
        if self.keeps_calls:
            self.calls.append(made)
        self.made += 1
        kill = self._kill if self._kill is not None and self._kill.number <= self.made else None
        if kill is not None:
            self._kill = None
            if not kill.after:
                raise Crash
        if self.dies(made, after=False):
            raise Crash
        if self.seconds_each:
            self._clock.advance(self.seconds_each)
        fault = self._due(operation)
        if fault is not None and not fault.applied:
            raise fault.error
        for watch in self.watchers:
            watch(made)
        yield
        if kill is not None or self.dies(made, after=True):
            raise Crash
        if fault is not None:
            raise fault.error

    def _due(self, operation: str) -> _Fault | None:
        """Return the first fault that waits for this operation, and use it up by one."""
        fault = next((each for each in self._faults if each.operation == operation), None)
        if fault is not None:
            fault.times -= 1
            if fault.times <= 0:
                self._faults.remove(fault)
        return fault
