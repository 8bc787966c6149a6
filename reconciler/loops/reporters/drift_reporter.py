"""Reports drift between config and EC2, once per change."""

from collections.abc import Callable
from typing import Any

import structlog

from reconciler.gitops.drift.live import LiveDrift
from reconciler.loops.reconcile_loop import CycleReport
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.telemetry import events
from reconciler.telemetry.scrubbing import Scrubber

LINES_MAX = 15


class DriftReporter:
    """Compares what EC2 has with the config in force, as a Reporter.

    Args:
        compare: Returns what differs between the config and EC2's answers.
        shown: Called with everything that differs now, whenever that changed.
        tell: Called for each change with a message for people.
    """

    def __init__(
        self,
        compare: Callable[[CloudState], tuple[LiveDrift, ...]],
        shown: Callable[[tuple[LiveDrift, ...]], None],
        tell: Callable[[str], None],
    ) -> None:
        self._compare = compare
        self._shown = shown
        self._tell = tell
        self._known: frozenset[LiveDrift] = frozenset()
        self._log: Any = structlog.get_logger()

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:  # noqa: ARG002 - a Reporter's
        """Compare; for a region that did not answer, the last known drift stays."""
        cloud = snapshot.cloud
        if cloud is None:
            return
        live_drifts = self._compare(cloud)
        kept = {live_drift for live_drift in self._known if live_drift.region in cloud.silent}
        now = frozenset(live_drifts) | kept
        if now == self._known:
            return
        begun, ended = sorted(now - self._known), sorted(self._known - now)
        self._known = now
        self._shown(tuple(sorted(now)))
        for each in begun:
            self._log.warning(events.DRIFT_FOUND, **_facts(each))
        for each in ended:
            self._log.info(events.DRIFT_ENDED, **_facts(each))
        lines = [_line("differs from the config", live_drift) for live_drift in begun]
        lines += [_line("is as the config says again", live_drift) for live_drift in ended]
        more = [f"and {len(lines) - LINES_MAX} more"] if len(lines) > LINES_MAX else []
        self._tell(Scrubber().text("\n".join([*lines[:LINES_MAX], *more])))

    def action_ended(self, outcome: Outcome) -> None:
        """Ignored: actions do not remove drift, Terraform does."""

    def cycle_ended(self, report: CycleReport) -> None:
        """Ignored: the end of a cycle says nothing about drift."""


def _facts(drift: LiveDrift) -> dict[str, str]:
    return {
        "fleet": drift.fleet,
        "region": drift.region,
        "kind": drift.kind,
        "detail": drift.detail,
    }


def _line(what: str, drift: LiveDrift) -> str:
    return f"fleet {drift.fleet} ({drift.region}) {what}: {drift.kind} ({drift.detail})"
