"""Sends chat messages about changed capacity and about problems that need a person."""

from collections.abc import Callable, Iterable

from reconciler.loops.describe import describe
from reconciler.loops.reconcile_loop import CycleReport
from reconciler.model.actions import SetCapacity, TerminateInstance
from reconciler.model.ids import PodKey
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.text import counted_noun
from reconciler.model.unplaceable import Reason, with_shared
from reconciler.planner.explain.held import held_in_words
from reconciler.ports.notifier import Notifier
from reconciler.records.binding import binding_to_json, verdict_line
from reconciler.telemetry.repeats import Repeats
from reconciler.telemetry.scrubbing import Scrubber

LINES_MAX = 15
REPEAT_SECONDS = 3600.0
"""The same problem is reported once an hour."""


class NotifyReporter:
    """Sends messages through a Notifier as a Reporter; at most one per cycle.

    Args:
        notifier: The channel.
        monotonic_seconds: A monotonic clock, for messages that are repeated only after a while.
    """

    def __init__(self, notifier: Notifier, monotonic_seconds: Callable[[], float]) -> None:
        self._notifier = notifier
        self._repeats = Repeats(monotonic_seconds, REPEAT_SECONDS)
        self._pods = Repeats(monotonic_seconds, REPEAT_SECONDS)
        """Kept apart from the rest, whose entries many pods would displace."""
        self._unplaceable: frozenset[tuple[PodKey, str]] = frozenset()
        """Pods that the last plan found no place for, with the reason: these are reported
        already."""
        self._lines: list[str] = []

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:  # noqa: ARG002 - a Reporter's
        """Collect pods that nothing can take, fleets that failed, and nodes that are held."""
        binding = plan.binding
        if binding.contradicted and self._repeats.is_news("binding", binding.verdict):
            self._lines.append(f"cluster {verdict_line(binding_to_json(binding))}")
        if plan.no_removals_because and self._repeats.is_news("planning"):
            self._lines.append(f"no node is drained or ended: {plan.no_removals_because}")
        self._tell_fleets(plan)
        self._tell_unplaceable(plan)
        if plan.orphans and self._repeats.is_news("orphans"):
            self._lines.append(f"{counted_noun(plan.orphans, 'instance')} of ours without a fleet")
        for held in plan.held:
            name = held.node or f"of instance {held.instance}"
            if self._repeats.is_news("held", name, held.code):
                self._lines.append(f"node {name} is held ({held.code}): {held_in_words(held)}")

    def _tell_fleets(self, plan: Plan) -> None:
        """Collect fleets that are not asked for nodes, and rolling updates that are halted."""
        for fleet in plan.fleets:
            place = f"{fleet.fleet} ({fleet.region})"
            if fleet.unavailable and self._repeats.is_news("unavailable", place):
                self._lines.append(f"{place} is not asked for nodes: {fleet.unavailable}")
        for update in plan.updates:
            place = f"{update.fleet} ({update.region})"
            halted = update.state == "halted"
            if halted and self._repeats.is_news("halted", place, update.version):
                what = f"rolling update to launch template version {update.version} is halted"
                self._lines.append(f"{place}: {what}: {update.because}")

    def _tell_unplaceable(self, plan: Plan) -> None:
        known = frozenset() if self._repeats.is_news("unplaceable") else self._unplaceable
        self._unplaceable = frozenset(
            (unplaceable.pod, codes) for unplaceable, codes in with_shared(plan.unplaceable, _codes)
        )
        for pod, codes in sorted(self._unplaceable - known):
            if self._pods.is_news(pod, codes):
                self._lines.append(f"nothing can take pod {pod}: {codes}")

    def action_ended(self, outcome: Outcome) -> None:
        """Collect capacity that changed and actions that failed."""
        action, text = outcome.action, describe(outcome.action)
        if outcome.kind == "failed" and self._repeats.is_news("failed", *text.identity):
            self._lines.append(f"{text.name} {text.named} failed: {outcome.detail}")
        if outcome.kind != "applied":
            return
        if isinstance(action, SetCapacity):
            place = f"{action.fleet} ({action.region})"
            self._lines.append(f"{place}: {text.before} to {text.after} nodes, {action.because}")
        elif isinstance(action, TerminateInstance):
            name = action.node or action.instance
            self._lines.append(f"{action.fleet} ({action.region}): {name} ended, {action.because}")

    def forget(self) -> None:
        """Drop what was collected in this cycle: the lead was lost, and another replica reports."""
        self._lines = []

    def cycle_ended(self, report: CycleReport) -> None:
        """Send what was collected in this cycle."""
        error = report.error
        if error is not None and self._repeats.is_news("cycle", type(error).__name__):
            self._lines.append(f"no plan could be made: {error}")
        lines, self._lines = self._lines, []
        if not lines:
            return
        more = [f"and {len(lines) - LINES_MAX} more"] if len(lines) > LINES_MAX else []
        self._notifier.notify(Scrubber().text("\n".join([*lines[:LINES_MAX], *more])))


def _codes(reasons: Iterable[Reason]) -> str:
    return ", ".join(sorted({reason.code for reason in reasons}))
