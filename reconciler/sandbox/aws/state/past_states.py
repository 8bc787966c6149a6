"""Earlier states of a Region, for stale answers."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.sandbox.aws.state.fleet import Fleet
from reconciler.sandbox.aws.state.launcher import InstanceState


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionState:
    """Fleets and instances at one moment."""

    at: datetime
    fleets: Mapping[str, Fleet]
    states: Mapping[str, InstanceState]
    """By instance id; an instance that is not in it did not exist."""


class PastStates:
    """States of one Region, oldest first."""

    def __init__(self) -> None:
        self._states: deque[RegionState] = deque()

    def keep(self, state: RegionState, keep_seconds: float) -> None:
        """Add the newest state; remove those that no answer can need any more."""
        self._states.append(state)
        oldest = state.at - timedelta(seconds=keep_seconds)
        while len(self._states) > 1 and self._states[1].at <= oldest:
            self._states.popleft()

    def forget(self) -> None:
        """Remove all states."""
        self._states.clear()

    def at(self, moment: datetime) -> RegionState | None:
        """Return the state at that time, or the oldest one; None when there is none."""
        region_state = None
        for state in self._states:
            if region_state is None or state.at <= moment:
                region_state = state
        return region_state
