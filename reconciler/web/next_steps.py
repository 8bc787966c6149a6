"""What happens next, and when: from the last plan, its saved state and its timers."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from reconciler.model.plan import FleetUpdate, Kept, Plan
from reconciler.model.text import counted_noun
from reconciler.planner.fleets.health import why_cooling
from reconciler.web.view import View

TIMERS: Final = {
    "idle-time": "to be removed when the idle time ends",
    "unneeded-time": "to be removed when the unneeded time ends",
    "grace-period": "to be removed when the grace period ends",
    "max-empty-at-once": "to be removed in later batches of empty nodes",
    "max-non-empty-at-once": "to be drained one after another",
    "not-ready": "to be looked at again when Ready, or after unready_time",
    "settling": "to be looked at again when new pods have settled",
    "drain-cool-off": "to be drained again after a drain that failed",
    "interrupted-later": "to be emptied shortly before its end by EC2",
    "node-drain-delay": "to be looked at again by the spot rescheduler",
    "termination-protected": "to be tried again: EC2 refused to end their instances",
}
"""Codes of nodes that stay for now, with what happens to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """One thing that will happen unless something changes."""

    at: datetime | None
    """None: as soon as what it waits for has happened."""
    what: str
    why: str


def next_steps(view: View) -> tuple[NextStep, ...]:
    """Return what comes next: steps with a time first, in order of time."""
    plan = view.plan
    if plan is None:
        return ()
    steps = [*_cool_offs(plan), *_launches(plan), *_timers(plan), *_long_ones(plan)]
    steps.append(_next_plan(view, plan))
    latest = datetime.max.replace(tzinfo=plan.at.tzinfo)
    return tuple(sorted(steps, key=lambda step: (step.at is None, step.at or latest, step.what)))


def _next_plan(view: View, plan: Plan) -> NextStep:
    if view.errors_in_a_row:
        times = view.errors_in_a_row
        failed = "cycle" if times == 1 else f"{times} cycles"
        why = f"the last {failed} failed; it is tried again after each pause"
        return NextStep(at=None, what="the next plan, when a cycle succeeds", why=why)
    return NextStep(
        at=plan.at + timedelta(seconds=view.config.sleep_seconds),
        what="the next plan at the latest",
        why="a pod, node or notice that changes begins it at once",
    )


def _cool_offs(plan: Plan) -> Iterator[NextStep]:
    for saved in plan.fleet_states:
        if saved.unavailable_until is not None and saved.unavailable_until > plan.at:
            after = f" after {counted_noun(saved.failures, 'failure')}" if saved.failures else ""
            yield NextStep(
                at=saved.unavailable_until,
                what=f"{saved.fleet} in {saved.region} is asked for nodes again",
                why=f"cool-off{after}: {why_cooling(saved)[1]}",
            )


def _launches(plan: Plan) -> Iterator[NextStep]:
    for fleet in plan.fleets:
        if fleet.launching and not fleet.unavailable:
            nodes = counted_noun(fleet.launching, "node")
            what = f"{nodes} of {fleet.fleet} in {fleet.region} will join"
            yield NextStep(at=None, what=what, why="EC2 has them, or owes them")


def _timers(plan: Plan) -> Iterator[NextStep]:
    """Yield nodes that stay for now, by reason: until when the first one does, and why."""
    timed = [each for each in plan.kept if each.code in TIMERS]
    counts = Counter(each.code for each in timed)
    latest = datetime.max.replace(tzinfo=plan.at.tzinfo)
    first: dict[str, Kept] = {}
    for each in sorted(timed, key=lambda kept: (kept.until or latest, kept.node)):
        first.setdefault(each.code, each)
    for code, count in sorted(counts.items()):
        what, one = f"{counted_noun(count, 'node')} {TIMERS[code]}", first[code]
        yield NextStep(at=one.until, what=what, why=f"{one.node}: {one.detail}")


def _long_ones(plan: Plan) -> Iterator[NextStep]:
    """Yield updates, removals, returns to spot, and missing headroom."""
    for fleet in plan.fleets:
        if fleet.update is not None:
            yield _update(fleet.update)
        if fleet.removal:
            what = f"{fleet.fleet} in {fleet.region} is emptied and removed"
            yield NextStep(at=None, what=what, why=fleet.removal)
    for back in plan.stand_ins:
        what = (
            f"{counted_noun(back.nodes, 'node')} of {back.fleet} standing in for {back.instead_of}"
        )
        state = f"{back.going_back} go back to spot now" if back.going_back else "on-demand"
        cost = f"{state}, {back.extra_hourly_usd:.2f} USD per hour more"
        yield NextStep(at=None, what=what, why=f"{cost}; {back.waits}" if back.waits else cost)
    for item in plan.headroom:
        if item.missing:
            kept = f"headroom of {item.sector}" if item.sector else "headroom"
            what = f"{kept} ({item.asked}): {item.missing} of {item.pieces} missing"
            yield NextStep(at=None, what=what, why=item.because)


def _update(update: FleetUpdate) -> NextStep:
    done = f"{update.new} of {update.old + update.new} nodes"
    what = f"rolling update of {update.fleet} in {update.region} to version {update.version}"
    return NextStep(at=None, what=f"{what}: {done}, {update.state}", why=update.because)
