"""Sends traces of cycles to a tracing back end: one each, with its phases and actions."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from reconciler.loops.reconcile_loop import CycleReport
from reconciler.loops.reporters.log_reporter import summary
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.ports.spans import Attributes, Span, SpanEvent, Spans
from reconciler.records.plan import action_to_json
from reconciler.telemetry.scrubbing import Scrubber

ACTIONS_MAX: Final = 128
"""How many actions of a cycle a trace has: OpenTelemetry's SDK keeps this many events of a span."""
_PHASES: Final = ("gather", "observe", "plan", "act")


class TraceReporter:
    """Makes a trace of each cycle after its end, as a Reporter.

    Args:
        spans: Where traces go.
        now: The clock of their times.
    """

    def __init__(self, spans: Spans, now: Callable[[], datetime]) -> None:
        self._spans = spans
        self._now = now
        self._scrubber = Scrubber()

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """Ignored: the trace is sent when the cycle ends."""

    def action_ended(self, outcome: Outcome) -> None:
        """Ignored: the trace is sent when the cycle ends."""

    def cycle_ended(self, report: CycleReport) -> None:
        """Send the trace of a cycle."""
        end = self._now()
        seconds = dict(zip(_PHASES, _seconds_of(report), strict=True))
        begin = start = end - timedelta(seconds=sum(seconds.values()))
        phases: list[Span] = []
        for name, took in seconds.items():
            if not took:
                continue
            events = self._actions(report) if name == "act" else ()
            phases.append(_phase(name, start, took, events))
            start += timedelta(seconds=took)
        self._spans.send(
            Span(
                name="cycle",
                start=begin,
                end=end,
                attributes=_attributes(report),
                error="" if report.error is None else self._scrubber.text(str(report.error)),
                parts=tuple(phases),
            )
        )

    def _actions(self, report: CycleReport) -> tuple[SpanEvent, ...]:
        return tuple(self._event(outcome) for outcome in report.outcomes[:ACTIONS_MAX])

    def _event(self, outcome: Outcome) -> SpanEvent:
        found = action_to_json(outcome.action)
        shown = {k: v for k, v in found.items() if isinstance(v, str | int | float | bool)}
        shown |= {"outcome": outcome.kind, "seconds": round(outcome.seconds, 3)}
        if outcome.detail:
            shown["detail"] = self._scrubber.text(outcome.detail)
        return SpanEvent(name=str(shown.pop("action")), attributes=shown)


def _seconds_of(report: CycleReport) -> tuple[float, float, float, float]:
    return (
        report.gathered_seconds,
        report.observe_seconds,
        report.plan_seconds,
        report.act_seconds,
    )


def _phase(name: str, start: datetime, seconds: float, events: tuple[SpanEvent, ...]) -> Span:
    return Span(name=name, start=start, end=start + timedelta(seconds=seconds), events=events)


def _attributes(report: CycleReport) -> Attributes:
    """Return the numbers of the log line; without a plan, only those of the cycle."""
    if report.plan is None:
        return {"cycle": report.number}
    return {
        key: value
        for key, value in summary(report, report.plan).items()
        if isinstance(value, str | int | float | bool) and not key.endswith("_seconds")
    }
