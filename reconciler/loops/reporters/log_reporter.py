"""Logs the capacity loop: one line per action, a summary per cycle, each refusal once."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import structlog

from reconciler.loops.describe import describe
from reconciler.loops.reason_words import FLEETS_LEFT_OUT
from reconciler.loops.reconcile_loop import CycleReport
from reconciler.model.actions import SetCapacity
from reconciler.model.binding import Binding
from reconciler.model.notices import settled_by_kind
from reconciler.model.outcome import Outcome, OutcomeKind
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.unplaceable import Reason, Unplaceable, with_shared
from reconciler.planner.clocks import SKEW_MAX
from reconciler.planner.explain.held import held_in_words
from reconciler.planner.fleets.health import MISSING
from reconciler.planner.planning_failure import left_out_of
from reconciler.records.binding import binding_to_json
from reconciler.telemetry import events
from reconciler.telemetry.repeats import Repeats

LINES_MAX = 50
"""Pods named one by one per cycle; the rest is counted."""
SLOW_CYCLE_SECONDS = 2.0
"""A cycle that takes longer is logged even if nothing changed, as pods created meanwhile wait
for it."""

_EVENTS: Final[Mapping[OutcomeKind, tuple[str, str]]] = {
    "applied": (events.ACTION_APPLIED, "info"),
    "already-done": (events.ACTION_ALREADY_DONE, "debug"),
    "dry-run": (events.ACTION_PLANNED, "info"),
    "refused": (events.ACTION_REFUSED, "warning"),
    "failed": (events.ACTION_FAILED, "error"),
    "unknown": (events.ACTION_OUTCOME_UNKNOWN, "warning"),
}


class LogReporter:
    """Logs cycles as a Reporter.

    Args:
        monotonic_seconds: A monotonic clock, for messages that are repeated only after a while.
        summary_seconds: The longest time without a summary: `max_logging_interval`.
    """

    def __init__(
        self,
        monotonic_seconds: Callable[[], float],
        summary_seconds: Callable[[], float],
    ) -> None:
        self._log: Any = structlog.get_logger()
        self._monotonic_seconds = monotonic_seconds
        self._summary_seconds = summary_seconds
        self._repeats = Repeats(monotonic_seconds)
        self._summary_at: float | None = None
        self._unplaceable: dict[str, frozenset[tuple[str, ...]]] = {}
        """By pod: fleets and regions with the codes of what they lack."""
        self._unavailable: frozenset[tuple[str, str]] = frozenset()
        self._rebalancing: tuple[str, ...] = ()
        self._seen: tuple[Any, ...] = ()
        self._verdict = ""

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """Log what the plan found wrong, once per change."""
        self._log_binding(plan.binding)
        self._log_skew(plan.clock_skew_seconds)
        self._log_planning_failures(plan)
        self._log_unplaceable(plan.unplaceable)
        self._log_unavailable(plan)
        self._log_rebalancing(plan)
        self._log_updates(plan)
        self._log_findings(snapshot, plan)

    def action_ended(self, outcome: Outcome) -> None:
        """Log one action with decision, reason, before and after."""
        event, level = _EVENTS[outcome.kind]
        text = describe(outcome.action)
        if not self._repeats.is_news(event, *text.identity, text.before, text.after):
            level = "debug"
        detail = {"detail": outcome.detail} if outcome.detail else {}
        if isinstance(outcome.action, SetCapacity) and outcome.action.places_taken:
            detail["places_taken"] = outcome.action.places_taken
        self._log_at(level)(
            event,
            action=text.name,
            policy=outcome.action.policy,
            **text.facts,
            before=text.before,
            after=text.after,
            reason=outcome.action.because,
            seconds=round(outcome.seconds, 3),
            **detail,
        )

    def cycle_ended(self, report: CycleReport) -> None:
        """Log the cycle: at once when something changed or it was slow, else at intervals."""
        if report.unkept is not None and self._repeats.is_news(events.STATE_NOT_SAVED):
            self._log.warning(events.STATE_NOT_SAVED, reason=str(report.unkept))
        if report.error is not None:
            self._log_failure(report)
            return
        if report.plan is None:
            return
        if report.acted:
            self._log_notices(report.plan)
        troubled = sum(1 for outcome in report.outcomes if not outcome.settled)
        seen = (_what_matters(report.plan), troubled)
        acted = any(outcome.kind == "applied" for outcome in report.outcomes)
        changed = acted or seen != self._seen
        self._seen = seen
        due = self._summary_is_due()
        visible = changed or due or report.seconds >= SLOW_CYCLE_SECONDS
        if changed or due:
            self._summary_at = self._monotonic_seconds()
        self._log_at("info" if visible else "debug")(
            events.CYCLE_ENDED, **summary(report, report.plan)
        )

    def _log_notices(self, plan: Plan) -> None:
        """Log how many notices were handled; at info when one was about an instance of a fleet."""
        counts = settled_by_kind(plan.notices)
        if counts:
            news = any(result not in {"not-ours", "no-change"} for _, result in counts)
            facts = {f"{kind} {result}": n for (kind, result), n in sorted(counts.items())}
            self._log_at("info" if news else "debug")(events.NOTICES_SETTLED, notices=facts)

    def _log_at(self, level: str) -> Any:
        return getattr(self._log, level)

    def _log_failure(self, report: CycleReport) -> None:
        error = report.error
        assert error is not None, "called for failed cycles only"
        # The text may contain a number of seconds, and would be new in every cycle.
        news = self._repeats.is_news(events.CYCLE_FAILED, type(error).__name__, error.where)
        self._log_at("warning" if news else "debug")(
            events.CYCLE_FAILED,
            cycle=report.number,
            kind=type(error).__name__,
            reason=str(error),
        )

    def _summary_is_due(self) -> bool:
        if self._summary_at is None:
            return True
        return self._monotonic_seconds() - self._summary_at >= self._summary_seconds()

    def _log_binding(self, binding: Binding) -> None:
        """Log whether this is the fleets' cluster: at start, at changes, and while it is not."""
        changed = binding.verdict != self._verdict
        self._verdict = binding.verdict
        again = binding.contradicted and self._repeats.is_news(events.CLUSTER_BINDING)
        if changed or again:
            self._log_at("error" if binding.contradicted else "info")(
                events.CLUSTER_BINDING, **binding_to_json(binding)
            )

    def _log_skew(self, ahead_seconds: int) -> None:
        """Log every two minutes that the clock is wrong."""
        wrong = abs(ahead_seconds) > SKEW_MAX.total_seconds()
        if wrong and self._repeats.is_news(events.CLOCK_SKEWED):
            self._log.error(events.CLOCK_SKEWED, ahead_seconds=ahead_seconds)

    def _log_planning_failures(self, plan: Plan) -> None:
        """Log every two minutes on what planning fails, and what is done without for it."""
        left_out = left_out_of(plan)
        if left_out.removals and self._repeats.is_news(events.PLANNING_FAILED):
            reason = left_out.removals
            self._log.error(events.PLANNING_FAILED, left_out="removals", reason=reason)
        for name, why in sorted(left_out.namespaces.items())[:LINES_MAX]:
            if self._repeats.is_news(events.PLANNING_FAILED, name):
                self._log.error(
                    events.PLANNING_FAILED, left_out="pods", namespace=name, reason=f"it {why}"
                )

    def _log_unplaceable(self, found: tuple[Unplaceable, ...]) -> None:
        pods = {f"{unplaceable.pod}/{unplaceable.pod.uid}": unplaceable for unplaceable in found}
        causes = with_shared(pods.values(), _causes)
        now = {key: why for key, (_, why) in zip(pods, causes, strict=True)}
        fresh = [
            unplaceable
            for key, unplaceable in pods.items()
            if self._unplaceable.get(key) != now[key]
        ]
        for each in fresh[:LINES_MAX]:
            reasons = [_in_words(reason) for reason in each.reasons]
            self._log.warning(events.POD_UNPLACEABLE, pod=str(each.pod), reasons=reasons)
        if len(fresh) > LINES_MAX:
            self._log.warning(events.PODS_UNPLACEABLE_MORE, pods=len(fresh) - LINES_MAX)
        for key in [key for key in self._unplaceable if key not in now][:LINES_MAX]:
            self._log.info(events.POD_PLACEABLE, pod=key.rpartition("/")[0])
        self._unplaceable = now

    def _log_unavailable(self, plan: Plan) -> None:
        """Log fleets that are not asked for nodes for a while, and those that are asked again."""
        now = {(f.fleet, f.region): f.unavailable for f in plan.fleets if f.unavailable}
        for fleet, region in sorted(now.keys() - self._unavailable):
            reason = now[fleet, region]
            self._log.warning(events.FLEET_UNAVAILABLE, fleet=fleet, region=region, reason=reason)
        for place in sorted(self._unavailable - now.keys()):
            self._log.info(events.FLEET_AVAILABLE, fleet=place[0], region=place[1])
        self._unavailable = frozenset(now)

    def _log_rebalancing(self, plan: Plan) -> None:
        """Log the groups that may end nodes with pods by themselves, whenever these change."""
        now = tuple(f"{f.fleet} ({f.region})" for f in plan.fleets if f.rebalances_zones)
        if now and now != self._rebalancing:
            self._log.warning(
                events.GROUPS_REBALANCE,
                groups=now[:LINES_MAX],
                more=max(0, len(now) - LINES_MAX),
                reason="AZRebalance ends instances that run pods, past their budgets: suspend it",
            )
        self._rebalancing = now

    def _log_updates(self, plan: Plan) -> None:
        """Log where each rolling update stands, at each change and every two minutes.

        What came of updates that a person asked to resume is logged before.
        """
        for resume in plan.resumes:
            event = events.UPDATE_RESUMED if resume.done else events.UPDATE_NOT_RESUMED
            if self._repeats.is_news(event, resume.fleet):
                log = self._log_at("info" if resume.done else "warning")
                log(event, fleet=resume.fleet, reason=resume.because)
        for update in plan.updates:
            place = (update.fleet, update.region)
            if self._repeats.is_news(events.ROLLING_UPDATE, *place, update.version, update.state):
                self._log_at("warning" if update.state in {"halted", "resting"} else "info")(
                    events.ROLLING_UPDATE,
                    fleet=update.fleet,
                    region=update.region,
                    version=update.version,
                    state=update.state,
                    reason=update.because,
                    old=update.old,
                    new=update.new,
                )

    def _log_findings(self, snapshot: Snapshot, plan: Plan) -> None:
        """Log missing fleets, held nodes, silent regions and unreadable objects, at intervals."""
        answered = snapshot.cloud.regions if snapshot.cloud is not None else frozenset()
        for fleet in plan.fleets:
            news = fleet.state == MISSING and fleet.region in answered
            if news and self._repeats.is_news(events.FLEET_MISSING, fleet.fleet, fleet.region):
                self._log.warning(events.FLEET_MISSING, fleet=fleet.fleet, region=fleet.region)
        for fleet in plan.fleets:
            waits, place = fleet.removal, (fleet.fleet, fleet.region)
            if waits and self._repeats.is_news(events.FLEET_REMOVAL_WAITS, *place, waits):
                self._log.info(
                    events.FLEET_REMOVAL_WAITS,
                    fleet=fleet.fleet,
                    region=fleet.region,
                    reason=waits,
                )
        if plan.orphans and self._repeats.is_news(events.ORPHANS_FOUND, str(plan.orphans)):
            self._log.warning(events.ORPHANS_FOUND, instances=plan.orphans)
        for held in plan.held[:LINES_MAX]:
            name = held.node or held.instance
            if self._repeats.is_news(events.NODE_HELD, name, held.code):
                why = held_in_words(held)
                self._log.warning(events.NODE_HELD, node=name, code=held.code, reason=why)
        self._log_ignored(plan)

    def _log_ignored(self, plan: Plan) -> None:
        """Log objects that cannot be read, silent regions, and fleets that are left out."""
        unreadable = [each for each in plan.ignored if each.code == "unreadable"]
        for each in unreadable[:LINES_MAX]:
            silent = each.kind == "Region"
            event = events.REGION_SILENT if silent else events.OBJECT_UNREADABLE
            name = each.name or f"{each.namespace}/{each.pod}"
            if self._repeats.is_news(event, each.kind, each.namespace, name):
                self._log.warning(event, object_kind=each.kind, name=name, reason=each.detail)
        left_out = [each for each in plan.ignored if each.code in FLEETS_LEFT_OUT]
        for each in left_out[:LINES_MAX]:
            if self._repeats.is_news(events.FLEET_LEFT_OUT, each.name):
                reason = FLEETS_LEFT_OUT[each.code]
                self._log.warning(events.FLEET_LEFT_OUT, fleet_id=each.name, reason=reason)


