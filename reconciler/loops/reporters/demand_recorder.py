"""Logs which pods came, changed and ended since the last plan, in the form simulations read."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from reconciler.loops.reconcile_loop import CycleReport
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.ports.demand_log import DemandLog
from reconciler.records.demand import ObservedDemand, changes, encode_line, recorded_until, seen_in

SILENT: Final = timedelta(minutes=5)
"""After how long without a change it is recorded that there was none."""


class DemandRecorder:
    """Records demand as a Reporter; it never waits and changes nothing.

    A pod is named by its UID; pods of DaemonSets and static pods are left out, as they come with
    nodes. Each day begins with everything that is there, so that its file can be read alone. While
    nothing changes, a line every few minutes states until when demand was recorded.

    Args:
        log: Where lines go. Lines that it does not accept are written again with the next plan.
        keep_seconds: How long lines are kept: older pods are written as created this long ago.
        counted: Called with `taken` or `behind` for each plan that has something to record.
    """

    def __init__(self, log: DemandLog, keep_seconds: float, counted: Callable[[str], None]) -> None:
        self._log = log
        self._counted = counted
        self._keep = timedelta(seconds=keep_seconds)
        self._before = ObservedDemand()
        self._written_at: datetime | None = None

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """Record how the snapshot differs from the one before."""
        at = snapshot.at
        now = seen_in(snapshot.cluster, snapshot.cloud, at, _fleets(plan), self._before)
        lines = b"".join(encode_line(line) for line in changes(self._before, now, at, self._keep))
        if not lines and self._written_at is not None and at - self._written_at >= SILENT:
            lines = encode_line(recorded_until(at))
        taken = not lines or self._log.append(at, lines)
        if lines:
            self._counted("taken" if taken else "behind")
        if taken:
            self._before = now
        if lines and taken:
            self._written_at = at

    def forget(self) -> None:
        """Start again with the next plan: while another replica leads, changes are not seen."""
        self._before = ObservedDemand()

    def action_ended(self, outcome: Outcome) -> None:
        """Ignored: actions are not demand."""

    def cycle_ended(self, report: CycleReport) -> None:
        """Ignored: the demand was recorded with the plan."""


def _fleets(plan: Plan) -> Mapping[str, tuple[int, int]]:
    """Return target and nodes of each fleet by its name, in all regions together."""
    found: dict[str, tuple[int, int]] = {}
    for fleet in plan.fleets:
        target, joined = found.get(fleet.fleet, (0, 0))
        found[fleet.fleet] = (target + fleet.target, joined + fleet.joined)
    return found
