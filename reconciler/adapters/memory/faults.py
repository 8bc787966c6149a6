"""Failures that tests inject into calls, and the record of all calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from reconciler.model.errors import PortError


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that the program made."""

    operation: str
    """The port's method."""
    subject: str
    """The object that it was about."""
    detail: str = ""


@dataclass(slots=True, kw_only=True)
class _Fault:
    operation: str
    error: PortError
    times: int
    applied: bool


class CallLog:
    """Records calls, and makes the next ones fail as told."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._faults: list[_Fault] = []

    def fail_next(
        self, operation: str, error: PortError, *, times: int = 1, applied: bool = False
    ) -> None:
        """Make the next calls of an operation fail.

        Args:
            operation: The port's method.
            error: What they raise.
            times: How many.
            applied: Whether they are carried out all the same (the reply was lost).
        """
        fault = _Fault(operation=operation, error=error, times=times, applied=applied)
        self._faults.append(fault)

    def stop_failing(self) -> None:
        """Forget all faults that have not shown yet."""
        self._faults.clear()

    @contextmanager
    def call(self, operation: str, subject: str, detail: str = "") -> Iterator[None]:
        """Record a call; raise an injected failure before it or after it."""
        self.calls.append(Call(operation=operation, subject=subject, detail=detail))
        fault = next((each for each in self._faults if each.operation == operation), None)
        if fault is not None:
            fault.times -= 1
            if fault.times <= 0:
                self._faults.remove(fault)
            if not fault.applied:
                raise fault.error
        yield
        if fault is not None:
            raise fault.error