def _in_words(reason: Reason) -> str:
    """Return a reason with its fleet; a pod of an unknown sector has none."""
    place = f"{reason.fleet} ({reason.region}): " if reason.fleet else ""
    return f"{place}{reason.code}: {reason.detail}"


def _causes(reasons: Iterable[Reason]) -> frozenset[tuple[str, ...]]:
    """Return why a pod waits, without the details, which contain changing times."""
    return frozenset((reason.fleet or "", reason.region, reason.code) for reason in reasons)


def _what_matters(plan: Plan) -> tuple[Any, ...]:
    """Return the values whose change makes a new summary line."""
    targets = tuple((f.fleet, f.region, f.target, f.joined, f.state) for f in plan.fleets)
    # Not how many pods select no sector: next to another autoscaler that changes all the time.
    waiting = len(plan.placements), len(plan.unplaceable), plan.pods_without_sector > 0
    return targets, waiting, len(plan.held)


def summary(report: CycleReport, plan: Plan) -> dict[str, Any]:
    """Return one cycle in numbers."""
    troubled = sum(1 for outcome in report.outcomes if not outcome.settled)
    return {
        "cycle": report.number,
        "cluster": plan.cluster,
        "actions": len(report.outcomes),
        "troubled": troubled,
        "pods_placed": len(plan.placements),
        "pods_unplaceable": len(plan.unplaceable),
        "pods_without_sector": plan.pods_without_sector,
        "nodes_joined": sum(fleet.joined for fleet in plan.fleets),
        "nodes_launching": sum(fleet.launching for fleet in plan.fleets),
        "hourly_usd_before": plan.cost.hourly_usd_before,
        "hourly_usd_after": plan.cost.hourly_usd_after,
        "hourly_usd_lower_bound": plan.cost.hourly_usd_lower_bound,
        "sources": [each.source for each in report.handled],
        "gathered_seconds": round(report.gathered_seconds, 3),
        "observe_seconds": round(report.observe_seconds, 3),
        "plan_seconds": round(report.plan_seconds, 3),
        "act_seconds": round(report.act_seconds, 3),
    }
