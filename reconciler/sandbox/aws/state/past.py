"""Earlier states of a Region, for stale answers."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.sandbox.aws.state.fleet import Fleet
from reconciler.sandbox.aws.state.launcher import InstanceState


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Fleets and instances at one moment."""

    at: datetime
    fleets: Mapping[str, Fleet]
    states: Mapping[str, InstanceState]
    """By instance id; an instance that is not in it did not exist."""


class Past:
    """Views, oldest first."""

    def __init__(self) -> None:
        self._views: deque[View] = deque()

    def keep(self, view: View, keep_seconds: float) -> None:
        """Add the newest view; remove those that no answer can need any more."""
        self._views.append(view)
        oldest = view.at - timedelta(seconds=keep_seconds)
        while len(self._views) > 1 and self._views[1].at <= oldest:
            self._views.popleft()

    def forget(self) -> None:
        """Remove all views."""
        self._views.clear()

    def at(self, moment: datetime) -> View | None:
        """Return the state at that time, or the oldest one; None when there is none."""
        found = None
        for view in self._views:
            if found is None or view.at <= moment:
                found = view
        return found
