"""The status as JSON: what `/api/status` answers and `reconciler status` prints."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from reconciler.gitops.repository.status import progress_json
from reconciler.loops.describe import describe
from reconciler.loops.reason_words import without_later_regions
from reconciler.loops.reporters.log_reporter import summary
from reconciler.model.plan import Plan
from reconciler.planner.placement.dimensions import BASIC
from reconciler.records.binding import binding_to_json
from reconciler.records.plan import plan_to_json
from reconciler.records.times import rfc3339_exact
from reconciler.web.board import StatusBoard
from reconciler.web.failing import PastAction
from reconciler.web.verdict import Verdict, verdict_of
from reconciler.web.view import View

Json = dict[str, Any]

LISTED_MAX = 200
"""How many pods, nodes and causes are named; totals count all."""


def status_json(
    board: StatusBoard,
    plan_json: Callable[[Plan], Json] | None = None,
    overview: Json | None = None,
) -> Json:
    """Return the present state of the program.

    Args:
        board: The state of the program.
        plan_json: Makes the part about the plan: `plan_summary` or a cache of it.
        overview: What `overview_json` made of the same plan.
    """
    view = board.view
    summarised = plan_json or plan_summary
    return {
        "verdict": verdict_json(verdict_of(board)),
        **(overview or {}),
        "version": view.version,
        "cluster": view.config.cluster,
        "regions": list(view.config.regions),
        "dry_run": view.config.dry_run,
        "binding": None if view.plan is None else binding_to_json(view.plan.binding),
        "alive": board.is_alive(),
        "ready": board.is_ready(),
        "leader_election": asdict(board.leadership),
        "started_at": rfc3339_exact(view.started_at),
        "last_success_at": _time(view.succeeded_at),
        "last_success_age_seconds": round(board.success_age_seconds(), 3),
        "cycle": _cycle(view),
        "config": {
            "file": view.config.file,
            "commit": view.config.commit or None,
            "loaded_at": _time(view.config.loaded_at),
            "valid": not view.config.faults,
            "faults": list(view.config.faults),
        },
        "second_loop": view.second_loop or None,
        "progress": [progress_json(cluster_progress) for cluster_progress in view.progress],
        "drift": [
            {"fleet": d.fleet, "region": d.region, "kind": d.kind, "detail": d.detail}
            for d in view.drift
        ],
        "plan": None if view.plan is None else summarised(view.plan),
        "last_failed_action": None if view.last_failed is None else _past(view.last_failed),
        "actions": [_past(action) for action in view.actions],
    }


def verdict_json(verdict: Verdict) -> Json:
    """Return the verdict: its first line, and what is wrong, the worst first."""
    return {
        "level": verdict.level,
        "text": verdict.text,
        "problems": list(verdict.problems[:LISTED_MAX]),
        "causes": [asdict(cause) for cause in verdict.causes[:LISTED_MAX]],
        "causes_total": len(verdict.causes),
    }


def pending_pods(plan: Plan) -> int:
    """Return how many of our pods have no node, with or without a place to go."""
    return sum(1 for p in plan.placements if p.moved_from is None) + len(plan.unplaceable)


def unplaceable_by_code(plan: Plan) -> dict[str, int]:
    """Return the number of pods for each code among their reasons, sorted by code."""
    return _counted(plan, lambda code: code)


def unplaceable_by_bounded_code(plan: Plan) -> dict[str, int]:
    """Return the same for metrics: resources that there are nowhere have one code together.

    Whoever creates pods chooses the names of these, and each name would be a series.
    """
    return _counted(plan, lambda code: _bounded(code, plan.offered_resources))


def _counted(plan: Plan, named: Callable[[str], str]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for reasons, pods in plan.refusals():
        for code in {named(reason.code) for reason in without_later_regions(reasons)}:
            counts[code] += pods
    return dict(sorted(counts.items()))


def _bounded(code: str, offered: frozenset[str]) -> str:
    lacks = code.removeprefix("insufficient-")
    known = lacks == code or lacks in offered or lacks in BASIC
    return code if known else "insufficient-other"


def _cycle(view: View) -> Json:
    report = view.last_cycle
    cycle: Json = {"number": view.cycles, "errors_in_a_row": view.errors_in_a_row, "error": None}
    if report is None:
        return cycle
    if view.plan is not None:
        cycle |= summary(report, view.plan)
        del cycle["cluster"], cycle["cycle"]
    return cycle | {"error": None if report.error is None else str(report.error)}


def plan_summary(plan: Plan) -> Json:
    """Return the last plan, without the places of single pods."""
    found = plan_to_json(plan, listed_max=LISTED_MAX)
    return {
        "at": found["at"],
        "actions": found["actions"],
        "fleets": found["fleets"],
        "cost": found["cost"],
        "fallbacks": found.get("fallbacks", []),
        "headroom": found.get("headroom", []),
        "held": found["held"],
        "unplaceable": found["unplaceable"],
        "pods_pending": pending_pods(plan),
        "pods_unplaceable": len(plan.unplaceable),
        "pods_without_sector": plan.pods_without_sector,
        "unplaceable_by_code": unplaceable_by_code(plan),
    }


def _past(past: PastAction) -> Json:
    action, text = past.outcome.action, describe(past.outcome.action)
    return {
        "at": rfc3339_exact(past.at),
        "action": text.name,
        "subject": text.subject,
        "region": text.region or None,
        "before": text.before,
        "after": text.after,
        "outcome": past.outcome.kind,
        "detail": past.outcome.detail,
        "policy": action.policy,
        "because": action.because,
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339_exact(moment)
