"""The life of fleet instances: pending -> running -> shutting-down -> terminated.

Works on `InstanceHandle`, so that it is as testable without moto as with it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from reconciler.sandbox.aws.values import Delays


class InstanceState(StrEnum):
    """`State.Name` of DescribeInstances."""

    PENDING = "pending"
    RUNNING = "running"
    SHUTTING_DOWN = "shutting-down"
    TERMINATED = "terminated"


class EndReason(StrEnum):
    """Says who ended an instance, for `StateReason`."""

    USER = "user"
    FLEET = "fleet"
    SPOT_INTERRUPTION = "spot-interruption"
    FAILURE = "failure"


class InstanceHandle(Protocol):
    """An instance, independent of where it is stored."""

    @property
    def instance_id(self) -> str:
        """Return its EC2 id."""
        ...

    @property
    def state(self) -> str:
        """Return its present state, as EC2 names it."""
        ...

    def show_state(self, state: InstanceState, reason: EndReason | None = None) -> None:
        """Make the API answer this state from now on."""
        ...

    def end(self, reason: EndReason) -> None:
        """Free what the instance holds; its state is terminated afterwards."""
        ...

    def forget(self) -> None:
        """Remove the instance from the API."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """An instance reached a state."""

    instance_id: str
    state: InstanceState


@dataclass(slots=True, kw_only=True)
class _Timed:
    handle: InstanceHandle
    state: InstanceState
    due: datetime | None
    reason: EndReason = EndReason.USER


class Launcher:
    """The instances of one Region that came from fleets."""

    def __init__(self, delays: Delays) -> None:
        self._delays = delays
        self._timed: dict[str, _Timed] = {}

    def __contains__(self, instance_id: object) -> bool:
        """Return whether the instance is one of these."""
        return instance_id in self._timed

    def handles(self) -> tuple[InstanceHandle, ...]:
        """Return every instance that still exists in the API, oldest first."""
        return tuple(timed.handle for timed in self._timed.values())

    def started(
        self, handle: InstanceHandle, now: datetime, launch_seconds: float | None = None
    ) -> None:
        """Add an instance that was just created: it is pending until the launch time is over.

        Args:
            handle: The instance.
            now: When its launch began.
            launch_seconds: How long it takes; None: as usual.
        """
        seconds = self._delays.launch_seconds if launch_seconds is None else launch_seconds
        handle.show_state(InstanceState.PENDING)
        self._timed[handle.instance_id] = _Timed(
            handle=handle,
            state=InstanceState.PENDING,
            due=now + timedelta(seconds=seconds),
        )

    def terminate(
        self, instance_ids: Iterable[str], now: datetime, reason: EndReason
    ) -> tuple[Transition, ...]:
        """Begin to end instances; those that are ending already are unchanged."""
        begun = []
        for instance_id in instance_ids:
            timed = self._timed[instance_id]
            if timed.state in {InstanceState.PENDING, InstanceState.RUNNING}:
                timed.state = InstanceState.SHUTTING_DOWN
                timed.reason = reason
                timed.due = now + timedelta(seconds=self._delays.terminate_seconds)
                timed.handle.show_state(InstanceState.SHUTTING_DOWN, reason)
                begun.append(Transition(instance_id=instance_id, state=timed.state))
        return tuple(begun)

    def advance(self, now: datetime) -> Sequence[Transition]:
        """Advance every instance as far as it is due, and notice those that others ended."""
        reached: list[Transition] = []
        for instance_id, timed in list(self._timed.items()):
            while (step := self._step(timed, now)) is not None:
                reached.append(Transition(instance_id=instance_id, state=step))
            if timed.state == InstanceState.TERMINATED and timed.due is None:
                del self._timed[instance_id]
        return reached

    def next_due(self) -> datetime | None:
        """Return the first moment at which `advance` has something to do."""
        return min((t.due for t in self._timed.values() if t.due is not None), default=None)

    def _step(self, timed: _Timed, now: datetime) -> InstanceState | None:
        """Return one transition of one instance, or None when nothing is due."""
        if timed.state != InstanceState.TERMINATED and timed.handle.state == "terminated":
            return self._terminated(timed, now)
        if timed.due is None or timed.due > now:
            return None
        if timed.state == InstanceState.PENDING:
            timed.state, timed.due = InstanceState.RUNNING, None
            timed.handle.show_state(InstanceState.RUNNING)
            return InstanceState.RUNNING
        if timed.state == InstanceState.SHUTTING_DOWN:
            timed.handle.end(timed.reason)
            return self._terminated(timed, now)
        timed.handle.forget()
        timed.due = None
        return None

    def _terminated(self, timed: _Timed, now: datetime) -> InstanceState:
        timed.state = InstanceState.TERMINATED
        timed.due = now + timedelta(seconds=self._delays.forget_seconds)
        return InstanceState.TERMINATED
